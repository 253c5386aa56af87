"""The history of a fleet in order: events of machines and versions of API objects. Invariants are checked over it."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from metal.kube.meta.clock import Clock, system_clock


@dataclass(frozen=True)
class MachineEvent:
    """One observable event of a machine."""

    at: datetime
    """Moment on a clock that is never set."""
    machine: str
    """UUID of the machine."""
    what: str
    """Type of the event: reset, power, override, bios, lease, fetch, script, report, os, disk, mainboard or drives;
    manager when one has come back after a long absence."""
    details: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        details = " ".join(f"{key}={value}" for key, value in self.details.items())
        return f"{self.at:%H:%M:%S.%f} {self.machine[:8]} {self.what} {details}".rstrip()


@dataclass(frozen=True)
class ObjectChange:
    """One version of an object; `obj` is None when it was deleted."""

    at: datetime
    """Moment on a clock that is never set."""
    kind: str
    namespace: str
    name: str
    obj: Any
    shown: datetime
    """The same moment on the clock that the objects are written with, which may be set."""


class History:
    """Entries of both types, oldest first. `limit` keeps only the newest.

    `clock` is the one that the objects are written with, `steady` one that is never set, if the other one is.
    """

    def __init__(self, clock: Clock = system_clock, *, steady: Clock | None = None, limit: int | None = None) -> None:
        self._clock, self._steady = clock, steady or clock
        self._entries: deque[MachineEvent | ObjectChange] = deque(maxlen=limit)

    def __repr__(self) -> str:
        return f"<History {len(self._entries)} entries>"

    def __iter__(self) -> Iterator[MachineEvent | ObjectChange]:
        return iter(self._entries)

    def now(self) -> datetime:
        """The present moment on the clock that is never set."""
        return self._steady()

    def happened(self, machine: str, what: str, **details: Any) -> None:
        """Append an event of a machine. `details` must not contain secrets."""
        self._entries.append(MachineEvent(self._steady(), machine, what, details))

    def changed(self, kind: str, namespace: str, name: str, obj: Any) -> None:
        """Append a version of an object."""
        self._entries.append(ObjectChange(self._steady(), kind, namespace, name, obj, self._clock()))

    def of(self, machine: str, *what: str) -> list[MachineEvent]:
        """The events of one machine, of certain types if given."""
        return [
            entry
            for entry in self._entries
            if isinstance(entry, MachineEvent) and entry.machine == machine and (not what or entry.what in what)
        ]
