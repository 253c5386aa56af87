"""The tables of docs/states.md: complete, current, and nothing else of the page is touched."""

from pathlib import Path

import pytest

from metal.api.server import State
from metal.codegen import states
from metal.controllers.server.reasons import WaitFor
from metal.controllers.server.tenancy.adoption.adoption_table import ROWS

PAGE = Path(__file__).parents[2] / "docs" / "states.md"


def test_the_page_is_current() -> None:
    """`make generate` leaves no difference."""
    assert states.main(["--check", "--output", str(PAGE)]) == 0


def test_every_state_and_every_wait_is_on_the_page() -> None:
    """With the option behind each deadline."""
    text = states.tables()
    assert all(f"`{wait}`:" in text for wait in WaitFor)
    assert all(state in text for state in State)
    assert "`PowerOff`: power Off" in text
    assert "| `timeouts.power` |" in text


def test_every_row_of_the_adoption_table_is_on_the_page() -> None:
    """With what is seen, the data, the next state and what is never done."""
    text = states.adoption()
    assert all(f"| {row.server} | " in text and row.never in text for row in ROWS)
    assert "| new | no state | Clean | Initial |" in text


def test_only_what_is_between_the_comments_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A stale page is reported by --check and written without it."""
    page = tmp_path / "states.md"
    current = PAGE.read_text()
    page.write_text(current.replace(states.tables(), "old\n"))
    assert states.main(["--check", "--output", str(page)]) == 1
    assert "make generate" in capsys.readouterr().err
    assert states.main(["--output", str(page)]) == 0
    assert page.read_text() == current


def test_a_page_without_the_comments_is_refused() -> None:
    """The tables are not put at a guessed place."""
    with pytest.raises(ValueError, match="comments"):
        states.inserted("# A page\n")
