"""No deadline moves to a later time because the clock was set back."""

from datetime import datetime, timedelta

from metal.api.server import Server, ServerStatus
from metal.sim.history import History, ObjectChange
from metal.sim.invariants.world import violation


def check_deadlines(history: History) -> None:
    """The same wait, and the same boot window, ends no later by the clock after the clock was set back.

    A wait that begins again ends later only if the clock was set back by less than the former one lasted: histories
    with a clock that is set back by seconds or minutes are not judged here.
    """
    last: dict[str, ObjectChange] = {}
    for entry in history:
        if not isinstance(entry, ObjectChange) or entry.kind != "Server":
            continue
        before = last.pop(entry.name, None)
        if entry.obj is None:
            continue
        last[entry.name] = entry
        if before is None or before.shown - before.at <= entry.shown - entry.at:
            continue
        old, new = _deadlines(before.obj.status), _deadlines(entry.obj.status)
        for what in sorted(old.keys() & new.keys()):
            if new[what] > old[what]:
                raise _moved(history, entry, what, new[what] - old[what])


def _deadlines(status: ServerStatus) -> dict[str, datetime]:
    """The deadlines of a status by what they end."""
    found = {}
    if status.wait is not None and status.wait.until is not None:
        found[f"the wait {status.wait.for_} in {status.state}"] = status.wait.until
    if status.boot_window is not None and status.boot_window.expires_at is not None:
        found[f"the boot window {status.boot_window.id}"] = status.boot_window.expires_at
    return found


def _moved(history: History, entry: ObjectChange, what: str, later: timedelta) -> Exception:
    server: Server = entry.obj
    text = f"the clock was set back, and {what} of server {entry.name} ends {later} later"
    return violation(history, entry, text, server=entry.name, machine=server.uuid)
