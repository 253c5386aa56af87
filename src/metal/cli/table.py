"""What people see of servers: one row each. Used by `metalctl status` and by the live table of `metalctl up`."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime

from rich.table import Table
from rich.text import Text

from metal.api.server import Server

_COLOURS = {
    "Available": "green",
    "Reserved": "cyan",
    "Error": "bold red",
    "Cleanup": "yellow",
    "Maintenance": "magenta",
}


@dataclass(frozen=True)
class Row:
    """One server."""

    server: str
    state: str
    since: str
    power: str
    claim: str
    waiting_for: str

    def as_json(self) -> dict[str, str]:
        """The row with the API's spelling of names."""
        fields = asdict(self)
        fields["waitingFor"] = fields.pop("waiting_for")
        return fields


def rows(servers: Iterable[Server], now: datetime) -> list[Row]:
    """Rows in the order of names."""
    return [_row(server, now) for server in sorted(servers, key=lambda s: s.metadata.name)]


def _row(server: Server, now: datetime) -> Row:
    status, ref = server.status, server.spec.server_claim_ref
    return Row(
        server=server.metadata.name,
        state=status.state or "Initial",
        since=age(status.since, now),
        power=status.power_state or "Unknown",
        claim=f"{ref.namespace}/{ref.name}" if ref else "",
        waiting_for=status.waiting_for,
    )


def age(since: datetime | None, now: datetime) -> str:
    """A duration in the way of kubectl: 45s, 12m, 3h, 5d."""
    if since is None:
        return ""
    seconds = max(0, int((now - since).total_seconds()))
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def render(entries: Iterable[Row], *, limit: int | None = None) -> Table:
    """A table for a terminal; with `limit`, the rest is counted."""
    found = list(entries)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("SERVER", "STATE", "SINCE", "POWER", "CLAIM", "WAITING FOR"):
        table.add_column(name, no_wrap=name != "WAITING FOR", overflow="ellipsis")
    for row in found[:limit]:
        state = Text(row.state, style=_COLOURS.get(row.state, ""))
        others = (_plain(text) for text in (row.since, row.power, row.claim, row.waiting_for))
        table.add_row(_plain(row.server), state, *others)
    if limit is not None and len(found) > limit:
        table.add_row(f"… and {len(found) - limit} more", "", "", "", "", "")
    return table


def _plain(text: str) -> Text:
    """As it is, not as markup or escape sequences: images are named by tenants, and BMCs word their own errors."""
    return Text("".join(char if char.isprintable() else " " for char in text))
