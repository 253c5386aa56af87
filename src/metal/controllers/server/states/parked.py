"""Parked: hands off, whoever owns the power, until the marker is gone. Until then the BMC is not even asked."""

from collections.abc import Mapping

from metal.api.interruption import Interruption
from metal.api.server import State
from metal.bmc.protocols import PowerState
from metal.controllers.server import power
from metal.controllers.server.scope import Scope
from metal.controllers.server.states.parking import is_marked
from metal.controllers.server.tenancy.tenancy import assume_booted
from metal.kube.controller.controller import Requeue

WAITS: Mapping[str, str] = {"Unpark": "", "PowerOff": "power_timeout"}
_CONDITION = "Parked"
_UNDISCOVERED = (State.INITIAL, State.DISCOVERY)


async def stand_down(scope: Scope) -> Requeue | None:
    """Parked while the server has the marker, in whatever state its status says it is; else back to its life.

    None, with which the BMC is asked, for others and for a server that must be off before it can be claimed.
    """
    if scope.status.state != State.PARKED:
        return _enter(scope) if is_marked(scope) else None
    if not is_marked(scope):
        state, message = _next(scope)
        return None if state is State.AVAILABLE else _resume(scope, state, message)
    operation = scope.context.kinds.key("operation")
    scope.condition(_CONDITION, True, "Parked", "the machine is left alone, whoever switches it")
    return scope.wait("Unpark", f"somebody to say so: kubectl annotate servers {scope.name} {operation}=unpark")


async def run(scope: Scope) -> Requeue:
    """Off, and then Available: whoever parked the machine may have switched it on. Raises BMCError."""
    busy = await power.converge(scope, PowerState.OFF, "an unparked server is kept off")
    return busy if busy is not None else _resume(scope, *_next(scope))


def _enter(scope: Scope) -> Requeue:
    failure, state = scope.status.failure, scope.status.state
    if scope.status.interruption is None:
        known = failure.state if state == State.ERROR and failure is not None else state
        scope.set(interruption=Interruption(state=known))
    scope.invalidate()  # what was read before says nothing of the machine afterwards
    scope.condition(_CONDITION, True, "Parked", "the machine is left alone, whoever switches it")
    return scope.transition(State.PARKED, "parked: the machine is left alone until somebody unparks it")


def _next(scope: Scope) -> tuple[State, str]:
    """Reserved for its claim, Cleanup for what a tenant left, Initial if never discovered, else Available."""
    visit = scope.status.interruption
    if scope.server.spec.server_claim_ref is not None:
        return State.RESERVED, "unparked; the claim has its server back"
    if scope.status.tenant:
        return State.CLEANUP, "unparked; its claim is gone, so the server is being cleaned up"
    if visit is not None and visit.state in _UNDISCOVERED:
        return State.INITIAL, "unparked; it was not discovered yet"
    return State.AVAILABLE, "unparked; the server can be claimed"


def _resume(scope: Scope, state: State, message: str) -> Requeue:
    if state is State.RESERVED and scope.status.interruption is None and not scope.status.tenant:
        assume_booted(scope)
    scope.set(interruption=None, boot_attempts=0)
    scope.condition(_CONDITION, False, "Unparked", "the server is looked after again")
    scope.record_event("Resumed", "unparked; the server is looked after again")
    return scope.transition(state, message)
