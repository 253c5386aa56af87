"""Checks that each test which docs/behaviour.md and docs/failures.md name exists, ran and passed: `make promises`.

Reads what `tests.ran` wrote. Tests of other lanes may be missing, unless --all says that every lane has run.
"""

import argparse
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.ran import ELSEWHERE, FAILED, SKIPPED, read

TOP = Path(__file__).parent.parent
PAGES = ("docs/behaviour.md", "docs/failures.md")
_TEST = re.compile(r"(\S+\.py)::(\w+)")
_SAYS = {FAILED: "failed", SKIPPED: "was skipped", ELSEWHERE: "ran in no lane"}


@dataclass(frozen=True)
class Promise:
    """One test that a row of a page names."""

    page: str
    file: str
    function: str

    @property
    def name(self) -> str:
        """As outcomes are named: below tests/, without parameters."""
        return f"{self.file}::{self.function}"


def promises(top: Path = TOP) -> list[Promise]:
    """What all rows of the pages name, in their order."""
    return [
        Promise(page, *named)
        for page in PAGES
        for line in (top / page).read_text().splitlines()
        if line.startswith("|")
        for named in _TEST.findall(line)
    ]


def missing(named: Iterable[Promise], top: Path = TOP) -> list[str]:
    """A sentence for each test that is not there."""
    return [f"{one.page}: {one.name} does not exist" for one in named if not _exists(one, top)]


def _exists(one: Promise, top: Path) -> bool:
    file = top / "tests" / one.file
    return file.is_file() and f"def {one.function}(" in file.read_text()


def broken(named: Iterable[Promise], outcomes: Mapping[str, str], *, everywhere: bool) -> list[str]:
    """A sentence for each test that was not run or did not pass; other lanes' tests count only `everywhere`."""
    said = []
    for one in named:
        outcome = outcomes.get(one.name, "")
        if not outcome:
            said.append(f"{one.page}: {one.name} was not run")
        elif outcome in _SAYS and (everywhere or outcome != ELSEWHERE):
            said.append(f"{one.page}: {one.name} {_SAYS[outcome]}")
    return said


def main(arguments: list[str] | None = None, top: Path = TOP) -> int:
    """Say what is wrong; 0 when nothing is."""
    parser = argparse.ArgumentParser(prog="python -m tests.promises", description=__doc__)
    parser.add_argument("--all", action="store_true", help="all lanes have run: every named test must have passed")
    options = parser.parse_args(arguments)
    outcomes = read(Path(os.environ.get("METAL_RAN", top / ".cache" / "ran")))
    named = promises(top)
    wrong = missing(named, top) or broken(named, outcomes, everywhere=options.all)
    left = sum(outcomes.get(one.name) == ELSEWHERE for one in named)
    sys.stderr.writelines(f"{sentence}\n" for sentence in wrong)
    sys.stdout.write(f"{len(named)} promises: {len(wrong)} broken, {left} left to other lanes\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
