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
from metal.controllers.server.scope import Scope
from metal.kube.controller.controller import Requeue

_MENDABLE = (BMCAuthError, BMCTLSError)
"""Permanent for the client, but a changed Secret or certificate mends them: they get the time of an unreachable BMC."""
_REFUSALS = (BMCNotSupported, BMCBadRequest, BMCForbidden)
"""The BMC is there, and does not do what a maintenance asks for."""


class NoAccess(BMCError):
    """There is no way to the BMC: an object is missing or incomplete."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.why = reason


class InvalidSpec(BMCError):
    """The Server's spec names no machine that could exist."""

    reason = "InvalidSpec"
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
    away = not isinstance(exc, _REFUSALS)
    if scope.status.state == State.MAINTENANCE and away:  # whoever maintains the machine may well have taken it
        return scope.wait("Maintenance", f"the maintenance to end; {message}", poll=scope.settings.bmc_retry)
    if hopeless:
        return scope.fail(reason, f"{message}. Waiting cannot mend that: change it")
    since = scope.find_condition("BMCReachable")
    begun = since.last_transition_time if since and since.last_transition_time else scope.now
    if (scope.now - begun).total_seconds() >= scope.settings.bmc_timeout:
        prefixed = reason if reason.startswith("BMC") else f"BMC{reason}"
        return scope.fail(prefixed, f"{message}. The server goes on where it was as soon as its BMC answers")
    poll = max(scope.settings.bmc_retry, (isinstance(exc, BMCBusy) and exc.retry_after) or 0.0)
    return scope.wait("BMC", f"the BMC to answer: {message}", deadline=scope.settings.bmc_timeout, poll=poll)


def bmc_restarts(scope: Scope, name: str, until: datetime) -> Requeue:
    """Wait for the BMC to be back from its restart. That is an outage, and no failure."""
    scope.invalidate()
    if not was_unreachable(scope):
        scope.condition("BMCReachable", False, "BMCRestarting", f"BMC {name} restarts")
    poll = scope.settings.bmc_retry
    if scope.status.state == State.MAINTENANCE:
        return scope.wait("Maintenance", f"the maintenance to end; BMC {name} restarts", poll=poll)
    return scope.wait("BMCRestart", f"BMC {name} to be back from its restart", until=until, poll=poll)


def _unreachable(scope: Scope, reason: str, message: str) -> None:
    known = scope.find_condition("BMCReachable")
    scope.condition("BMCReachable", False, reason, message)
    if known is None or (known.status, known.reason) != ("False", reason):
        scope.record_event(reason, message, warning=True)


def bmc_answered(scope: Scope) -> None:
    """The pass went through: the BMC is well."""
    known = scope.find_condition("BMCReachable")
    if known is None or known.status != "True":
        scope.condition("BMCReachable", True, "Connected", "the BMC answers")
        if known is not None:
            scope.record_event("Connected", "the BMC answers again")


def was_unreachable(scope: Scope) -> bool:
    """True in the first pass after an outage: what ran out meanwhile had no chance."""
    known = scope.find_condition("BMCReachable")
    return known is not None and known.status == "False"
