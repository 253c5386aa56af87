"""Checks that each test which docs/behaviour.md and docs/failures.md name ran and passed: `make promises`.

The pages are generated from these tests, so a test that is named exists. `tests.ran` recorded how each test ended.
Tests of other lanes may be missing, unless --all says that every lane has run.
"""

import argparse
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.pages import behaviour, failures
from tests.ran import ELSEWHERE, FAILED, SKIPPED, read

TOP = Path(__file__).parent.parent
_OUTCOMES = {FAILED: "failed", SKIPPED: "was skipped", ELSEWHERE: "ran in no lane"}


@dataclass(frozen=True)
class Promise:
    """One test that an entry of a page names."""

    page: str
    name: str
    """As outcomes are named: file::function below tests/, without parameters."""


def promises(top: Path = TOP, parts: Iterable[failures.Part] = failures.PARTS) -> list[Promise]:
    """The tests of all entries, in the order of the pages."""
    tests = top / "tests"
    named = [f"sim/test_edges.py::{edge.function}" for edge in behaviour.edges(tests)]
    named += [f"{entry.file}::{entry.function}" for entry in behaviour.entries(tests)]
    return [
        *(Promise("docs/behaviour.md", name) for name in named),
        *(Promise("docs/failures.md", part.test) for part in parts),
    ]


def broken(named: Iterable[Promise], outcomes: Mapping[str, str], *, everywhere: bool) -> list[str]:
    """A sentence for each test that was not run or did not pass; other lanes' tests count only `everywhere`."""
    said = []
    for one in named:
        outcome = outcomes.get(one.name, "")
        if not outcome:
            said.append(f"{one.page}: {one.name} was not run")
        elif outcome in _OUTCOMES and (everywhere or outcome != ELSEWHERE):
            said.append(f"{one.page}: {one.name} {_OUTCOMES[outcome]}")
    return said


def main(arguments: list[str] | None = None, top: Path = TOP, parts: Iterable[failures.Part] = failures.PARTS) -> int:
    """Print what is wrong; the exit status is 0 when nothing is."""
    parser = argparse.ArgumentParser(prog="python -m tests.promises", description=__doc__)
    parser.add_argument("--all", action="store_true", help="all lanes have run: every named test must have passed")
    options = parser.parse_args(arguments)
    outcomes = read(Path(os.environ.get("METAL_RAN", top / ".cache" / "ran")))
    named = promises(top, parts)
    wrong = broken(named, outcomes, everywhere=options.all)
    left = sum(outcomes.get(one.name) == ELSEWHERE for one in named)
    sys.stderr.writelines(f"{sentence}\n" for sentence in wrong)
    sys.stdout.write(f"{len(named)} promises: {len(wrong)} broken, {left} left to other lanes\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
