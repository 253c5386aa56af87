"""Records which operations on the BMC fail, until each of them succeeds: `status.failingOperations`.

A BMC may answer one request and fail another for hours, so each operation has its own record: first failure, last
failure, number of attempts, and the time before which it is not requested again.

`recorded.RecordedOperations` calls `failed` and `succeeded` for every request of the Server controller.

The pause before the next attempt depends on the operation:
- reading the system, with which every pass begins (`CONTACT`): `bmc_retry`;
- any other: the time since its first failure, but at least `bmc_retry` (`power_poll` after 409, which means that
  another change is in progress) and at most eight times `bmc_retry`; in state Error between one and four times the
  deadline `bmc_timeout` (`postpone`). A failing operation is requested about ten times before Error, and then about
  once an hour.

`seconds_left` delays the request, however often a pass runs. The deadline counts from the first failure (`is_overdue`);
other requests that succeed do not extend it. Failures to reach the BMC are counted at intervals only, to limit writes;
the record has the message of the last one.

A record is removed when the operation succeeds, with the annotation operation=retry, and when a server that waits for
nothing does not request the operation in a pass (`drop_unused`). A failure that comes more than `bmc_timeout` after the
next attempt was due starts a new record.
"""

import asyncio
from datetime import datetime, timedelta

import msgspec

from metal.api.server import FailingOperation
from metal.bmc.errors import BMCAuthError, BMCBusy, BMCConflict, BMCError, BMCTLSError
from metal.controllers.server.reasons import CONTACT
from metal.controllers.server.scope import Scope

CORRECTABLE = (BMCAuthError, BMCTLSError)
"""Permanent for the client, but a changed Secret or certificate ends them, so they have the deadline of an outage."""
_LATER = (BMCBusy.reason, BMCConflict.reason)
_MOST_RETRIES, _MOST_DEADLINES = 8, 4


class OperationPaused(BMCBusy):
    """The operation failed a short time ago and is not requested yet. Nothing was sent."""

    def __init__(self, known: FailingOperation, left: float) -> None:
        super().__init__(known.message)
        self.why, self.operation, self.retry_after = known.reason, known.operation, left


def is_permanent(exc: BMCError) -> bool:
    """True when repeating the operation cannot help."""
    return exc.permanent and not isinstance(exc, CORRECTABLE)


def find(scope: Scope, operation: str) -> FailingOperation | None:
    """The record of an operation that fails."""
    return next((known for known in scope.status.failing_operations if known.operation == operation), None)


def failed(scope: Scope, operation: str, reason: str, exc: BMCError) -> None:
    """Count a failed attempt, and set the time of the next one. Failures before that time count as the same attempt."""
    known = find(scope, operation)
    if known is not None and _is_one_attempt(scope, known, reason, exc):
        _keep(scope, operation, msgspec.structs.replace(known, message=str(exc)))
        return
    if known is None or known.first_failed_at is None or _is_old(scope, known):
        known = FailingOperation(operation=operation, first_failed_at=scope.now)
    begun = known.first_failed_at or scope.now
    pause = max(scope.context.jitter(_pause(scope, operation, begun, exc)), _asked(scope, exc))
    if operation in CONTACT:
        scope.memo.contact_at = asyncio.get_running_loop().time() + pause
    retry_at = scope.now + timedelta(milliseconds=round(pause * 1000))
    fresh = msgspec.structs.replace(
        known, reason=reason, message=str(exc), count=known.count + 1, first_failed_at=begun,
        last_failed_at=scope.now, retry_at=retry_at,
    )  # fmt: skip
    _keep(scope, operation, fresh)


