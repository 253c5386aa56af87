"""Handles errors of the BMC: a condition at once; Error when they persist, or when retrying cannot help.

A failure belongs to one operation (`failing`). Where the BMC does not answer at all, the condition is `BMCReachable`;
where it answers and one operation fails, `BMCOperational`. The wait is named after what is awaited: `BMC`, `BMCBusy`
where the BMC said "later", or `BMCOperation`. After `bmc_timeout` the server goes to Error, which ends when that
operation succeeds.
"""

from datetime import datetime

import msgspec

from metal.api.server import FailingOperation, State
from metal.bmc.errors import BMCBadRequest, BMCError, BMCForbidden, BMCNotFound, BMCNotSupported
from metal.controllers.server.bmc import failing
from metal.controllers.server.reasons import CONTACT, ConditionType, Operation, Reason, WaitFor, of_bmc
from metal.controllers.server.scope import Scope
from metal.controllers.server.traits import BMCUse, traits_of
from metal.kube.controller.controller import Requeue
from metal.kube.meta import conditions
from metal.kube.meta.objects import Key

_REFUSALS = (BMCNotSupported, BMCBadRequest, BMCForbidden)
"""The BMC answers, and rejects the request."""
REFUSED = tuple(kind.reason for kind in _REFUSALS)
"""Reasons of the failures that these errors cause."""
_BEFORE_A_BOOT = (Operation.SET_BOOT_OVERRIDE, Operation.POWER_ON)
"""While they fail, no boot is in progress that may fetch anything."""


class NoAccess(BMCError):
    """The BMC cannot be reached as declared: an object is missing or incomplete."""

    operation = Operation.CONNECT.value

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.why = reason


class SystemNotFound(BMCNotFound):
    """The BMC shows no system with the Server's UUID."""

    operation = Operation.IDENTIFY.value


class InvalidSpec(BMCError):
    """The Server's spec is invalid."""

    reason = Reason.INVALID_SPEC.value
    permanent = True


def reason_of(exc: BMCError) -> str:
    """The CamelCase reason of an error."""
    return exc.why if isinstance(exc, NoAccess | failing.OperationPaused) else exc.reason


def bmc_failed(scope: Scope, exc: BMCError) -> Requeue:
    """Report the error in a condition; Error when the deadline has passed, or at once if retrying cannot help."""
    reason, message = reason_of(exc), str(exc)
    scope.invalidate()
    if failing.is_permanent(exc):
        return _refused(scope, exc, reason)
    scope.is_blocked = True
    operation = exc.operation or Operation.CONNECT.value
    if operation not in scope.attempted:
        failing.failed(scope, operation, reason, exc)
        scope.attempted.add(operation)
    away = operation in CONTACT
    if away:
        _unreachable(scope, reason, message)
    else:
        _reachable(scope)
    if scope.status.state == State.ERROR:
        text = f"spec was corrected, and the server continues when its BMC answers: {message}"
        return _still_failed(scope, WaitFor.BMC, f"the BMC to answer: {message}", text)
    if away and _may_be_away(scope):
        return scope.wait(WaitFor.MAINTENANCE, f"the maintenance to end; {message}", poll=scope.settings.bmc_retry)
    return _wait(scope, failing.find(scope, operation) or FailingOperation(operation=operation))


def _still_failed(scope: Scope, name: WaitFor, awaited: str, message: str) -> Requeue:
    """In Error nothing changes but the text of an invalid spec: it may have been corrected, or be invalid otherwise."""
    pause, failure = scope.context.jitter(scope.settings.bmc_retry * 2), scope.status.failure
    if failure is not None and failure.reason == Reason.INVALID_SPEC:
        scope.set(failure=msgspec.structs.replace(failure, message=message))
        scope.condition(ConditionType.READY, False, failure.reason, message)
        scope.wait(name, awaited)
    return Requeue(pause)


def _refused(scope: Scope, exc: BMCError, reason: str) -> Requeue:
    """Retrying cannot help: Error at once. The spec was observed, and its change may resolve the failure."""
    if scope.has_contact:
        _reachable(scope)
    text = _named(exc.operation, str(exc))
    text = f"{text}. Retrying does not help: change the spec of the Server, or correct its BMC"
    if scope.status.state == State.ERROR:
        return _still_failed(scope, WaitFor.REPAIR, f"{reason}: {text}", text)
    if _may_be_away(scope) and not isinstance(exc, _REFUSALS):
        return scope.wait(WaitFor.MAINTENANCE, f"the maintenance to end; {exc}", poll=scope.settings.bmc_retry)
    return scope.fail(reason, text, exc.operation)


