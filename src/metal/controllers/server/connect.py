"""Finds the Server's BMC and the system on it."""

from metal.bmc.errors import BMCNotFound
from metal.bmc.protocols import Access, SystemInfo
from metal.controllers.access import Problem
from metal.controllers.server.access import access_of
from metal.controllers.server.scope import Scope
from metal.controllers.server.trouble import NoAccess


async def run(scope: Scope) -> None:
    """Attach the BMC to the scope and make sure that the system's URI is known. Raises BMCError."""
    access = access_of(scope)
    if isinstance(access, Problem):
        raise NoAccess(access.reason, access.message)
    scope.bmc = scope.deps.pool.get(access)
    if not scope.uri:
        await _find_system(scope, access)


async def _find_system(scope: Scope, access: Access) -> None:
    found = [system for system in await scope.connected().systems() if _matches(scope, system)]
    if not found:
        raise BMCNotFound(
            f"no system of the BMC at {access.address} has the UUID {scope.server.uuid}; correct spec.systemUUID"
        )
    await scope.patch({"spec": {"systemURI": found[0].uri}})


def _matches(scope: Scope, system: SystemInfo) -> bool:
    return system.uuid.lower() == scope.server.uuid
