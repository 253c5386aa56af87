"""Handles errors of the BMC: a condition at once; Error when they persist, or when retrying cannot help."""

from datetime import datetime

from metal.api.server import State
from metal.bmc.errors import (
    BMCAuthError,
    BMCBadRequest,
    BMCBusy,
    BMCError,
    BMCForbidden,
    BMCNotSupported,
    BMCTLSError,
)  # fmt: skip
from metal.controllers.server.reasons import ConditionType, Reason, WaitFor, of_bmc
from metal.controllers.server.scope import Scope
from metal.controllers.server.traits import BMCUse, traits_of
from metal.kube.controller.controller import Requeue

_CORRECTABLE = (BMCAuthError, BMCTLSError)
"""Permanent for the client, but a changed Secret or certificate ends them, so they have the deadline of an outage."""
_REFUSALS = (BMCNotSupported, BMCBadRequest, BMCForbidden)
"""The BMC answers, and rejects the request."""
REFUSED = tuple(kind.reason for kind in _REFUSALS)
"""Reasons of the failures that these errors cause."""


class NoAccess(BMCError):
    """The BMC cannot be reached as declared: an object is missing or incomplete."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.why = reason


class InvalidSpec(BMCError):
    """The Server's spec is invalid."""

    reason = Reason.INVALID_SPEC.value
    permanent = True


def reason_of(exc: BMCError) -> str:
    """The CamelCase reason of an error."""
    return exc.why if isinstance(exc, NoAccess) else exc.reason


def bmc_failed(scope: Scope, exc: BMCError) -> Requeue:
    """Report the error in a condition; Error when the deadline has passed, or at once if retrying cannot help."""
    reason, message = reason_of(exc), str(exc)
    permanent = exc.permanent and not isinstance(exc, _CORRECTABLE)
    scope.invalidate()
    if not permanent:
        _unreachable(scope, reason, message)
    if scope.status.state == State.ERROR:
        return Requeue(scope.context.jitter(scope.settings.bmc_retry * 2))
    if _may_be_away(scope) and not isinstance(exc, _REFUSALS):
        return scope.wait(WaitFor.MAINTENANCE, f"the maintenance to end; {message}", poll=scope.settings.bmc_retry)
    if permanent:
        return scope.fail(
            reason, f"{message.rstrip('.')}. Retrying does not help: change the spec of the Server, or correct its BMC"
        )
    since = scope.find_condition(ConditionType.BMC_REACHABLE)
    begun = since.last_transition_time if since and since.last_transition_time else scope.now
    if (scope.now - begun).total_seconds() >= scope.settings.bmc_timeout:
        return scope.fail(of_bmc(reason), f"{message.rstrip('.')}. The server continues when its BMC answers")
    poll = max(scope.settings.bmc_retry, (isinstance(exc, BMCBusy) and exc.retry_after) or 0.0)
    return scope.wait(WaitFor.BMC, f"the BMC to answer: {message}", poll=poll)


def _may_be_away(scope: Scope) -> bool:
    """True in a state in which the BMC may have been unplugged on purpose."""
    return traits_of(scope.status.state).bmc is BMCUse.OPTIONAL


def await_restart(scope: Scope, name: str, until: datetime) -> Requeue:
    """Wait until the BMC answers after its restart. That is an outage, not a failure."""
    scope.invalidate()
    if not scope.bmc_was_unreachable():
        scope.condition(ConditionType.BMC_REACHABLE, False, "BMCRestarting", f"BMC {name} is restarting")
    if _may_be_away(scope):
        return scope.wait(
            WaitFor.MAINTENANCE, f"the maintenance to end; BMC {name} is restarting", poll=scope.settings.bmc_retry
        )
    return scope.wait(WaitFor.BMC_RESTART, f"BMC {name} to answer after its restart", until=until)


def _unreachable(scope: Scope, reason: str, message: str) -> None:
    known = scope.find_condition(ConditionType.BMC_REACHABLE)
    scope.condition(ConditionType.BMC_REACHABLE, False, reason, message)
    if known is None or (known.status, known.reason) != ("False", reason):
        scope.record_event(reason, message, warning=True)


def bmc_answered(scope: Scope) -> None:
    """The pass succeeded: report the BMC as connected."""
    known = scope.find_condition(ConditionType.BMC_REACHABLE)
    if known is None or known.status != "True":
        scope.condition(ConditionType.BMC_REACHABLE, True, "Connected", "the BMC answers")
        if known is not None:
            scope.record_event("Connected", "the BMC answers again")
