"""Parked: hands off, whoever owns the power, until the marker is gone. The BMC is not even asked."""

from collections.abc import Mapping

from metal.api.interruption import Interruption
from metal.api.server import State
from metal.controllers.server.claimed import assume_booted
from metal.controllers.server.parking import is_marked
from metal.controllers.server.scope import Scope
from metal.kube.controller import Requeue

WAITS: Mapping[str, str] = {"Unpark": ""}
_CONDITION = "Parked"
_UNDISCOVERED = (State.INITIAL, State.DISCOVERY)


async def stand_down(scope: Scope) -> Requeue | None:
    """Parked while the server has the marker, in whatever state its status says it is; else back to its life."""
    if scope.status.state == State.PARKED:
        return await run(scope)
    return _enter(scope) if is_marked(scope) else None


async def run(scope: Scope) -> Requeue:
    """Wait for somebody to unpark it; then Reserved for its claim, else Available, or Initial if never discovered."""
    if not is_marked(scope):
        return _resume(scope)
    operation = scope.context.kinds.key("operation")
    scope.condition(_CONDITION, True, "Parked", "the machine is left alone, whoever switches it")
    return scope.wait("Unpark", f"somebody to say so: kubectl annotate servers {scope.name} {operation}=unpark")


def _enter(scope: Scope) -> Requeue:
    failure, state = scope.status.failure, scope.status.state
    if scope.status.interruption is None:
        known = failure.state if state == State.ERROR and failure is not None else state
        scope.set(interruption=Interruption(state=known))
    scope.condition(_CONDITION, True, "Parked", "the machine is left alone, whoever switches it")
    return scope.go(State.PARKED, "parked: the machine is left alone until somebody unparks it")


def _resume(scope: Scope) -> Requeue:
    visit = scope.status.interruption
    scope.set(interruption=None, boot_attempts=0)
    scope.condition(_CONDITION, False, "Unparked", "the server is looked after again")
    scope.tell("Resumed", "unparked; the server is looked after again")
    if scope.server.spec.server_claim_ref is not None:
        if visit is None and not scope.status.tenant:
            assume_booted(scope)
        return scope.go(State.RESERVED, "unparked; the claim has its server back")
    if scope.status.tenant:
        return scope.go(State.CLEANUP, "unparked; its claim is gone, so the server is being cleaned up")
    if visit is not None and visit.state in _UNDISCOVERED:
        return scope.go(State.INITIAL, "unparked; it was not discovered yet")
    return scope.go(State.AVAILABLE, "unparked; the server can be claimed")
