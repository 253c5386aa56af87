"""The table of servers of `metalctl status` and of the live table of `metalctl up`."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from metal.api.server import Server, State

WIDE = 200
"""Width of a table when the output is not a terminal."""
_COLOURS = {
    "Available": "green",
    "Reserved": "cyan",
    "Error": "bold red",
    "Cleanup": "yellow",
    "Maintenance": "magenta",
    "Parked": "blue",
}


@dataclass(frozen=True)
class Row:
    """One server. Times are aware; age is the time since `since` as text."""

    server: str
    state: str
    since: datetime | None
    age: str
    power: str
    claim: str
    waiting_for: str
    wait_name: str
    deadline: datetime | None

    @property
    def urgency(self) -> tuple[int, str]:
        """Sort key: servers in Error first, then waiting ones, then the others."""
        return (0 if self.state == State.ERROR else 1 if self.waiting_for else 2, self.server)

    def as_json(self) -> dict[str, Any]:
        """Return the row for programs: field names of the API, times in RFC 3339 or null."""
        return {
            "server": self.server,
            "state": self.state,
            "since": _rfc3339(self.since),
            "power": self.power,
            "claim": self.claim,
            "waitingFor": self.waiting_for,
            "waitName": self.wait_name,
            "deadline": _rfc3339(self.deadline),
        }


def _rfc3339(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def rows(servers: Iterable[Server], now: datetime) -> list[Row]:
    """Return the rows, sorted by name."""
    return [_row(server, now) for server in sorted(servers, key=lambda s: s.metadata.name)]


def _row(server: Server, now: datetime) -> Row:
    status, ref = server.status, server.spec.server_claim_ref
    return Row(
        server=server.metadata.name,
        state=status.state or "Initial",
        since=status.since,
        age=age(status.since, now),
        power=status.power_state or "Unknown",
        claim=f"{ref.namespace}/{ref.name}" if ref else "",
        waiting_for=status.waiting_for,
        wait_name=status.wait.for_ if status.wait else "",
        deadline=status.wait.until if status.wait else None,
    )


def age(since: datetime | None, now: datetime) -> str:
    """Return a duration as kubectl prints it: 45s, 12m, 3h, 5d."""
    if since is None:
        return ""
    seconds = max(0, int((now - since).total_seconds()))
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def render(entries: Iterable[Row], *, limit: int | None = None) -> Table:
    """Return a table for a terminal. With `limit`, servers in Error or waiting come first and the rest is counted."""
    found = list(entries)
    if limit is not None and len(found) > limit:
        found.sort(key=lambda row: row.urgency)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("SERVER", "STATE", "SINCE", "POWER", "CLAIM", "WAITING FOR"):
        table.add_column(name, no_wrap=name != "WAITING FOR", overflow="ellipsis")
    for row in found[:limit]:
        state = Text(row.state, style=_COLOURS.get(row.state, ""))
        others = (_plain(text) for text in (row.age, row.power, row.claim, row.waiting_for))
        table.add_row(_plain(row.server), state, *others)
    if limit is not None and len(found) > limit:
        table.add_row(f"… and {len(found) - limit} more", "", "", "", "", "")
    return table


def printable(text: str) -> str:
    """Replace control characters: names of images come from users, and error messages from BMCs."""
    return "".join(char if char.isprintable() else " " for char in text)


def _plain(text: str) -> Text:
    """Return the text without interpreting markup."""
    return Text(printable(text))
