"""Maintenance: hands off while spec.serverMaintenanceRef is set; then back to where the server came from."""

from collections.abc import Mapping

from metal.api.server import State
from metal.controllers.server.scope import Scope
from metal.kube.controller import Requeue

WAITS: Mapping[str, str] = {"Maintenance": ""}
_YIELDING = (State.DISCOVERY, State.AVAILABLE, State.RESERVED, State.RELEASED, State.ERROR)
"""States that a maintenance interrupts. Initial touches nothing, and Cleanup owes something that comes first."""


async def enter(scope: Scope) -> Requeue | None:
    """Maintenance, when one holds the server and its state can be left."""
    if scope.server.spec.server_maintenance_ref is None or scope.status.state not in _YIELDING:
        return None
    return scope.go(State.MAINTENANCE, "a maintenance holds the server")


async def run(scope: Scope) -> Requeue:
    """The power is the maintenance's; it is only observed."""
    ref = scope.server.spec.server_maintenance_ref
    if ref is None:
        return _leave(scope)
    await scope.observe()
    return scope.wait("Maintenance", f"the maintenance {ref.namespace}/{ref.name} to end")


def _leave(scope: Scope) -> Requeue:
    scope.set(boot_attempts=0)
    if scope.server.spec.server_claim_ref is not None or scope.status.tenant:
        return scope.go(State.RESERVED, "the maintenance ended; the claim has its server back")
    return scope.go(State.INITIAL, "the maintenance ended; the hardware may have changed, so discovery runs again")
