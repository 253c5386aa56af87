"""A server is off when it becomes Available, and each of its waits has a name and a deadline."""

from datetime import datetime, timedelta

from metal.api.server import Server, State
from metal.sim.history import History, MachineEvent, ObjectChange
from metal.sim.invariants.world import LONG_AGO, Entry, World, became_available, replay, violation

_LATE = timedelta(minutes=5)
"""Tolerance after a deadline: the longest poll interval and a margin."""
_ENDLESS = ("", State.MAINTENANCE, State.PARKED, State.ERROR, State.RELEASED)
"""States that an administrator ends. The empty state waits for a manual decision about ambiguous ownership."""
_DECISIONS = ("DuplicateSystem", "MachineIdentity", "DriveOwed", "FormerTenant")
"""Waits for the decision of an administrator: only that ends them."""


def check_available_is_off(history: History, false_power_states: frozenset[str] = frozenset()) -> None:
    """A server that becomes Available is off, except machines (UUIDs) whose BMC reports a false power state.

    A server that failed while Available and returns to it may be on, and is being powered off.
    """
    for entry, world in replay(history):
        server = became_available(entry, world)
        if server is None or _was_available(world.servers.get(server.metadata.name)):
            continue
        if server.uuid not in false_power_states and world.power.get(server.uuid, "Off") != "Off":
            name, state = server.metadata.name, world.power[server.uuid]
            raise violation(
                history, entry, f"server {name} became Available while its power was {state}", server=name,
                machine=server.uuid,
            )  # fmt: skip


def _was_available(old: Server | None) -> bool:
    failure = old.status.failure if old is not None else None
    return failure is not None and failure.state == State.AVAILABLE


def check_waits(history: History) -> None:
    """Every wait has a name and a deadline, and ends soon after the deadline, or after the manager has come back.

    Deadlines are times of the manager's clock, which may be set ahead or back.
    """
    last, back, ahead = None, LONG_AGO, timedelta()
    for entry, world in replay(history):
        last = entry.at
        if isinstance(entry, MachineEvent) and entry.what == "manager":
            back = entry.at + ahead
        if isinstance(entry, ObjectChange):
            ahead = entry.shown - entry.at
        if isinstance(entry, ObjectChange) and entry.kind == "Server":
            _require_in_time(history, entry, world.servers.get(entry.name), entry.shown, back)
            if entry.obj is not None:
                _require_named(history, entry, entry.obj)
    if last is not None:
        _require_end(history, last + ahead, back)


def _require_named(history: History, entry: Entry, server: Server) -> None:
    status, name = server.status, server.metadata.name
    problem = ""
    if status.wait is not None and not status.wait.for_:
        problem = "has a wait without a name"
    elif status.wait is not None and status.wait.until is None and not _may_last(status.state, status.wait.for_):
        problem = f"waits for {status.wait.for_} without a deadline"
    elif status.waiting_for and status.wait is None and status.state != State.ERROR:
        problem = f"reports waitingFor {status.waiting_for!r} and has no wait"
    if problem:
        raise violation(history, entry, f"server {name} {problem}", server=name, machine=server.uuid)


def _may_last(state: str, wait: str) -> bool:
    return state in _ENDLESS or wait in _DECISIONS


def _require_end(history: History, last: datetime, back: datetime) -> None:
    world = World()
    newest: dict[str, Entry] = {}
    for entry in history:
        world.apply(entry)
        if isinstance(entry, ObjectChange) and entry.kind == "Server":
            newest[entry.name] = entry
    for name, server in world.servers.items():
        _require_in_time(history, newest[name], server, last, back)


def _require_in_time(history: History, entry: Entry, server: Server | None, now: datetime, back: datetime) -> None:
    wait = server.status.wait if server is not None else None
    if server is None or wait is None or wait.until is None or server.status.state == State.ERROR:
        return
    if now > max(wait.until, back) + _LATE:
        name = server.metadata.name
        raise violation(
            history, entry, f"server {name} still waited for {wait.for_} {now - wait.until} after the deadline",
            server=name, machine=server.uuid,
        )  # fmt: skip
