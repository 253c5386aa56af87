"""No loop: the versions of one Server, the resets that its machine gets, and what its BMC rejects are bounded."""

from collections import defaultdict, deque
from collections.abc import Mapping
from datetime import datetime, timedelta

from metal.api.names import OPERATION
from metal.api.server import Server, ServerStatus, State
from metal.controllers.server.reasons import is_of_bmc
from metal.sim.history import History, MachineEvent, ObjectChange
from metal.sim.invariants.world import LONG_AGO, PASS, Entry, InvariantViolation, replay, violation

_MINUTE, _HOUR = timedelta(minutes=1), timedelta(hours=1)
MOST_VERSIONS = 90
"""Versions of one Server's status in a minute; other clients write metadata. An enrolment and a claim in the same
minute are about 40; a loop of a controller makes hundreds."""
MOST_RESETS = 30
"""Resets of one machine in a minute. A power change that a BMC forgets is repeated every few seconds."""
MOST_REJECTED = 60
"""Requests of one kind that the BMC of one machine rejects in an hour. The pauses of an operation that fails grow to
two minutes; one that is repeated at every pass is rejected hundreds of times."""

MOST_REQUESTS = {"reads": 240, "writes": 60}
"""Requests to one BMC in a minute. An enrolment with its inventories and a boot in the same minute are about 90 reads,
the sessions and settings of several objects for one BMC about 25 writes. A loop without a pause makes 2,000 in a minute
at 30 ms for each."""


def check_load(busiest: Mapping[str, Mapping[str, int]]) -> None:
    """No BMC gets more requests in a minute than the limits; `busiest` has the most of each type for each BMC.

    Raises InvariantViolation.
    """
    for name, counts in busiest.items():
        for kind, count in counts.items():
            if count > MOST_REQUESTS[kind]:
                text = f"BMC {name} got {count} {kind} within a minute; at most {MOST_REQUESTS[kind]} are allowed"
                raise InvariantViolation(text)


def check_bounded(history: History) -> None:
    """No status has more versions, no machine more resets, and no BMC rejects more of one request than the limits."""
    seen: dict[tuple[str, str], deque[datetime]] = defaultdict(deque)
    last: dict[str, ServerStatus] = {}
    for entry in history:
        if isinstance(entry, ObjectChange) and entry.kind == "Server" and entry.obj is not None:
            before, last[entry.name] = last.get(entry.name), entry.obj.status
            if before == entry.obj.status:
                continue
            _count(history, entry, seen[("version", entry.name)], MOST_VERSIONS, "versions", entry.name)
        elif isinstance(entry, MachineEvent) and entry.what == "reset":
            _count(history, entry, seen[("reset", entry.machine)], MOST_RESETS, "resets", entry.machine)
        elif isinstance(entry, MachineEvent) and entry.what == "rejected":
            times, what = seen[(str(entry.details["request"]), entry.machine)], "rejected requests"
            _count(history, entry, times, MOST_REJECTED, what, entry.machine, _HOUR)


def _count(
    history: History, entry: Entry, times: deque[datetime], most: int, what: str, name: str, span: timedelta = _MINUTE
) -> None:
    times.append(entry.at)
    while times[0] <= entry.at - span:
        times.popleft()
    if len(times) > most:
        length = "an hour" if span == _HOUR else "a minute"
        text = f"{name} had {len(times)} {what} within {length}; at most {most} are allowed"
        raise violation(history, entry, text, server=name, machine=name)


def check_attempts(history: History) -> None:
    """The end of an outage of the BMC, or of a failing operation on it, does not reset the count of network boots."""
    asked: dict[str, datetime] = {}
    for entry, world in replay(history):
        if not isinstance(entry, ObjectChange) or entry.kind != "Server" or entry.obj is None:
            continue
        if any(key.endswith(f"/{OPERATION}") for key in entry.obj.metadata.annotations):
            asked[entry.name] = entry.at
        old, new = world.servers.get(entry.name), entry.obj
        if old is None or entry.at - asked.get(entry.name, LONG_AGO) < PASS or not _has_recovered(old, new):
            continue
        if new.status.boot_attempts < old.status.boot_attempts:
            text = f"server {entry.name} counts {new.status.boot_attempts} network boots after an outage, before "
            text += str(old.status.boot_attempts)
            raise violation(history, entry, text, server=entry.name, machine=new.uuid)


def _has_recovered(old: Server, new: Server) -> bool:
    """True for the end of a failure of the BMC, by which the server continues in the state that was interrupted."""
    failure = old.status.failure
    if old.status.state != State.ERROR or failure is None or not is_of_bmc(failure.reason):
        return False
    return new.status.state == failure.state and old.spec == new.spec
