"""Logs each transition of an object: a change of status.state, or of status.phase where the kind has no state.

In come the status before and after a write that the API has accepted. Out goes one log line in the words of the status
itself: reason and message are those of the condition that describes the state, so that the log, the condition and the
Event of a transition say the same. Nothing is remembered; a write that was refused is no transition.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from metal.kube.meta import conditions
from metal.kube.meta.objects import Kind, Object

_log = structlog.get_logger(__name__)
_WARNINGS = frozenset({"Error", "Failed"})


@dataclass(frozen=True)
class Transition:
    """One step from a state to another; `seconds` is the time in the former one, where it is known."""

    before: str
    after: str
    seconds: float | None


def log_transition(
    kind: Kind[Any], obj: Object, old: Any, new: Any, *, main: tuple[str, ...] = ("Ready",)
) -> Transition | None:
    """Log the step from the status `old` to `new` of obj; None when it is no transition.

    Args: main are the types of the conditions that describe the state of this kind.
    """
    before, after = state_of(old), state_of(new)
    if before == after:
        return None
    reason, message = words(old, new, main)
    since: datetime | None = getattr(new, "since", None)
    seconds, meta = _seconds(getattr(old, "since", None), since), obj.metadata
    log = _log.warning if after in _WARNINGS else _log.info
    log(
        "transition", kind=kind.kind, namespace=meta.namespace or None, name=meta.name,
        **{"from": before, "to": after}, reason=reason, message=message,
        since=since.isoformat() if since is not None else None, seconds=seconds,
    )  # fmt: skip
    return Transition(before, after, seconds)


def state_of(status: Any) -> str:
    """status.state, or status.phase where the kind has no state; empty where it has neither."""
    return str(getattr(status, "state", None) or getattr(status, "phase", None) or "")


def words(old: Any, new: Any, main: tuple[str, ...]) -> tuple[str, str]:
    """Reason and message of a transition: of the main condition, else of the first that changed, else what is missing.

    A main condition that did not change describes the former state, so another one that changed comes before it.
    """
    before: tuple[Any, ...] = getattr(old, "conditions", ())
    after: tuple[Any, ...] = getattr(new, "conditions", ())
    changed = [condition for condition in after if condition not in before]
    first = [condition for condition in changed if condition.type in main]
    kept = [found for type in main if (found := conditions.find(after, type)) is not None]
    chosen = next(iter((*first, *changed, *kept)), None)
    if chosen is None:
        return "", str(getattr(new, "waiting_for", "") or "; ".join(getattr(new, "owed", ())))
    return chosen.reason, chosen.message


def _seconds(since: datetime | None, until: datetime | None) -> float | None:
    return None if since is None or until is None else max(0.0, (until - since).total_seconds())
