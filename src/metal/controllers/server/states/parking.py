"""Into Parked and out of it: metal.ironcore.dev/operation=park and =unpark, and the marker that outlives the status."""

from metal.api.server import State
from metal.bmc.protocols import PowerState
from metal.controllers.server import power
from metal.controllers.server.netboot import boot
from metal.controllers.server.netboot.override import clear_override
from metal.controllers.server.netboot.progress import boot_under_way
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy import adoption
from metal.kube.controller.controller import Requeue

PARK, UNPARK = "park", "unpark"
_CONDITION = "Parked"
_PARKABLE = (State.AVAILABLE, State.RESERVED, State.DISCOVERY)


def is_marked(scope: Scope) -> bool:
    """True while the server is to stay parked, whatever became of its status."""
    return scope.server.metadata.annotations.get(scope.context.kinds.key("parked")) == "true"


async def obey(scope: Scope, operation: str) -> None:
    """Unpark at once; park as soon as the state allows it, and an Event says when that is not now."""
    if operation == UNPARK:
        await _unpark(scope)
    elif is_marked(scope):
        await _write(scope)
    elif why := _obstacle(scope):
        _defer(scope, why)


async def park(scope: Scope) -> Requeue | None:
    """One step towards Parked when that is asked for and possible: off, gracefully first, then the marker.

    Raises BMCError.
    """
    operation = scope.server.metadata.annotations.get(scope.context.kinds.key("operation"))
    if operation != PARK or is_marked(scope) or _obstacle(scope):
        return None
    busy = await power.converge(scope, PowerState.OFF, "parking", force=boot.is_unfinished(scope))
    if busy is not None:
        return busy
    await clear_override(scope)
    await scope.commit()
    await _write(scope, parked="true")
    return Requeue(0)


async def _unpark(scope: Scope) -> None:
    known = scope.find_condition(_CONDITION)
    if is_marked(scope):
        scope.record_event("Unparking", "somebody asked for it")
        adoption.give_word(scope)
    elif scope.status.state != State.PARKED and known is not None and known.status == "False":
        scope.condition(_CONDITION, False, "NotParked", "parking was called off")
    await scope.commit()
    await _write(scope)


async def _write(scope: Scope, *, parked: str | None = None) -> None:
    """Marker and operation change in one write. Without `parked` only unpark removes the marker."""
    key = scope.context.kinds.key
    changes: dict[str, str | None] = {key("operation"): None}
    unparks = scope.server.metadata.annotations.get(key("operation")) == UNPARK
    if parked or unparks:
        changes[key("parked")] = parked
    await scope.patch({"metadata": {"annotations": changes}})


def _obstacle(scope: Scope) -> str:
    """Why the server cannot be parked now, or nothing."""
    if scope.status.state not in _PARKABLE:
        return f"a server in {scope.status.state} is not parked; it will be in Available, Reserved or Discovery"
    return "a network boot is under way; it is parked afterwards" * boot_under_way(scope)


def _defer(scope: Scope, why: str) -> None:
    known = scope.find_condition(_CONDITION)
    if known is None or known.reason != "ParkDeferred":
        scope.record_event("ParkDeferred", why, warning=True)
    scope.condition(_CONDITION, False, "ParkDeferred", why)
