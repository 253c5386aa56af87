"""Log lines: readable, private, and without anything that a traceback could give away."""

import io
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from metal.cli.run import logs


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Logging is one for the whole process."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def _fail(password: str) -> None:
    raise ValueError(f"no such thing ({len(password)})")


def _log_a_failure() -> None:
    try:
        _fail("hunter" + "2")
    except ValueError:
        structlog.get_logger("test").exception("request failed", client="a\r\nforged\x1b[31m")


@pytest.mark.parametrize("colours", [False, True])
def test_a_traceback_on_the_terminal_shows_no_values_of_variables(colours: bool) -> None:
    """Handlers hold tokens, passwords and Ignition in their variables."""
    stream = io.StringIO()
    logs.to_stream(stream, colours=colours)
    _log_a_failure()
    told = stream.getvalue()
    assert "ValueError: no such thing (7)" in told
    assert "hunter2" not in told


def test_a_traceback_in_the_file_shows_none_either_and_the_file_is_private(tmp_path: Path) -> None:
    """One object a line; what a client sent cannot begin another."""
    with logs.to_file(tmp_path / "log"):
        _log_a_failure()
    told = (tmp_path / "log").read_text()
    assert told.count("\n") == 1
    assert "no such thing" in told
    assert "hunter2" not in told
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == 0o600


def test_what_a_client_sent_cannot_forge_a_line() -> None:
    """Line breaks and escape sequences are shown, not obeyed."""
    stream = io.StringIO()
    logs.to_stream(stream, colours=False)
    structlog.get_logger("test").warning("refused", client="a\r\nforged\x1b[31m")
    assert stream.getvalue().count("\n") == 1
    assert "\x1b" not in stream.getvalue()
