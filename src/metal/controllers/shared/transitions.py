"""Logs and counts each transition that a controller wrote."""

from typing import Any

from metal.controllers.shared.metrics import Metrics
from metal.kube.controller.transitions import log_transition
from metal.kube.meta.objects import Kind, Object

_MAIN = ("Ready", "Bound", "InMaintenance")
"""Types of the conditions that describe a state, of all kinds."""
NEW = "None"
"""The state of an object whose status has none yet, as a label of metrics."""


def record(metrics: Metrics, kind: Kind[Any], obj: Object, old: Any, new: Any) -> None:
    """Log and count the step from the status `old` to `new` of obj, if it is a transition."""
    step = log_transition(kind, obj, old, new, main=_MAIN)
    if step is None:
        return
    metrics.transitions.labels(kind.kind, step.before or NEW, step.after or NEW).inc()
    if step.before and step.seconds is not None:
        metrics.state_seconds.labels(kind.kind, step.before).observe(step.seconds)
