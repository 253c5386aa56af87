"""When the BMC does not play along: a condition at once, Error when it lasts or cannot be mended by waiting."""

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

_MENDABLE = (BMCAuthError, BMCTLSError)
"""Permanent for the client, but a changed Secret or certificate mends them: they get the time of an unreachable BMC."""
_REFUSALS = (BMCNotSupported, BMCBadRequest, BMCForbidden)
"""The BMC is there, and does not do what is asked of it."""
REFUSED = tuple(kind.reason for kind in _REFUSALS)
"""Reasons of the failures that these become."""


class NoAccess(BMCError):
    """There is no way to the BMC: an object is missing or incomplete."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.why = reason


class InvalidSpec(BMCError):
    """The Server's spec names no machine that could exist."""

    reason = Reason.INVALID_SPEC.value
    permanent = True


def reason_of(exc: BMCError) -> str:
    """The CamelCase reason of an error."""
    return exc.why if isinstance(exc, NoAccess) else exc.reason


def bmc_failed(scope: Scope, exc: BMCError) -> Requeue:
    """Say so in a condition; Error once the deadline has passed, or at once where waiting cannot help."""
    reason, message = reason_of(exc), str(exc)
    hopeless = exc.permanent and not isinstance(exc, _MENDABLE)
    scope.invalidate()
    if not hopeless:
        _unreachable(scope, reason, message)
    if scope.status.state == State.ERROR:
        return Requeue(scope.context.jitter(scope.settings.bmc_retry * 2))
    if _may_be_away(scope) and not isinstance(exc, _REFUSALS):
        return scope.wait(WaitFor.MAINTENANCE, f"the maintenance to end; {message}", poll=scope.settings.bmc_retry)
    if hopeless:
        return scope.fail(reason, f"{message}. Waiting cannot mend that: change it")
    since = scope.find_condition(ConditionType.BMC_REACHABLE)
    begun = since.last_transition_time if since and since.last_transition_time else scope.now
    if (scope.now - begun).total_seconds() >= scope.settings.bmc_timeout:
        return scope.fail(of_bmc(reason), f"{message}. The server goes on where it was as soon as its BMC answers")
    poll = max(scope.settings.bmc_retry, (isinstance(exc, BMCBusy) and exc.retry_after) or 0.0)
    return scope.wait(WaitFor.BMC, f"the BMC to answer: {message}", poll=poll)


def _may_be_away(scope: Scope) -> bool:
    """True in a state in which the BMC may have been unplugged on purpose."""
    return traits_of(scope.status.state).bmc is BMCUse.OPTIONAL


def await_restart(scope: Scope, name: str, until: datetime) -> Requeue:
    """Wait for the BMC to be back from its restart. That is an outage, and no failure."""
    scope.invalidate()
    if not scope.bmc_was_unreachable():
        scope.condition(ConditionType.BMC_REACHABLE, False, "BMCRestarting", f"BMC {name} restarts")
    if _may_be_away(scope):
        return scope.wait(
            WaitFor.MAINTENANCE, f"the maintenance to end; BMC {name} restarts", poll=scope.settings.bmc_retry
        )
    return scope.wait(WaitFor.BMC_RESTART, f"BMC {name} to be back from its restart", until=until)


def _unreachable(scope: Scope, reason: str, message: str) -> None:
    known = scope.find_condition(ConditionType.BMC_REACHABLE)
    scope.condition(ConditionType.BMC_REACHABLE, False, reason, message)
    if known is None or (known.status, known.reason) != ("False", reason):
        scope.record_event(reason, message, warning=True)


def bmc_answered(scope: Scope) -> None:
    """The pass went through: the BMC is well."""
    known = scope.find_condition(ConditionType.BMC_REACHABLE)
    if known is None or known.status != "True":
        scope.condition(ConditionType.BMC_REACHABLE, True, "Connected", "the BMC answers")
        if known is not None:
            scope.record_event("Connected", "the BMC answers again")
