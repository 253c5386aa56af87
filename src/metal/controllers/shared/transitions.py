"""Logs and counts each transition: a change of status.state, or of status.phase, that this process wrote.

In come the status before and after a write that the API has accepted. Out go one log line and two metrics, in the words
of the status itself: reason and message are those of the condition that describes the state, so that the log, the
condition and the Event of a transition say the same. Nothing is remembered; a write that was refused is no transition.
"""

from datetime import datetime
from typing import Any

import structlog

from metal.api.meta import Condition
from metal.controllers.shared.metrics import Metrics
from metal.kube.meta import conditions
from metal.kube.meta.objects import Kind, Object

_log = structlog.get_logger(__name__)
_MAIN = ("Ready", "Bound", "InMaintenance")
"""Types of the conditions that describe a state, of all kinds."""
_WARNINGS = frozenset({"Error", "Failed"})
NEW = "None"
"""The state of an object whose status has none yet, as a label of metrics."""


def record(metrics: Metrics, kind: Kind[Any], obj: Object, old: Any, new: Any) -> None:
    """Log and count the step from the status `old` to `new` of obj, if it is a transition."""
    before, after = state_of(old), state_of(new)
    if before == after:
        return
    reason, message = words(old, new)
    since: datetime | None = getattr(new, "since", None)
    seconds = _seconds(getattr(old, "since", None), since)
    metrics.transitions.labels(kind.kind, before or NEW, after or NEW).inc()
    if before and seconds is not None:
        metrics.state_seconds.labels(kind.kind, before).observe(seconds)
    meta = obj.metadata
    log = _log.warning if after in _WARNINGS else _log.info
    log(
        "transition", kind=kind.kind, namespace=meta.namespace or None, name=meta.name,
        **{"from": before, "to": after}, reason=reason, message=message,
        since=since.isoformat() if since is not None else None, seconds=seconds,
    )  # fmt: skip


def state_of(status: Any) -> str:
    """status.state, or status.phase where the kind has no state; empty where it has neither."""
    return str(getattr(status, "state", None) or getattr(status, "phase", None) or "")


def words(old: Any, new: Any) -> tuple[str, str]:
    """Reason and message of a transition: of the main condition, else of the first that changed, else what is missing.

    A main condition that did not change describes the former state, so another one that changed comes before it.
    """
    before: tuple[Condition, ...] = getattr(old, "conditions", ())
    after: tuple[Condition, ...] = getattr(new, "conditions", ())
    changed = [condition for condition in after if condition not in before]
    main = [condition for condition in changed if condition.type in _MAIN]
    kept = [found for type in _MAIN if (found := conditions.find(after, type)) is not None]
    chosen = next(iter((*main, *changed, *kept)), None)
    if chosen is None:
        return "", str(getattr(new, "waiting_for", "") or "; ".join(getattr(new, "owed", ())))
    return chosen.reason, chosen.message


def _seconds(since: datetime | None, until: datetime | None) -> float | None:
    return None if since is None or until is None else max(0.0, (until - since).total_seconds())
