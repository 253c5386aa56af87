"""When the BMC does not play along: a condition at once, Error when it lasts or cannot be mended by waiting."""

from metal.api.server import State
from metal.bmc.errors import BMCAuthError, BMCError, BMCTLSError
from metal.controllers.server.scope import Scope
from metal.kube.controller import Requeue

_MENDABLE = (BMCAuthError, BMCTLSError)
"""Permanent for the client, but a changed Secret or certificate mends them: they get the time of an unreachable BMC."""


class NoAccess(BMCError):
    """There is no way to the BMC: an object is missing or incomplete."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.why = reason


def reason_of(exc: BMCError) -> str:
    """The CamelCase reason of an error."""
    return exc.why if isinstance(exc, NoAccess) else exc.reason


def bmc_failed(scope: Scope, exc: BMCError) -> Requeue:
    """Say so in a condition; Error once the deadline has passed, or at once where waiting cannot help."""
    reason, message = reason_of(exc), str(exc)
    scope.stale()
    scope.condition("BMCReachable", False, reason, message)
    if scope.status.state == State.ERROR:
        return Requeue(scope.context.jitter(scope.settings.bmc_retry * 2))
    scope.condition("Ready", False, reason, message)
    since = scope.find_condition("BMCReachable")
    begun = since.last_transition_time if since and since.last_transition_time else scope.now
    if exc.permanent and not isinstance(exc, _MENDABLE):
        return scope.fail(reason, f"{message}. Waiting cannot mend that: change it, then annotate with operation=retry")
    if (scope.now - begun).total_seconds() >= scope.settings.bmc_timeout:
        return scope.fail(f"BMC{reason}", f"{message}. The server goes on where it was as soon as its BMC answers")
    return scope.wait(
        "BMC", f"the BMC to answer: {message}", deadline=scope.settings.bmc_timeout, poll=scope.settings.bmc_retry
    )


def bmc_answered(scope: Scope) -> None:
    """The pass went through: the BMC is well."""
    known = scope.find_condition("BMCReachable")
    if known is None or known.status != "True":
        scope.condition("BMCReachable", True, "Connected", "the BMC answers")
