"""Reads the Events of an object."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from metal.api.core import EVENT
from metal.cli.support import dynamic
from metal.cli.support.columns import aligned
from metal.cli.support.dynamic import Obj
from metal.cli.support.table import age, printable
from metal.kube.client.errors import Forbidden
from metal.kube.client.http import HTTPClient

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class EventSummary:
    """An Event; `last` is the time at which it was last seen."""

    type: str
    reason: str
    message: str
    count: int
    last: datetime | None

    def as_json(self) -> dict[str, Any]:
        """Return the Event for programs, with the field names of the API."""
        last = self.last.isoformat().replace("+00:00", "Z") if self.last else None
        fields = {"type": self.type, "reason": self.reason, "message": self.message}
        return {**fields, "count": self.count, "lastTimestamp": last}


async def of(http: HTTPClient, obj: Obj) -> list[EventSummary]:
    """Return the Events of an object, oldest first; none if access is denied."""
    meta = obj["metadata"]
    fields = f"involvedObject.uid={meta['uid']},involvedObject.name={meta['name']}"
    try:
        found = await dynamic.listed(http, EVENT, meta.get("namespace") or "default", fields=fields)
    except Forbidden:
        return []
    events = [_read(item) for item in found["items"]]
    return sorted(events, key=lambda event: (event.last or _NEVER, event.reason))


def _read(item: Obj) -> EventSummary:
    stamp = item.get("lastTimestamp") or item.get("eventTime") or item["metadata"].get("creationTimestamp")
    return EventSummary(
        type=item.get("type", ""),
        reason=item.get("reason", ""),
        message=item.get("message", ""),
        count=int(item.get("count") or 1),
        last=moment(stamp),
    )


def moment(stamp: Any) -> datetime | None:
    """Parse an RFC 3339 time; None for none."""
    return datetime.fromisoformat(stamp.replace("Z", "+00:00")) if stamp else None


def lines(events: Iterable[EventSummary], now: datetime) -> list[str]:
    """Return the Events as a table."""
    rows = [[age(one.last, now), one.type, one.reason, _times(one) + one.message] for one in events]
    return aligned(["LAST SEEN", "TYPE", "REASON", "MESSAGE"], rows) if rows else []


def _times(event: EventSummary) -> str:
    return f"({event.count} times) " if event.count > 1 else ""


def sentence(event: EventSummary, now: datetime) -> str:
    """Return an Event as one line."""
    return printable(f"{age(event.last, now)} ago: {event.reason}: {_times(event)}{event.message}")
