"""No deadline moves to a later time: neither while a wait lasts, nor because the clock was set back."""

from dataclasses import dataclass
from datetime import datetime

from metal.api.boot_window import Purpose
from metal.api.server import ServerStatus
from metal.controllers.server.reasons import WaitFor
from metal.sim.history import History, ObjectChange
from metal.sim.invariants.world import violation


@dataclass(frozen=True)
class _Deadline:
    since: datetime | None
    until: datetime
    of_erasure: bool
    """It is extended when the report of an erasure arrives during an outage, or larger drives become known."""


def check_deadlines(history: History) -> None:
    """The same wait, and the same boot window, ends no later than it did, also after the clock was set back.

    A wait that begins again after the clock was set back ends later by the clock only if the former one lasted longer
    than that: histories with a clock that is set back by seconds or minutes are not judged here.
    """
    last: dict[str, ObjectChange] = {}
    for entry in history:
        if not isinstance(entry, ObjectChange) or entry.kind != "Server":
            continue
        before = last.pop(entry.name, None)
        if entry.obj is None:
            continue
        last[entry.name] = entry
        if before is not None and (problem := _problem(before, entry)):
            raise violation(history, entry, f"server {entry.name}: {problem}", server=entry.name)


def _problem(before: ObjectChange, entry: ObjectChange) -> str:
    back = entry.shown - entry.at < before.shown - before.at
    old, new = _deadlines(before.obj.status), _deadlines(entry.obj.status)
    for what in sorted(old.keys() & new.keys()):
        was, now = old[what], new[what]
        if now.until > was.until and (back or (now.since == was.since and not now.of_erasure)):
            return f"{what} ends {now.until - was.until} later{' because the clock was set back' if back else ''}"
    return ""


def _deadlines(status: ServerStatus) -> dict[str, _Deadline]:
    """The deadlines of a status by what they end."""
    found, wait, window = dict[str, _Deadline](), status.wait, status.boot_window
    if wait is not None and wait.until is not None:
        text = f"the wait {wait.for_} in {status.state}"
        found[text] = _Deadline(wait.since, wait.until, wait.for_ == WaitFor.SANITIZATION)
    if window is not None and window.expires_at is not None:
        text = f"the boot window {window.id}"
        found[text] = _Deadline(window.opened_at, window.expires_at, window.purpose == Purpose.SANITIZATION)
    return found
