"""Takes a server for a maintenance, and lets it go: to the next that waits, in the same write, or to nobody."""

from metal.api.kinds import Kinds
from metal.api.maintenance import ServerMaintenance
from metal.api.server import Server
from metal.controllers.maintenance import claim_labels, queue_order
from metal.controllers.maintenance.scope import MaintenanceDeps
from metal.controllers.shared.boot_config import MAINTENANCE_REF
from metal.kube.client.errors import NotFound
from metal.kube.meta.objects import Key
from metal.kube.meta.permissions import Permission


def holds(key: Key, server: Server) -> bool:
    """True when the server is the maintenance's."""
    ref = server.spec.server_maintenance_ref
    return ref is not None and (ref.namespace, ref.name) == (key.namespace, key.name)


async def take(deps: MaintenanceDeps, maintenance: ServerMaintenance, name: str) -> None:
    """Take the server if it is still the maintenance's turn, looking at the newest versions. Raises ApiError."""
    client, kinds = deps.context.client, deps.context.kinds
    server = await client.get(kinds.server, name)
    deps.servers.observe(server)
    ref = server.spec.server_claim_ref
    try:
        claim = await client.get(kinds.claim, ref.name, ref.namespace) if ref is not None else None
    except NotFound:
        claim = None
    if claim is not None:
        deps.claims.observe(claim)
    if queue_order.obstacle(maintenance, server, claim, deps.of_server(name), kinds.key) is None:
        await _point(deps, server, maintenance)


async def release(deps: MaintenanceDeps, key: Key, name: str) -> None:
    """Let go of the server, and mark its claim for what is left. Raises ApiError; Conflict when it has changed."""
    server = deps.servers.get(Key(name))
    if server is None:
        return
    left = [
        one for one in deps.of_server(name) if (one.metadata.namespace, one.metadata.name) != (key.namespace, key.name)
    ]
    claim = deps.claim_of(server)
    if holds(key, server):
        await _point(deps, server, queue_order.first(left, claim, deps.context.kinds.key))
    if claim is not None:
        await claim_labels.follow(deps, claim, left)


async def _point(deps: MaintenanceDeps, server: Server, to: ServerMaintenance | None) -> None:
    ref = {"namespace": to.metadata.namespace, "name": to.metadata.name} if to is not None else None
    body = {
        "metadata": {"resourceVersion": server.metadata.resource_version},
        "spec": {"serverMaintenanceRef": ref, MAINTENANCE_REF: None},
    }
    try:
        fresh = await deps.context.client.patch(deps.context.kinds.server, server.metadata.name, body)
    except NotFound:
        return
    deps.servers.observe(fresh)


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """What this module does with the API."""
    return (
        Permission(kinds.server, ("get", "patch"), "takes a server for a maintenance, looking at its newest version"),
        Permission(kinds.claim, ("get",), "looks at the newest approval of a claim's owner"),
    )
