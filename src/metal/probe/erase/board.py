"""The state of every drive's erasure, shared by the worker threads and the reporter, and its form in a report."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from metal.probe.erase.drives import Drive

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
LOCKED, MISSING, READ_ONLY = "Locked", "Missing", "ReadOnly"


@dataclass
class Record:
    """One drive's erasure; the fields are those of the report."""

    drive: Drive
    method: str = ""
    reached: str = ""
    """The class of the method that succeeded."""
    started: float | None = None
    """Seconds since 1970, as `ended`."""
    ended: float | None = None
    percent: float = 0.0
    seconds_left: float | None = None
    samples_read: int = 0
    samples_differ: int = 0
    result: str = PENDING
    message: str = ""

    def wire(self) -> dict[str, Any]:
        """The drive's object in the report."""
        drive = self.drive
        return {
            "name": drive.name,
            "serialNumber": drive.serial,
            "wwn": drive.wwn,
            "model": drive.model,
            "transport": drive.transport,
            "size": drive.size,
            "rotational": drive.rotational,
            "slot": drive.slot,
            "method": self.method,
            "class": self.reached,
            "startedAt": stamp(self.started),
            "endedAt": stamp(self.ended),
            "percent": int(self.percent),
            "secondsLeft": None if self.seconds_left is None else int(self.seconds_left),
            "samplesRead": self.samples_read,
            "samplesDiffer": self.samples_differ,
            "result": self.result,
            "message": self.message,
        }


@dataclass
class Board:
    """All records; worker threads write them, the reporting thread reads them."""

    records: list[Record]
    wall: Callable[[], float]
    """Seconds since 1970."""
    problems: list[str] = field(default_factory=list)
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started, self.version = self.wall(), 0
        self._changed = threading.Condition()

    def update(self, record: Record, **fields: Any) -> None:
        """Set fields of a record; a result notifies the reporting thread."""
        with self._changed:
            for name, value in fields.items():
                setattr(record, name, value)
            if "result" in fields:
                self.version += 1
                self._changed.notify_all()

    def wait(self, seen: int, seconds: float) -> None:
        """Return when a result came since the version `seen`, when all drives have one, or after a time."""
        with self._changed:
            self._changed.wait_for(lambda: self.version != seen or self._done(), seconds)

    def done(self) -> bool:
        """Whether every drive has its result."""
        with self._changed:
            return self._done()

    def _done(self) -> bool:
        return not any(record.result in (PENDING, RUNNING) for record in self.records)

    def succeeded(self) -> bool:
        """Whether every drive is erased."""
        with self._changed:
            return all(record.result == SUCCEEDED for record in self.records)

    def wire(self, done: bool) -> dict[str, Any]:
        """The report."""
        with self._changed:
            return {
                "done": done,
                "startedAt": stamp(self.started),
                "now": stamp(self.wall()),
                "problems": list(self.problems),
                "drives": [record.wire() for record in self.records],
            }


def stamp(seconds: float | None) -> str | None:
    """A time of the registry's API (RFC 3339, UTC)."""
    return None if seconds is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def records(drives: Sequence[Drive], missing: Sequence[Drive]) -> list[Record]:
    """A record for each drive, and for each drive of the inventory that was not found."""
    lost = "the drive is in the inventory, but was not found in the machine"
    absent = [Record(drive, result=MISSING, message=lost) for drive in missing]
    return [*(Record(drive) for drive in drives), *absent]