def _wait(scope: Scope, known: FailingOperation) -> Requeue:
    operation, until = known.operation, failing.deadline(scope, known)
    if failing.is_overdue(scope, known):
        if operation in _BEFORE_A_BOOT:
            scope.close_window()
        if operation not in CONTACT:
            failing.postpone(scope, known)
        way_out = "its BMC answers" if operation in CONTACT else f"{operation} succeeds, which is tried at most hourly"
        text = _named(operation, known.message)
        return scope.fail(of_bmc(known.reason), f"{text}. The server continues when {way_out}", operation)
    poll = max(failing.seconds_left(scope, known), 0.05)
    if operation in CONTACT:
        name, text = WaitFor.BMC, f"the BMC to answer: {known.message}"
    elif failing.is_busy(known):
        name, text = WaitFor.BMC_BUSY, f"the BMC to be ready for {operation}: {known.message}"
    else:
        name, text = WaitFor.BMC_OPERATION, f"{operation} to succeed: {known.message}"
    return scope.wait(name, text, until=until, poll=poll, since=known.first_failed_at)


def _named(operation: str, message: str) -> str:
    """The message, with the operation before it unless it is what every pass begins with."""
    text = message.rstrip(".")
    return f"{operation} failed: {text}" if operation and operation not in CONTACT else text


def _may_be_away(scope: Scope) -> bool:
    """True in a state in which the BMC may have been unplugged on purpose."""
    return traits_of(scope.status.state).bmc is BMCUse.OPTIONAL


def await_restart(scope: Scope, name: str, until: datetime) -> Requeue:
    """Wait until the BMC answers after its restart. That is an outage, not a failure."""
    scope.invalidate()
    scope.is_blocked = True
    if not scope.bmc_was_unreachable():
        scope.condition(ConditionType.BMC_REACHABLE, False, "BMCRestarting", f"BMC {name} is restarting")
    if _may_be_away(scope):
        return scope.wait(
            WaitFor.MAINTENANCE, f"the maintenance to end; BMC {name} is restarting", poll=scope.settings.bmc_retry
        )
    return scope.wait(WaitFor.BMC_RESTART, f"BMC {name} to answer after its restart", until=until)


def _unreachable(scope: Scope, reason: str, message: str) -> None:
    _report(scope, ConditionType.BMC_REACHABLE, reason, message)


def _report(scope: Scope, type: ConditionType, reason: str, message: str) -> None:
    known = scope.find_condition(type)
    scope.condition(type, False, reason, message)
    if known is None or (known.status, known.reason) != ("False", reason):
        scope.record_event(reason, message, warning=True)


def bmc_answered(scope: Scope) -> None:
    """The pass succeeded: report the BMC as connected, and forget failures of what is no longer requested."""
    if conditions.is_true(scope.status.conditions, ConditionType.READY):
        failing.drop_unused(scope)
    if scope.has_contact:
        _remember_secret(scope)
    scope.has_contact = True
    _reachable(scope)


def _remember_secret(scope: Scope) -> None:
    """Record which BMCSecret the BMC in spec.bmc has accepted; another one can have its name later."""
    inline = scope.server.spec.bmc if scope.server.spec.bmc_ref is None else None
    secret = scope.deps.secrets.get(Key(inline.bmc_secret_ref.name)) if inline is not None else None
    if secret is not None:
        scope.set(connected_secret_uid=secret.metadata.uid)


def _reachable(scope: Scope) -> None:
    known = scope.find_condition(ConditionType.BMC_REACHABLE)
    if scope.has_contact and (known is None or known.status != "True"):
        scope.condition(ConditionType.BMC_REACHABLE, True, "Connected", "the BMC answers")
        if known is not None:
            scope.record_event("Connected", "the BMC answers again")
    failures = [one for one in scope.status.failing_operations if one.operation not in CONTACT]
    known = scope.find_condition(ConditionType.BMC_OPERATIONAL)
    if failures:
        first = failures[0]
        _report(scope, ConditionType.BMC_OPERATIONAL, first.reason, f"{first.operation} failed: {first.message}")
    elif known is not None and known.status != "True":
        scope.condition(ConditionType.BMC_OPERATIONAL, True, "Succeeded", "the operation that had failed succeeds")
        scope.record_event("Succeeded", "the operation that had failed on the BMC succeeds again")