def _is_one_attempt(scope: Scope, known: FailingOperation, reason: str, exc: BMCError) -> bool:
    """True when the failure counts as the same attempt as the last one, so that only its message is recorded."""
    if known.reason != reason or known.last_failed_at is None:
        return False
    if known.operation not in CONTACT:
        return seconds_left(scope, known) > 0
    pause = max(scope.context.jitter(scope.settings.bmc_retry) * 0.8, _asked(scope, exc))
    scope.memo.contact_at = asyncio.get_running_loop().time() + pause
    return (scope.now - known.last_failed_at).total_seconds() < scope.settings.bmc_retry * _MOST_RETRIES


def succeeded(scope: Scope, operation: str) -> None:
    """Remove the record of the operation."""
    if find(scope, operation) is not None:
        _keep(scope, operation, None)


def seconds_left(scope: Scope, known: FailingOperation) -> float:
    """Seconds until the operation may be requested again; 0 when it may be now."""
    if known.operation in CONTACT:
        return max(0.0, scope.memo.contact_at - asyncio.get_running_loop().time())
    if known.retry_at is None:
        return 0.0
    return max(0.0, (known.retry_at - scope.now).total_seconds())


def require_due(scope: Scope, operation: str) -> None:
    """Raises OperationPaused while the operation may not be requested again, before anything is sent for it."""
    known = find(scope, operation)
    if known is not None and (left := seconds_left(scope, known)) > 0:
        scope.attempted.add(operation)
        raise OperationPaused(known, left)


def deadline(scope: Scope, known: FailingOperation) -> datetime:
    """When the failure of the operation becomes a failure of the server."""
    return (known.first_failed_at or scope.now) + timedelta(seconds=scope.settings.bmc_timeout)


def is_overdue(scope: Scope, known: FailingOperation) -> bool:
    """True when the operation has failed for longer than its deadline."""
    return scope.now >= deadline(scope, known)


def is_busy(known: FailingOperation) -> bool:
    """True when the BMC said that the operation is possible later."""
    return known.reason in _LATER


def postpone(scope: Scope, known: FailingOperation) -> None:
    """Set the next attempt of a server that enters Error: after one deadline at first, later after up to four."""
    begun = known.first_failed_at or scope.now
    elapsed, limit = (scope.now - begun).total_seconds(), scope.settings.bmc_timeout
    pause = scope.context.jitter(min(max(elapsed, limit), limit * _MOST_DEADLINES))
    retry_at = scope.now + timedelta(milliseconds=round(pause * 1000))
    _keep(scope, known.operation, msgspec.structs.replace(known, retry_at=retry_at))


def drop_unused(scope: Scope) -> None:
    """Remove the records of operations that this pass did not request: the server is as declared without them."""
    kept = tuple(known for known in scope.status.failing_operations if known.operation in scope.attempted)
    if kept != scope.status.failing_operations:
        scope.set(failing_operations=kept)


def _pause(scope: Scope, operation: str, begun: datetime, exc: BMCError) -> float:
    settings, elapsed = scope.settings, (scope.now - begun).total_seconds()
    most = 1 if operation in CONTACT else _MOST_RETRIES
    least = settings.power_poll if isinstance(exc, BMCConflict) else settings.bmc_retry
    longest = max(settings.bmc_retry, min(settings.bmc_retry * most, settings.bmc_timeout))
    return max(min(max(elapsed, least), longest), _asked(scope, exc))


def _asked(scope: Scope, exc: BMCError) -> float:
    """The pause that the BMC asked for, in seconds."""
    return min((isinstance(exc, BMCBusy) and exc.retry_after) or 0.0, scope.settings.bmc_timeout)


def _is_old(scope: Scope, known: FailingOperation) -> bool:
    if known.retry_at is None:
        return True
    return scope.now > known.retry_at + timedelta(seconds=scope.settings.bmc_timeout)


def _keep(scope: Scope, operation: str, fresh: FailingOperation | None) -> None:
    records = {known.operation: known for known in scope.status.failing_operations}
    if fresh is None:
        del records[operation]
    else:
        records[operation] = fresh  # in its place: the failure that lasts longest stays the first
    scope.set(failing_operations=tuple(records.values()))
