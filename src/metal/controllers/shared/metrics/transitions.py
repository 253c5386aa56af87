"""Logs and counts each transition that a controller wrote."""

from typing import Any

from metal.controllers.shared.metrics.metrics import Metrics
from metal.kube.controller.transitions import log_transition
from metal.kube.meta.objects import Kind, Object

_MAIN = ("Ready", "Bound", "InMaintenance")
"""Types of the conditions that describe a state, of all kinds."""
_BMC_STATES = (
    "Pending", "Error", "Enabled", "Disabled", "StandbyOffline", "StandbySpare", "InTest", "Starting", "Absent",
    "UnavailableOffline", "Deferring", "Quiesced", "Updating", "Qualified", "Degraded",
)  # fmt: skip
"""Ours, then those of Redfish (Resource.State, DSP0268)."""
OTHER = "Other"
"""Any other state of a BMC, as a label of metrics."""
NEW = "None"
"""The state of an object whose status has none yet, as a label of metrics."""


def record(metrics: Metrics, kind: Kind[Any], obj: Object, old: Any, new: Any) -> None:
    """Log and count the step from the status `old` to `new` of obj, if it is a transition."""
    step = log_transition(kind, obj, old, new, main=_MAIN)
    if step is None:
        return
    before, after = (_label(kind, state) for state in (step.before, step.after))
    metrics.transitions.labels(kind.kind, before, after).inc()
    if step.before and step.seconds is not None:
        metrics.state_seconds.labels(kind.kind, before).observe(step.seconds)


def _label(kind: Kind[Any], state: str) -> str:
    """The state as a label. What a BMC reports as its own state is any text, and each new value would be a series."""
    if kind.kind == "BMC" and state and state not in _BMC_STATES:
        return OTHER
    return state or NEW
