"""Log lines: readable, private, and without anything that a traceback could give away."""

import io
import json
import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from metal.cli.run import logs
from metal.cli.run.logs import LogOptions


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Logging is one for the whole process."""
    before, root = structlog.get_config(), logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    structlog.configure(**before)
    root.handlers = handlers
    root.setLevel(level)


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
    logs.configure(stream, LogOptions(), colours=colours)
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
    logs.configure(stream, LogOptions())
    structlog.get_logger("test").warning("refused", client="a\r\nforged\x1b[31m")
    assert stream.getvalue().count("\n") == 1
    assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize("form", logs.FORMATS)
def test_a_library_that_fails_shows_no_values_of_variables_either(form: str) -> None:
    """Records of the standard library pass the same processors."""
    stream = io.StringIO()
    logs.configure(stream, LogOptions(form))
    try:
        _fail("hunter" + "2")
    except ValueError:
        logging.getLogger("aiohttp.server").exception("Error handling request")
    told = stream.getvalue()
    assert "Error handling request" in told
    assert "no such thing" in told
    assert "hunter2" not in told


def test_json_has_one_object_a_line_for_the_program_and_its_libraries() -> None:
    """Both have event, level and timestamp."""
    stream = io.StringIO()
    logs.configure(stream, LogOptions("json"))
    structlog.get_logger("test").info("transition", name="s1", **{"from": "Available"})
    logging.getLogger("asyncio").warning("slow callback of %d s", 2)
    ours, library = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert (ours["event"], ours["level"], ours["name"], ours["from"]) == ("transition", "info", "s1", "Available")
    assert (library["event"], library["level"], library["logger"]) == ("slow callback of 2 s", "warning", "asyncio")
    assert {"timestamp"} <= ours.keys() & library.keys()


@pytest.mark.parametrize(
    ("level", "program", "library"),
    [
        ("debug", ["debug", "info", "warning", "error"], ["info", "warning", "error"]),
        ("info", ["info", "warning", "error"], ["warning", "error"]),
        ("warning", ["warning", "error"], ["error"]),
        ("error", ["error"], ["error"]),
    ],
)
def test_the_level_applies_to_the_program_and_its_libraries(level: str, program: list[str], library: list[str]) -> None:
    """Libraries are one level quieter: some log every connection."""
    stream = io.StringIO()
    logs.configure(stream, LogOptions("json", level))
    for name in logs.LEVELS:
        getattr(structlog.get_logger("test"), name)("program")
        getattr(logging.getLogger("library"), name)("library")
    written = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["level"] for line in written if line["event"] == "program"] == program
    assert [line["level"] for line in written if line["event"] == "library"] == library


@pytest.mark.parametrize("form", logs.FORMATS)
def test_fields_that_are_called_like_a_secret_are_masked(form: str) -> None:
    """A log call with a password by mistake does not show it."""
    stream = io.StringIO()
    logs.configure(stream, LogOptions(form))
    structlog.get_logger("test").info("login", password="hunter2", user="admin")
    assert "hunter2" not in stream.getvalue()
    assert "admin" in stream.getvalue()


def test_configuring_twice_writes_each_line_once() -> None:
    """The last stream gets all lines."""
    first, last = io.StringIO(), io.StringIO()
    logs.configure(first, LogOptions())
    logs.configure(last, LogOptions())
    logging.getLogger("library").error("failed")
    assert (first.getvalue(), last.getvalue().count("failed")) == ("", 1)


@pytest.mark.parametrize("colours", [False, True])
def test_texts_of_bmcs_do_not_control_the_terminal(colours: bool) -> None:
    """Escape sequences and line ends in fields are printed as escapes."""
    stream = io.StringIO()
    logs.configure(stream, LogOptions(), colours=colours)
    structlog.get_logger("test").info("transition", to="a\x1b[2J", reason="b\nforged")
    told = stream.getvalue()
    assert "\x1b[2J" not in told
    assert told.count("\n") == 1
    assert r"a\x1b[2J" in told
