"""What stands before the states: a Server without state gets one, and operations are obeyed."""

from metal.api.server import State
from metal.controllers.server import error, sanitize, takeover
from metal.controllers.server.claimed import assume_booted, tenant_that_booted
from metal.controllers.server.scope import Scope
from metal.kube.controller import Requeue

KNOWN = ("ignore", "retry", sanitize.ACCEPT)


async def adopt(scope: Scope) -> Requeue | None:
    """Give a Server without state one: Reserved when it is claimed (a restored backup), else Initial."""
    if scope.server.spec.power and scope.server.spec.server_maintenance_ref is None:  # else it is the maintenance's
        await scope.patch({"spec": {"power": None}})
    if scope.status.state:
        return None
    if scope.server.spec.server_claim_ref is None and not await _give_back(scope):
        return scope.go(State.INITIAL, "a new server")
    assume_booted(scope)
    return scope.go(State.RESERVED, "claimed before its status was lost")


async def _give_back(scope: Scope) -> bool:
    """A Server object that was deleted and made again while a tenant used the machine: still the tenant's."""
    claim = tenant_that_booted(scope)
    if claim is None:
        return False
    ref = {"namespace": claim.metadata.namespace, "name": claim.metadata.name}
    await scope.patch({"spec": {"serverClaimRef": ref}})
    return True


async def obey(scope: Scope) -> Requeue | None:
    """Carry out metal.ironcore.dev/operation, once. What is not known is refused with an Event and removed."""
    annotation = scope.context.kinds.key("operation")
    wanted = scope.server.metadata.annotations.get(annotation)
    if wanted is None:
        return None
    result = takeover.go_ahead(scope) if wanted == "retry" else None
    if wanted == "retry" and scope.status.state == State.ERROR:
        result = error.resume_interrupted(scope)
    if wanted == sanitize.ACCEPT:
        result = await sanitize.accept(scope)
    if wanted == sanitize.ACCEPT and result is None:
        scope.tell("NothingOwed", f"operation {wanted} does nothing: no erasure is owed", warning=True)
    if wanted in ("retry", sanitize.ACCEPT):
        await scope.commit()  # before the annotation goes: killed in between, we obey twice rather than never
    if wanted not in KNOWN:
        known = ", ".join(KNOWN)
        scope.tell("UnsupportedOperation", f"operation {wanted!r} is not supported; known are: {known}", warning=True)
    await scope.patch({"metadata": {"annotations": {annotation: None}}})
    return result
