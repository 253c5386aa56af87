"""What happened, in order: what machines did, and how objects in the API changed. Invariants are checked over it."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from metal.kube.meta.clock import Clock, system_clock


@dataclass(frozen=True)
class Happening:
    """One thing a machine did that others can see."""

    at: datetime
    machine: str
    """UUID of the machine."""
    what: str
    """reset, power, override, lease, fetch, report, os or disk."""
    details: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        details = " ".join(f"{key}={value}" for key, value in self.details.items())
        return f"{self.at:%H:%M:%S.%f} {self.machine[:8]} {self.what} {details}".rstrip()


@dataclass(frozen=True)
class Change:
    """One version of an object; None when it was deleted."""

    at: datetime
    kind: str
    namespace: str
    name: str
    obj: Any


class History:
    """Entries of both sorts, oldest first. `limit` keeps only the newest."""

    def __init__(self, clock: Clock = system_clock, *, limit: int | None = None) -> None:
        self._clock = clock
        self._entries: deque[Happening | Change] = deque(maxlen=limit)

    def __repr__(self) -> str:
        return f"<History {len(self._entries)} entries>"

    def __iter__(self) -> Iterator[Happening | Change]:
        return iter(self._entries)

    def happened(self, machine: str, what: str, **details: Any) -> None:
        """Append what a machine did. Never give it a secret."""
        self._entries.append(Happening(self._clock(), machine, what, details))

    def changed(self, kind: str, namespace: str, name: str, obj: Any) -> None:
        """Append a version of an object."""
        self._entries.append(Change(self._clock(), kind, namespace, name, obj))

    def of(self, machine: str, *what: str) -> list[Happening]:
        """What one machine did, of certain sorts where given."""
        return [
            entry
            for entry in self._entries
            if isinstance(entry, Happening) and entry.machine == machine and (not what or entry.what in what)
        ]
