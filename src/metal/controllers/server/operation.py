"""What stands before the states: a Server without state gets one, and operations are obeyed."""

from metal.api.server import State
from metal.controllers.server import error, reserved
from metal.controllers.server.scope import Scope
from metal.kube.controller import Requeue

KNOWN = ("ignore", "retry")


async def adopt(scope: Scope) -> Requeue | None:
    """Give a Server without state one: Reserved when it is claimed (a restored backup), else Initial."""
    if scope.server.spec.power:
        await scope.patch({"spec": {"power": None}})
    if scope.status.state:
        return None
    if scope.server.spec.server_claim_ref is not None:
        reserved.assume_booted(scope)
        return scope.go(State.RESERVED, "claimed before its status was lost")
    return scope.go(State.INITIAL, "a new server")


async def obey(scope: Scope) -> Requeue | None:
    """Carry out metal.ironcore.dev/operation, once. What is not known is refused with an Event and removed."""
    annotation = scope.context.kinds.key("operation")
    wanted = scope.server.metadata.annotations.get(annotation)
    if wanted is None:
        return None
    await scope.patch({"metadata": {"annotations": {annotation: None}}})
    if wanted not in KNOWN:
        known = ", ".join(KNOWN)
        scope.tell("UnsupportedOperation", f"operation {wanted!r} is not supported; known are: {known}", warning=True)
        return None
    if scope.status.state == State.ERROR:
        return error.resume_interrupted(scope)
    return None
