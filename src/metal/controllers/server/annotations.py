"""What stands before the states: a Server without state gets one, and operations are obeyed."""

from metal.api.server import State
from metal.controllers.server.bmc import host_key
from metal.controllers.server.operations import RESETS, accept
from metal.controllers.server.scope import Scope
from metal.controllers.server.states import error, parking
from metal.controllers.server.tenancy import adoption, recreated, sanitization
from metal.controllers.server.tenancy.tenancy import assume_booted
from metal.controllers.shared.host_key import ACCEPT as ACCEPT_HOST_KEY
from metal.kube.controller.controller import Requeue

KNOWN = ("ignore", "retry", sanitization.ACCEPT, ACCEPT_HOST_KEY, parking.PARK, parking.UNPARK, *RESETS)


async def adopt(scope: Scope) -> Requeue | None:
    """Give a Server without state one: Reserved when it is claimed (a restored backup), else what `made_anew` says."""
    if scope.server.spec.power and scope.server.spec.server_maintenance_ref is None:  # else it is the maintenance's
        await scope.patch({"spec": {"power": None}})
    if scope.status.state:
        return None
    if scope.server.spec.server_claim_ref is not None:
        assume_booted(scope)
        return scope.transition(State.RESERVED, "claimed before its status was lost")
    return await recreated.begin(scope)


async def obey(scope: Scope) -> Requeue | None:
    """Carry out metal.ironcore.dev/operation, once. What is not known is refused with an Event and removed."""
    annotation = scope.context.kinds.key("operation")
    wanted = scope.server.metadata.annotations.get(annotation)
    if wanted is None:
        return None
    if wanted in (parking.PARK, parking.UNPARK):
        await parking.obey(scope, wanted)
        return None
    if wanted in RESETS and not parking.is_marked(scope):
        await accept(scope, wanted)
        return None
    result = _retry(scope) if wanted == "retry" else None
    if wanted == sanitization.ACCEPT:
        result = await _accept_owed(scope)
    if wanted == ACCEPT_HOST_KEY:
        host_key.accept(scope)
    _refuse(scope, wanted)
    await scope.commit()  # before the annotation goes: killed in between, we obey twice rather than never
    await scope.patch({"metadata": {"annotations": {annotation: None}}})
    return result


def _retry(scope: Scope) -> Requeue | None:
    if scope.status.state == State.ERROR:
        adoption.go_ahead(scope)
        return error.resume_interrupted(scope)
    return adoption.go_ahead(scope)


async def _accept_owed(scope: Scope) -> Requeue | None:
    result = await sanitization.accept(scope)
    if result is None:
        scope.record_event(
            "NothingOwed", f"operation {sanitization.ACCEPT} does nothing: no erasure is owed", warning=True
        )
    return result


def _refuse(scope: Scope, wanted: str) -> None:
    if wanted in RESETS:
        scope.record_event("ParkedOperationDropped", f"{wanted} was not done: the server is parked", warning=True)
    elif wanted not in KNOWN:
        known = ", ".join(KNOWN)
        scope.record_event(
            "UnsupportedOperation", f"operation {wanted!r} is not supported; known are: {known}", warning=True
        )
