"""No loop: the versions of one Server, and the resets that its machine gets, are bounded in each minute."""

from collections import defaultdict, deque
from datetime import datetime, timedelta

from metal.sim.history import History, MachineEvent, ObjectChange
from metal.sim.invariants.world import Entry, violation

_MINUTE = timedelta(minutes=1)
MOST_VERSIONS = 90
"""Versions of one Server in a minute, whoever wrote them. An enrolment and a claim in the same minute are about 40; a
loop of a controller makes hundreds."""
MOST_RESETS = 30
"""Resets of one machine in a minute. A power change that a BMC forgets is repeated every few seconds."""


def check_bounded(history: History) -> None:
    """No Server has more versions, and no machine more resets, in any minute than the limits."""
    seen: dict[tuple[str, str], deque[datetime]] = defaultdict(deque)
    for entry in history:
        if isinstance(entry, ObjectChange) and entry.kind == "Server" and entry.obj is not None:
            _count(history, entry, seen[("version", entry.name)], MOST_VERSIONS, "versions", entry.name)
        elif isinstance(entry, MachineEvent) and entry.what == "reset":
            _count(history, entry, seen[("reset", entry.machine)], MOST_RESETS, "resets", entry.machine)


def _count(history: History, entry: Entry, times: deque[datetime], most: int, what: str, name: str) -> None:
    times.append(entry.at)
    while times[0] <= entry.at - _MINUTE or times[0] > entry.at:  # the latter when a clock was set back
        times.popleft()
    if len(times) > most:
        text = f"{name} had {len(times)} {what} within a minute; at most {most} are allowed"
        raise violation(history, entry, text, server=name, machine=name)
