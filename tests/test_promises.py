"""What `make promises` finds: tests that a page names and that were left out, skipped or failed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import promises, ran
from tests.pages import failures

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


def make(top: Path) -> Path:
    """A project with a suite of which no page names a test yet."""
    (top / "tests").mkdir()
    (top / "tests" / "test_suite.py").write_text(SUITE)
    (top / "pytest.ini").write_text("[pytest]\nmarkers = other: another lane\n")
    return top


def run(top: Path, *options: str, kept: bool = True) -> None:
    """One lane of the project."""
    command = [sys.executable, "-m", "pytest", "-p", "xdist", "-p", "tests.ran", "-p", "no:cacheprovider", *options]
    environment = {**os.environ, "PYTHONPATH": str(promises.TOP), "METAL_RAN": str(top / "ran") if kept else ""}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # importing the others is most of a run's time
    subprocess.run(command, cwd=top, env=environment, capture_output=True, timeout=50, check=False)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose first lane has run."""
    top = make(tmp_path_factory.mktemp("first"))
    run(top, "-m", "not other", "-n", "0")
    return top


@pytest.fixture
def top(first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, for a test to change."""
    shutil.copytree(first, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("METAL_RAN", str(tmp_path / "ran"))
    return tmp_path


def name(top: Path, *functions: str) -> None:
    """The page names these tests of the suite."""
    suite = top / "tests" / "test_suite.py"
    mark = '@pytest.mark.behaviour("BMC", "It works.")'
    suite.write_text(re.sub(rf"^(?=def ({'|'.join(functions)})\b)", f"{mark}\n", SUITE, flags=re.MULTILINE))


@pytest.mark.parametrize("workers", [0, 2])
def test_each_outcome_is_recorded_by_the_process_that_knows_it(top: Path, workers: int) -> None:
    """With and without xdist: the worst of a test's parameters counts, and what the lane leaves out is known."""
    if workers:
        shutil.rmtree(top / "ran")
        run(top, "-m", "not other", "-n", str(workers))
    outcomes = {name.removeprefix("test_suite.py::test_"): outcome for name, outcome in ran.read(top / "ran").items()}
    assert outcomes == {
        "good": "passed", "half": "failed", "skipped": "skipped", "without_its_fixture": "failed",
        "that_cannot_be_tidied_up": "failed", "in_both_lanes": "passed", "in_the_other_lane": "elsewhere",
    }  # fmt: skip


def test_promises_are_kept_by_the_lanes_together(top: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What one lane leaves out is broken only when all lanes have run without it."""
    name(top, "test_good", "test_in_both_lanes", "test_in_the_other_lane")
    assert promises.main([], top, ()) == 0
    assert capsys.readouterr().out == "3 promises: 0 broken, 1 left to other lanes\n"
    assert promises.main(["--all"], top, ()) == 1
    assert "docs/behaviour.md: test_suite.py::test_in_the_other_lane ran in no lane" in capsys.readouterr().err
    run(top, "-m", "other")
    assert promises.main(["--all"], top, ()) == 0


@pytest.mark.parametrize(
    ("function", "word"),
    [
        ("test_half", "failed"), ("test_skipped", "was skipped"),
        ("test_without_its_fixture", "failed"), ("test_that_cannot_be_tidied_up", "failed"),
    ],
)  # fmt: skip
def test_a_broken_promise_is_named_with_its_page(
    top: Path, capsys: pytest.CaptureFixture[str], function: str, word: str
) -> None:
    """A test that fails or is skipped shows nothing."""
    name(top, function, "test_good")
    assert promises.main([], top, ()) == 1
    assert capsys.readouterr().err == f"docs/behaviour.md: test_suite.py::{function} {word}\n"


def test_a_test_that_did_not_run_is_named_with_its_page(top: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not collected at all, or no lane has run yet."""
    name(top, "test_half", "test_good")
    shutil.rmtree(top / "ran")
    assert promises.main([], top, ()) == 1
    assert "docs/behaviour.md: test_suite.py::test_good was not run" in capsys.readouterr().err


def test_the_pages_name_many_tests() -> None:
    """Entries, transitions and failures of this project; each test of the failures is named once."""
    named = promises.promises()
    pages = [one.page for one in named]
    assert pages.count("docs/behaviour.md") > 200
    assert pages.count("docs/failures.md") == len(failures.PARTS)


def test_without_a_folder_nothing_is_written(tmp_path: Path) -> None:
    """pytest without METAL_RAN writes no outcomes."""
    run(make(tmp_path), kept=False)
    assert not list(tmp_path.rglob("*.json"))
