"""Shared parts of the commands on objects."""

import io
from datetime import timedelta

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from metal.cli.main import main
from metal.cli.objects.tables import TablePrinter
from metal.cli.support.columns import aligned
from metal.cli.support.context import each
from metal.cli.support.durations import Duration, spoken
from metal.cli.support.exits import EXITS, Missing, MultipleFailures, TimedOut, failure
from metal.cli.support.progress import Progress
from metal.kube.client import errors


def test_without_a_terminal_each_change_is_a_line() -> None:
    """The same text is not repeated, and control characters are replaced."""
    stream = io.StringIO()
    progress = Progress(stream)
    for text in ("power On", "power On", "the \x1b[31mprobe"):
        progress.show("server/s1", text)
    progress.done("server/s1")
    assert stream.getvalue() == "server/s1: waiting for power On\nserver/s1: waiting for the  [31mprobe\n"


def test_on_a_terminal_there_is_one_line() -> None:
    """The line is overwritten, cut at the width of the terminal, and cleared at the end."""
    stream = io.StringIO()
    progress = Progress(stream, live=True)
    progress.show("a", "x" * 500)
    progress.show("b", "power On")
    progress.done("a")
    first, second, *rest = stream.getvalue().split("\r\x1b[2K")[1:]
    assert len(first) < 500
    assert first.endswith("…")
    assert second == "b: waiting for power On (and 1 more)"
    assert "".join(rest) == ""
    assert "\n" not in stream.getvalue()


@given(st.integers(1, 10**6))
def test_durations_are_parsed(seconds: int) -> None:
    """1h30m and 5400s are equal."""
    duration = timedelta(seconds=seconds)
    assert Duration().convert(spoken(duration), None, None) == duration


@pytest.mark.parametrize("text", ["", "0s", "5", "-1m", "1d", "m", "1m1h", "1.5h"])
def test_an_invalid_duration_is_rejected(text: str) -> None:
    """An invalid duration is an error with an example."""
    with pytest.raises(click.BadParameter, match="use a format such as 90s, 30m or 1h30m"):
        Duration().convert(text, None, None)


@given(st.lists(st.lists(st.text(max_size=6), min_size=3, max_size=3), max_size=5))
def test_columns_are_aligned(rows: list[list[str]]) -> None:
    """Each cell begins below its header, whatever its content is; a row is one line."""
    lines = aligned(["A", "B", "C"], rows)
    assert len(lines) == len(rows) + 1
    at = lines[0].index("B")
    for line, row in zip(lines[1:], rows, strict=True):
        plain = "".join(char if char.isprintable() else " " for char in row[1])
        assert line[at : at + len(plain)].rstrip() == plain.rstrip() or not plain.strip()


def test_a_table_that_grows_keeps_its_columns() -> None:
    """Later rows of a watch are aligned with the header."""
    columns = [{"name": "Name"}, {"name": "State", "priority": 0}, {"name": "Serial", "priority": 1}]
    first = {"columnDefinitions": columns, "rows": [{"cells": ["server-1", None, "x"], "object": None}]}
    printed = TablePrinter()
    assert printed.whole(first) == ["NAME       STATE", "server-1   <none>"]
    assert printed.more({"columnDefinitions": None, "rows": [{"cells": ["s", True, "x"]}]}) == ["s          true"]


@pytest.mark.parametrize(
    ("exc", "code", "text"),
    [
        (errors.NotFound("x", details={"name": "s1", "kind": "servers"}), 3, "servers s1 not found"),
        (errors.NotFound("the path"), 3, "the API server has no such kind in group g: the path"),
        (errors.Unavailable("no answer"), 1, "Check that `metalctl up` is running"),
        (errors.Conflict("changed"), 1, "run the command again"),
        (errors.Forbidden("no"), 1, "access denied: no"),
        (errors.Invalid("spec.x: no"), 1, "the API server rejected the request: spec.x: no"),
    ],
)
def test_api_errors_have_an_exit_code_and_a_message(exc: errors.ApiError, code: int, text: str) -> None:
    """Each API error has its exit code; 3 is used only for missing objects and kinds."""
    found = failure(exc, "g")
    assert (found.exit_code, text in found.message) == (code, True)


async def test_several_failures_are_printed_and_share_an_exit_code() -> None:
    """Other names are processed; a repeated name is processed once; a common exit code is kept."""
    done = []

    async def work(name: str) -> None:
        done.append(name)
        if name == "late":
            raise TimedOut("late")
        if name.startswith("no"):
            raise Missing(name)

    with pytest.raises(MultipleFailures) as both:
        await each(["no1", "ok", "no2", "ok"], work)
    assert (both.value.exit_code, both.value.message, done) == (3, "no1; no2", ["no1", "ok", "no2"])
    with pytest.raises(MultipleFailures) as mixed:
        await each(["no1", "late"], work)
    assert mixed.value.exit_code == 1
    with pytest.raises(TimedOut):
        await each(["late"], work)


@pytest.mark.parametrize("name", ["get", "describe", "apply", "delete", "claim", "release", "cordon", "why", "console"])
def test_help_has_the_exit_codes(name: str) -> None:
    """The help of each command has the exit codes."""
    text = " ".join(CliRunner().invoke(main, [name, "--help"]).output.split())
    assert EXITS in text
