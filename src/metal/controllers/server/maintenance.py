"""Maintenance: hands off while spec.serverMaintenanceRef is set; then back to where the server came from."""

from collections.abc import Mapping

from metal.api.server import State
from metal.controllers.server.scope import Scope
from metal.kube.controller import Requeue

WAITS: Mapping[str, str] = {"Maintenance": ""}


async def run(scope: Scope) -> Requeue:
    """The power is the maintenance's; it is only observed."""
    await scope.observe()
    if scope.server.spec.server_maintenance_ref is not None:
        ref = scope.server.spec.server_maintenance_ref
        return scope.wait("Maintenance", f"the maintenance {ref.namespace}/{ref.name} to end")
    if scope.server.spec.server_claim_ref is not None or scope.status.tenant:
        return scope.go(State.RESERVED, "the maintenance ended; the claim has its server back")
    return scope.go(State.INITIAL, "the maintenance ended; the hardware may have changed, so discovery runs again")
