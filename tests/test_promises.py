"""What `make promises` finds: tests that a page names and that are gone, left out, skipped or broken."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import promises, ran

SUITE = """
import pytest

def test_good(): pass
@pytest.mark.parametrize("n", [1, 2])
def test_half(n): assert n == 1
@pytest.mark.skip
def test_skipped(): pass
@pytest.fixture
def broken(): raise OSError
def test_without_its_fixture(broken): pass
@pytest.fixture
def untidy():
    yield
    raise OSError
def test_that_cannot_be_tidied_up(untidy): pass
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.other)])
def test_in_both_lanes(n): pass
@pytest.mark.other
def test_in_the_other_lane(): pass
"""


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a suite, and no pages yet."""
    for folder in ("tests", "docs"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tests" / "test_suite.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = other: another lane\n")
    monkeypatch.setenv("METAL_RAN", str(tmp_path / "ran"))
    return tmp_path


def run(top: Path, *options: str) -> None:
    """One lane of the project."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.ran", "-p", "no:cacheprovider", *options]
    environment = {**os.environ, "PYTHONPATH": str(promises.TOP)}
    subprocess.run(command, cwd=top, env=environment, capture_output=True, timeout=50, check=False)


def page(top: Path, *functions: str) -> None:
    """Pages that name these tests of the suite, the last one on a page of its own."""
    rows = [f"| #1 | something | test_suite.py::{name} |\n" for name in functions]
    for name, some in zip(promises.PAGES, (rows[:-1], rows[-1:]), strict=True):
        (top / name).write_text("| item | what | test |\n|---|---|---|\n" + "".join(some))


@pytest.mark.parametrize("workers", ["0", "2"])
def test_every_outcome_is_written_down_by_whichever_process_knows_it(top: Path, workers: str) -> None:
    """With and without xdist: the worst of a test's parameters counts, and what the lane leaves out is known."""
    run(top, "-m", "not other", "-n", workers)
    outcomes = {name.removeprefix("test_suite.py::test_"): outcome for name, outcome in ran.read(top / "ran").items()}
    assert outcomes == {
        "good": "passed", "half": "failed", "skipped": "skipped", "without_its_fixture": "failed",
        "that_cannot_be_tidied_up": "failed", "in_both_lanes": "passed", "in_the_other_lane": "elsewhere",
    }  # fmt: skip


def test_promises_are_kept_by_the_lanes_together(top: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What one lane leaves out is broken only when all lanes have run without it."""
    page(top, "test_good", "test_in_both_lanes", "test_in_the_other_lane")
    run(top, "-m", "not other")
    assert promises.main([], top) == 0
    assert capsys.readouterr().out == "3 promises: 0 broken, 1 left to other lanes\n"
    assert promises.main(["--all"], top) == 1
    assert "docs/failures.md: test_suite.py::test_in_the_other_lane ran in no lane" in capsys.readouterr().err
    run(top, "-m", "other")
    assert promises.main(["--all"], top) == 0


@pytest.mark.parametrize(
    ("function", "word"),
    [
        ("test_nobody_wrote", "does not exist"), ("test_half", "failed"), ("test_skipped", "was skipped"),
        ("test_without_its_fixture", "failed"), ("test_that_cannot_be_tidied_up", "failed"),
    ],
)  # fmt: skip
def test_a_broken_promise_is_named_with_its_page(
    top: Path, capsys: pytest.CaptureFixture[str], function: str, word: str
) -> None:
    """A test that is gone, fails or is skipped keeps nothing."""
    page(top, function, "test_good")
    run(top)
    assert promises.main([], top) == 1
    assert capsys.readouterr().err == f"docs/behaviour.md: test_suite.py::{function} {word}\n"


def test_a_test_that_nobody_ran_keeps_nothing(top: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not collected at all, or no lane has run yet."""
    page(top, "test_skipped", "test_good")
    assert promises.main([], top) == 1
    assert "docs/failures.md: test_suite.py::test_good was not run" in capsys.readouterr().err


def test_without_a_folder_nothing_is_written(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs pytest by hand leaves no traces."""
    monkeypatch.delenv("METAL_RAN")
    run(top)
    assert not list(top.rglob("*.json"))
