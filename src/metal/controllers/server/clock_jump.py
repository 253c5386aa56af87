"""The moments of a Server's status that are corrected when the clock was set back (see `shared.clock_jump`).

The record of a failing operation is shifted as a whole, also when it is only a little in the future: only the Server
controller writes it.
"""

from datetime import datetime

import msgspec

from metal.api.server import FailingOperation, ServerStatus
from metal.controllers.server.reasons import ConditionType
from metal.controllers.shared import clock_jump
from metal.controllers.shared.clock_jump import Moments, Record

_MOMENTS = Moments(
    fields=("on_requested_at", "since"),
    records={
        "wait": Record("since", "until"),
        "boot_window": Record("opened_at", "expires_at", ("script_served_at", "ignition_served_at")),
        "power_request": Record("requested_at", "deadline", ("forced_at",)),
        "operation_request": Record("requested_at", "deadline", ("asked_at",)),
    },
    conditions=(ConditionType.BMC_REACHABLE,),
)


def corrected(status: ServerStatus, now: datetime) -> ServerStatus:
    """The status with no such moment well after `now`; the very same object where nothing is wrong."""
    status = clock_jump.corrected(status, now, _MOMENTS)
    failing = tuple(_shifted_failure(one, now) for one in status.failing_operations)
    if all(one is other for one, other in zip(failing, status.failing_operations, strict=True)):
        return status
    return msgspec.structs.replace(status, failing_operations=failing)


def _shifted_failure(known: FailingOperation, now: datetime) -> FailingOperation:
    """How long the operation has failed, and the pause before the next request, stay as they were."""
    if known.last_failed_at is None or known.last_failed_at <= now:
        return known
    back = known.last_failed_at - now
    moments = {name: getattr(known, name) for name in ("first_failed_at", "last_failed_at", "retry_at")}
    return msgspec.structs.replace(known, **{name: at - back for name, at in moments.items() if at is not None})
