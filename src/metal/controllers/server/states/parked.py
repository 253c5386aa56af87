"""Parked: an administrator or another client controls the machine's power; the operator does not use machine or BMC.

In: the annotation operation=park or operation=unpark (`request`).

Remembered: the annotation `parked: "true"`, which outlives a lost status. A server that has it is put in Parked from
any state (`hold`); removing it manually unparks the server. `status.interruption` keeps the interrupted state.

Parking (`park`) takes several passes: the machine is switched off, the boot override is cleared, and marker and
operation change in one write. It waits (`ParkDeferred`) for a state whose traits say `parkable`, and for the end of a
network boot.

Unparking goes to Reserved for a claimed server, to Cleanup for what a tenant left, to Initial for one that was not
discovered, else to Available; only the last needs the BMC, because the machine must be off before it can be claimed.
"""

from metal.api.interruption import Interruption
from metal.api.names import OPERATION, PARK, PARKED, UNPARK
from metal.api.server import State
from metal.bmc.power import PowerState
from metal.controllers.server import power
from metal.controllers.server.netboot.boot import clear_override
from metal.controllers.server.netboot.progress import is_in_progress, is_unfinished
from metal.controllers.server.reasons import WaitFor
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy.adoption import takeover
from metal.controllers.server.tenancy.tenancy import assume_booted
from metal.controllers.server.traits import TRAITS, traits_of
from metal.kube.controller.controller import Requeue
from metal.machine import tenancy

_CONDITION = "Parked"
_PARKABLE = [state.value for state, traits in TRAITS.items() if traits.parkable]


async def hold(scope: Scope) -> Requeue | None:
    """Keep a server with the marker in Parked, also when its status says another state; else leave Parked.

    None, so that the pass continues, for others and for a server that must be off before it can be claimed.
    """
    if scope.status.state != State.PARKED:
        return _enter(scope) if is_marked(scope) else None
    if not is_marked(scope):
        state, message = _next(scope)
        return None if state is State.AVAILABLE else _resume(scope, state, message)
    command = f"kubectl annotate servers {scope.name} {scope.context.kinds.key(OPERATION)}"
    scope.condition(_CONDITION, True, "Parked", "the operator does not change the machine or its power")
    return scope.wait(WaitFor.UNPARK, f"the server to be unparked: {command}=unpark")


async def run(scope: Scope) -> Requeue:
    """Off, then Available: the machine may have been switched on while it was parked. Raises BMCError."""
    busy = await power.converge(scope, PowerState.OFF, "an unparked server is kept off")
    return busy if busy is not None else _resume(scope, *_next(scope))


def _enter(scope: Scope) -> Requeue:
    failure, state = scope.status.failure, scope.status.state
    if scope.status.interruption is None:
        known = failure.state if state == State.ERROR and failure is not None else state
        scope.set(interruption=Interruption(state=known))
    scope.invalidate()  # a reading from before will be outdated when the server is unparked
    scope.condition(_CONDITION, True, "Parked", "the operator does not change the machine or its power")
    return scope.transition(State.PARKED, "parked; the machine is not changed until the server is unparked")


def _next(scope: Scope) -> tuple[State, str]:
    """Reserved for its claim, Cleanup for what a tenant left, Initial if never discovered, else Available."""
    visit = scope.status.interruption
    if scope.server.spec.server_claim_ref is not None:
        return State.RESERVED, "unparked; the server returns to its claim"
    if scope.tenancy.uid or tenancy.holds_data(scope.tenancy):
        return State.CLEANUP, "unparked; its claim no longer exists, so the server is being cleaned up"
    if visit is not None and visit.state and not traits_of(visit.state).discovered:
        return State.INITIAL, "unparked; it was not discovered yet"
    return State.AVAILABLE, "unparked; the server can be claimed"


def _resume(scope: Scope, state: State, message: str) -> Requeue:
    if state is State.RESERVED and scope.status.interruption is None and not scope.tenancy.uid:
        assume_booted(scope)
    scope.set(interruption=None, boot_attempts=0)
    scope.condition(_CONDITION, False, "Unparked", "the operator manages the server again")
    scope.record_event("Resumed", "unparked; the operator manages the server again")
    return scope.transition(state, message)


def is_marked(scope: Scope) -> bool:
    """True while the server has the annotation that keeps it parked, also when its status was lost."""
    return scope.server.metadata.annotations.get(scope.context.kinds.key(PARKED)) == "true"


async def request(scope: Scope, operation: str) -> None:
    """Unpark at once; park as soon as the state allows it, with an Event if that is not now."""
    if operation == UNPARK:
        await _unpark(scope)
    elif is_marked(scope):
        await _write(scope)
    elif why := _obstacle(scope):
        _defer(scope, why)


async def park(scope: Scope) -> Requeue | None:
    """One step towards Parked if that is requested and possible: off, gracefully first, then the marker.

    Raises BMCError.
    """
    operation = scope.server.metadata.annotations.get(scope.context.kinds.key(OPERATION))
    if operation != PARK or is_marked(scope) or _obstacle(scope):
        return None
    busy = await power.converge(scope, PowerState.OFF, "parking", force=is_unfinished(scope))
    if busy is not None:
        return busy
    await clear_override(scope)
    await scope.commit()
    await _write(scope, parked="true")
    return Requeue(0)


async def _unpark(scope: Scope) -> None:
    known = scope.find_condition(_CONDITION)
    if is_marked(scope):
        scope.record_event("Unparking", "operation=unpark was requested")
        takeover.approve(scope)
    elif scope.status.state != State.PARKED and known is not None and known.status == "False":
        scope.condition(_CONDITION, False, "NotParked", "parking was cancelled")
    await scope.commit()
    await _write(scope)


async def _write(scope: Scope, *, parked: str | None = None) -> None:
    """Marker and operation change in one write. Without `parked` only unpark removes the marker."""
    key = scope.context.kinds.key
    changes: dict[str, str | None] = {key(OPERATION): None}
    unparks = scope.server.metadata.annotations.get(key(OPERATION)) == UNPARK
    if parked or unparks:
        changes[key(PARKED)] = parked
    await scope.patch({"metadata": {"annotations": changes}})


def _obstacle(scope: Scope) -> str:
    """Why the server cannot be parked now; empty if it can."""
    if not traits_of(scope.status.state).parkable:
        return f"a server in {scope.status.state} cannot be parked; it will be parked in {', '.join(_PARKABLE)}"
    return "a network boot is in progress; the server will be parked after it" * is_in_progress(scope)


def _defer(scope: Scope, why: str) -> None:
    known = scope.find_condition(_CONDITION)
    if known is None or known.reason != "ParkDeferred":
        scope.record_event("ParkDeferred", why, warning=True)
    scope.condition(_CONDITION, False, "ParkDeferred", why)
