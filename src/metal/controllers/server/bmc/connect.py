"""Finds the Server's BMC and the system on it."""

from metal.api.server import State
from metal.bmc.errors import BMCNotFound
from metal.controllers.server import identity
from metal.controllers.server.bmc.bmc_endpoint import endpoint_of
from metal.controllers.server.bmc.bmc_errors import InvalidSpec, NoAccess, bmc_restarts
from metal.controllers.server.scope import Scope
from metal.controllers.shared.bmc_endpoint import Problem
from metal.kube.controller.controller import Requeue
from metal.kube.meta import conditions
from metal.kube.meta.objects import Key


async def run(scope: Scope) -> None:
    """Attach the BMC to the scope and make sure that the system's URI is known. Raises BMCError."""
    problem = identity.problem(scope.server)
    if problem:
        raise InvalidSpec(problem)
    access = endpoint_of(scope)
    if isinstance(access, Problem):
        raise NoAccess(access.reason, access.message)
    try:
        scope.bmc = scope.deps.pool.get(access)
    except ValueError as exc:
        raise NoAccess("AccessInvalid", f"the BMC cannot be reached as declared: {exc}") from exc
    if not scope.uri:
        await find_system(scope)


async def pause(scope: Scope) -> Requeue | None:
    """Leave the machine alone while its BMC restarts, until the deadline that the BMC's status gives."""
    ref = scope.server.spec.bmc_ref
    bmc = scope.deps.bmcs.get(Key(ref.name)) if ref is not None else None
    if bmc is None or bmc.status.restart is None or not conditions.is_true(bmc.status.conditions, "Reset"):
        return None
    until = bmc.status.restart.until
    if until is None or scope.now >= until or scope.status.state == State.ERROR:
        return None
    return bmc_restarts(scope, bmc.metadata.name, until)


async def find_system(scope: Scope) -> None:
    """Look the system up by its UUID and keep its URI. Raises BMCError."""
    found = [system for system in await scope.connected().systems() if identity.matches(scope.server, system)]
    if not found:
        raise BMCNotFound(f"the BMC has no system with the UUID {scope.server.uuid}; correct spec.systemUUID")
    if scope.uri == found[0].uri:
        return
    await scope.patch({"spec": {"systemURI": found[0].uri}})
