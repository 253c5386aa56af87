"""Finds the Server's BMC and the system on it."""

from metal.bmc.errors import BMCNotFound
from metal.controllers.access import Problem
from metal.controllers.server import identity
from metal.controllers.server.access import access_of
from metal.controllers.server.scope import Scope
from metal.controllers.server.trouble import InvalidSpec, NoAccess


async def run(scope: Scope) -> None:
    """Attach the BMC to the scope and make sure that the system's URI is known. Raises BMCError."""
    problem = identity.problem(scope.server)
    if problem:
        raise InvalidSpec(problem)
    access = access_of(scope)
    if isinstance(access, Problem):
        raise NoAccess(access.reason, access.message)
    try:
        scope.bmc = scope.deps.pool.get(access)
    except ValueError as exc:
        raise NoAccess("AccessInvalid", f"the BMC cannot be reached as declared: {exc}") from exc
    if not scope.uri:
        await find_system(scope)


async def find_system(scope: Scope) -> None:
    """Look the system up by its UUID and keep its URI. Raises BMCError."""
    found = [system for system in await scope.connected().systems() if identity.matches(scope.server, system)]
    if not found:
        raise BMCNotFound(f"the BMC has no system with the UUID {scope.server.uuid}; correct spec.systemUUID")
    if scope.uri == found[0].uri:
        return
    await scope.patch({"spec": {"systemURI": found[0].uri}})
