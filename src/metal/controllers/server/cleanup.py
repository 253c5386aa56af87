"""Cleanup: switches the machine off and forgets the claim. The sanitization policy is None, and says so."""

from collections.abc import Mapping

from metal.api.server import State
from metal.bmc.protocols import PowerState
from metal.controllers.server import boot, power
from metal.controllers.server.override import clear_override
from metal.controllers.server.scope import Scope
from metal.kube.controller import Requeue

WAITS: Mapping[str, str] = {"PowerOff": "power_timeout"}


async def run(scope: Scope) -> Requeue:
    """Off, override cleared and read back, policy recorded, claim forgotten; then Available (Released with Retain)."""
    scope.close_window()
    busy = await power.converge(scope, PowerState.OFF, "cleanup", force=boot.is_unfinished(scope))
    if busy is not None:
        return busy
    await clear_override(scope)
    scope.set(sanitization="None", claim_boot=None, boot_window=None)
    scope.condition(
        "Sanitized",
        False,
        "PolicyNone",
        "the sanitization policy is None: the disks were left as the last tenant left them",
    )
    if scope.server.spec.reclaim_policy == "Retain":
        return scope.go(State.RELEASED, "released; remove spec.serverClaimRef to make the server available again")
    scope.set(tenant="")
    await scope.commit()
    await scope.patch({"spec": {"serverClaimRef": None, "bootConfigurationRef": None}})
    return scope.go(State.AVAILABLE, "cleaned up with sanitization policy None; the server can be claimed")
