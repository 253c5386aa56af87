"""A pytest plugin that records which tests ran and how they ended, in the folder that METAL_RAN names.

Each process writes a file of its own, also workers of xdist: only they know which tests a lane leaves to another one.
`tests.promises` reads them.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

ELSEWHERE, PASSED, SKIPPED, FAILED = WORSE = ("elsewhere", "passed", "skipped", "failed")
"""How a test ended, the worst last. `elsewhere`: collected, and left to another lane."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin when METAL_RAN is set."""
    if folder := os.environ.get("METAL_RAN"):
        config.pluginmanager.register(Ran(Path(folder)))


class Ran:
    """The outcomes of one process, by file::function below tests/; of several parameters the worst counts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._outcomes: dict[str, str] = {}

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Tests that markers or missing programs leave out."""
        for item in items:
            self._note(item.nodeid, ELSEWHERE)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Set-up and tear-down count when they fail; the call counts in any case."""
        if report.when == "call" or not report.passed:
            self._note(report.nodeid, report.outcome)

    def pytest_sessionfinish(self) -> None:
        """Write the outcomes of this process."""
        self._folder.mkdir(parents=True, exist_ok=True)
        name = f"{time.time_ns()}-{os.getpid()}.json"  # numbers of processes come again in later lanes
        (self._folder / name).write_text(json.dumps(self._outcomes, indent=1, sort_keys=True))

    def _note(self, node: str, outcome: str) -> None:
        worsen(self._outcomes, {node.removeprefix("tests/").partition("[")[0]: outcome})


def worsen(known: dict[str, str], more: Mapping[str, str]) -> None:
    """Join outcomes; where both know a test, the worse one counts."""
    for name, outcome in more.items():
        known[name] = max(outcome, known.get(name, ELSEWHERE), key=WORSE.index)


def read(folder: Path) -> dict[str, str]:
    """The outcomes that all processes wrote."""
    outcomes: dict[str, str] = {}
    for file in sorted(folder.glob("*.json")):
        worsen(outcomes, json.loads(file.read_text()))
    return outcomes
