"""What the control plane reported, read from a history: waits with their durations, conditions, Events, failures."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime

from metal.api.core import Event
from metal.api.server import Server
from metal.sim.history import History, ObjectChange

STOOD = 10.0
"""Seconds that a wait has to last to be noticed."""


@dataclass
class Report:
    """What was reported after some moment, in the words of `tests.sim.rows`."""

    words: set[str] = field(default_factory=set)
    """`Type=Status Reason`, `Event Reason`, `Error Reason`; of anything but a Server with `Kind: ` before it."""
    warnings: set[str] = field(default_factory=set)
    """Reasons of the Warning Events on Servers."""
    stood: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Seconds that each wait lasted, by its name."""
    messages: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The messages of each word."""

    def add(self, word: str, message: str) -> None:
        """Record a condition, an Event or a failure."""
        self.words.add(word)
        self.messages[word].add(message)

    @property
    def waits(self) -> set[str]:
        """The waits that lasted long enough to be noticed."""
        return {name for name, seconds in self.stood.items() if seconds >= STOOD}

    @property
    def errors(self) -> set[str]:
        """Reasons of status.failure."""
        return {word.removeprefix("Error ") for word in self.words if word.startswith("Error ")}


def reported(history: History, since: datetime, until: datetime) -> Report:
    """Everything that was reported between two moments, and the wait in the Server's status at the first one."""
    report = Report()
    waits: dict[str, tuple[str, datetime]] = {}
    for entry in history:
        if not isinstance(entry, ObjectChange) or entry.obj is None or entry.at > until:
            continue
        if isinstance(entry.obj, Server):
            _stand(report, waits, entry.name, _wait(entry.obj), max(entry.at, since))
        if entry.at >= since:
            _record(report, entry)
    for name in list(waits):
        _stand(report, waits, name, "", until)
    return report


def _wait(server: Server) -> str:
    return server.status.wait.for_ if server.status.wait is not None else ""


def _stand(report: Report, waits: dict[str, tuple[str, datetime]], name: str, wait: str, at: datetime) -> None:
    old, since = waits.get(name, ("", at))
    if old == wait:
        waits.setdefault(name, (wait, at))
        return
    report.stood[old] += (at - since).total_seconds()
    waits[name] = (wait, at)


def _record(report: Report, entry: ObjectChange) -> None:
    obj, mark = entry.obj, "" if entry.kind == "Server" else f"{entry.kind}: "
    if isinstance(obj, Event):
        of = obj.involved_object.kind
        report.add(f"Event {obj.reason}" if of == "Server" else f"{of}: Event {obj.reason}", obj.message)
        if of == "Server" and obj.type == "Warning":
            report.warnings.add(obj.reason)
        return
    status = getattr(obj, "status", None)
    for one in getattr(status, "conditions", ()):
        report.add(f"{mark}{one.type}={one.status} {one.reason}", one.message)
    if isinstance(obj, Server) and obj.status.failure is not None:
        report.add(f"Error {obj.status.failure.reason}", obj.status.failure.message)
