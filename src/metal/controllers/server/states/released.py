"""Released: reclaim policy Retain keeps the server, off, until its claim reference is removed."""

from metal.api.server import State
from metal.bmc.power import PowerState
from metal.controllers.server import power
from metal.controllers.server.reasons import WaitFor
from metal.controllers.server.scope import Scope
from metal.kube.controller.controller import Requeue
from metal.machine import tenancy


async def run(scope: Scope) -> Requeue:
    """Available once spec.serverClaimRef is gone."""
    busy = await power.converge(scope, PowerState.OFF, "a released server is kept off")
    if busy is not None:
        return busy
    if scope.server.spec.server_claim_ref is not None and scope.server.spec.reclaim_policy != "Retain":
        return scope.transition(State.CLEANUP, "the reclaim policy is no longer Retain; the server is being cleaned up")
    if scope.server.spec.server_claim_ref is not None:
        return scope.wait(WaitFor.RELEASE, "an administrator to remove spec.serverClaimRef (reclaim policy Retain)")
    scope.set(tenancy=tenancy.released(scope.tenancy))
    await scope.commit()
    if scope.server.spec.boot_configuration_ref is not None:
        await scope.patch({"spec": {"bootConfigurationRef": None}})
    return scope.transition(State.AVAILABLE, "spec.serverClaimRef was removed; the server can be claimed")
