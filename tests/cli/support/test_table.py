"""The table of servers."""

from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from metal.api.common import ObjectRef
from metal.api.meta import ObjectMeta
from metal.api.server import Server, ServerSpec, ServerStatus, Wait
from metal.cli.support.table import age, render, rows

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _server(name: str, **status: object) -> Server:
    return Server(metadata=ObjectMeta(name=name), status=ServerStatus(**status))  # type: ignore[arg-type]  # status fields


def test_a_row_says_state_since_power_claim_and_wait() -> None:
    """A row has state, age, power, claim and wait."""
    server = Server(
        metadata=ObjectMeta(name="a"),
        spec=ServerSpec(server_claim_ref=ObjectRef(namespace="default", name="c")),
        status=ServerStatus(
            state="Reserved",
            since=NOW - timedelta(minutes=5),
            power_state="On",
            waiting_for="x",
            wait=Wait(for_="Boot", since=NOW, until=NOW + timedelta(minutes=1)),
        ),
    )
    (row,) = rows([server], NOW)
    assert row.as_json() == {
        "server": "a", "state": "Reserved", "since": "2025-12-31T23:55:00Z", "power": "On", "claim": "default/c",
        "waitingFor": "x", "waitName": "Boot", "deadline": "2026-01-01T00:01:00Z",
    }  # fmt: skip
    assert row.age == "5m"


def test_programs_get_null_for_what_is_not_known() -> None:
    """A missing wait or time is null in JSON."""
    (row,) = rows([_server("a")], NOW)
    found = row.as_json()
    assert (found["since"], found["deadline"], found["waitName"]) == (None, None, "")


def test_rows_are_sorted_and_unknowns_are_words() -> None:
    """A server without status is Initial, and its power Unknown."""
    found = rows([_server("b"), _server("a")], NOW)
    assert [(r.server, r.state, r.power) for r in found] == [("a", "Initial", "Unknown"), ("b", "Initial", "Unknown")]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7200, "2h"), (172800, "2d"), (-5, "0s")],
)
def test_ages_read_like_those_of_kubectl(seconds: int, text: str) -> None:
    """Ages have kubectl's units; an age in the future is 0s."""
    assert age(NOW - timedelta(seconds=seconds), NOW) == text


def test_a_table_with_a_limit_counts_the_rest() -> None:
    """With a limit, the remaining servers are counted."""
    console = Console(width=100, record=True, file=None, quiet=True)
    table = render(rows([_server(f"s{n:04}") for n in range(1000)], NOW), limit=3)
    console = Console(width=100, record=True)
    with console.capture() as capture:
        console.print(table)
    text = capture.get()
    assert "s0002" in text
    assert "s0003" not in text
    assert "… and 997 more" in text


def _names(found: list[Server], limit: int) -> list[str]:
    console = Console(width=100, record=True)
    with console.capture() as capture:
        console.print(render(rows(found, NOW), limit=limit))
    return [line.split()[0] for line in capture.get().splitlines()[1:] if line.strip()]


def test_urgent_rows_come_first_on_a_small_screen() -> None:
    """With a limit, servers in Error come first, then waiting ones; without need the order is by name."""
    found = [_server(f"a{n}", state="Available") for n in range(5)]
    found += [_server("x", state="Discovery", waiting_for="w"), _server("z", state="Error", waiting_for="e")]
    assert _names(found, 3) == ["z", "x", "a0", "…"]
    assert _names(found, 7) == ["a0", "a1", "a2", "a3", "a4", "x", "z"]


def test_markup_and_control_characters_have_no_effect() -> None:
    """Markup in image names and control characters in BMC messages have no effect."""
    console = Console(width=120, record=True)
    server = _server("a", state="Error", waiting_for="image [/x] [red]y \x1b]0;z\x07 w\nv")
    console.print(render(rows([server], NOW)))
    shown = console.export_text()
    assert "image [/x] [red]y  ]0;z  w v" in shown
    assert "\x1b" not in shown
