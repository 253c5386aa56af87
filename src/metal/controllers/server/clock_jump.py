"""Corrects the times of a status when the clock was set back, so that no deadline moves to a later time.

A moment that lies in the past by its meaning (the begin of a wait, the opening of a boot window, the time of a request)
and in the future by the clock was written before the clock was set back. Its record, that moment with the deadline
that belongs to it, is shifted by the difference: the record begins now, and its deadline is as far away as it was at
its begin. This happens once: afterwards the record is not in the future. Without it, each pass would compute another
deadline from the present time.

Only moments that the controller itself writes shift a deadline. Those that another replica writes (the boot server) are
limited to the present, since its clock may be ahead.

What is less than TOLERANCE in the future stays as it is: clocks of replicas differ a little, and a moment that another
replica has just written must not be changed, because it recognizes its own write by it when the answer was lost.
"""

from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from metal.api.meta import Condition
from metal.api.server import FailingOperation, ServerStatus
from metal.controllers.server.reasons import ConditionType

R = TypeVar("R", bound=msgspec.Struct)
TOLERANCE = timedelta(seconds=5)
"""Difference between the clocks of replicas that is no reason for a correction; no deadline is that short."""
_RECORDS = {
    "wait": ("since", "until"),
    "boot_window": ("opened_at", "expires_at"),
    "power_request": ("requested_at", "deadline"),
    "operation_request": ("requested_at", "deadline"),
}
"""Records of the status: the moment at which each began, and its deadline."""
_MOMENTS = {
    "boot_window": ("script_served_at", "ignition_served_at"),
    "power_request": ("forced_at",),
    "operation_request": ("asked_at",),
}
"""Further moments of a record that are never in the future."""


def corrected(status: ServerStatus, now: datetime) -> ServerStatus:
    """The status with no such moment well after `now`; the very same object where nothing is wrong."""
    latest = now + TOLERANCE
    changes: dict[str, Any] = {}
    for name, (begun, deadline) in _RECORDS.items():
        record = getattr(status, name)
        if record is None:
            continue
        fresh = _limited(_shifted(record, begun, deadline, now), _MOMENTS.get(name, ()), now)
        if fresh is not record:
            changes[name] = fresh
    if status.on_requested_at is not None and status.on_requested_at > latest:
        changes["on_requested_at"] = now
    if status.since is not None and status.since > latest:
        changes["since"] = now
    failing = tuple(_shifted_failure(one, now) for one in status.failing_operations)
    if any(one is not other for one, other in zip(failing, status.failing_operations, strict=True)):
        changes["failing_operations"] = failing
    conditions = tuple(_limited_condition(one, now) for one in status.conditions)
    if any(one is not other for one, other in zip(conditions, status.conditions, strict=True)):
        changes["conditions"] = conditions
    return msgspec.structs.replace(status, **changes) if changes else status


def _shifted(record: R, begun: str, deadline: str, now: datetime) -> R:
    since, until = getattr(record, begun), getattr(record, deadline)
    if since is None or since <= now + TOLERANCE:
        return record
    changes = {begun: now}
    if until is not None:
        changes[deadline] = until - (since - now)
    return msgspec.structs.replace(record, **changes)


def _shifted_failure(known: FailingOperation, now: datetime) -> FailingOperation:
    """How long the operation has failed, and the pause before the next request, stay as they were."""
    if known.last_failed_at is None or known.last_failed_at <= now:
        return known
    back = known.last_failed_at - now
    moments = {name: getattr(known, name) for name in ("first_failed_at", "last_failed_at", "retry_at")}
    return msgspec.structs.replace(known, **{name: at - back for name, at in moments.items() if at is not None})


def _limited(record: R, moments: tuple[str, ...], now: datetime) -> R:
    late = [name for name in moments if (at := getattr(record, name)) is not None and at > now + TOLERANCE]
    return msgspec.structs.replace(record, **dict.fromkeys(late, now)) if late else record


def _limited_condition(condition: Condition, now: datetime) -> Condition:
    """Only the condition from which a deadline follows; others may be written by other components."""
    at = condition.last_transition_time
    if condition.type != ConditionType.BMC_REACHABLE or at is None or at <= now + TOLERANCE:
        return condition
    return msgspec.structs.replace(condition, last_transition_time=now.replace(microsecond=0))
