"""Assigns a server to a maintenance (spec.serverMaintenanceRef), and releases it when the maintenance ends.

A release assigns the server to the next maintenance in the same patch, so the server does not leave the state
Maintenance in between: a claimed server would otherwise boot its tenant for a moment. Both patches are guarded by
resourceVersion.
"""

from metal.api.kinds import Kinds
from metal.api.maintenance import ServerMaintenance
from metal.api.server import Server
from metal.controllers.maintenance import claim_labels, queue_order
from metal.controllers.maintenance.scope import MaintenanceDeps
from metal.controllers.shared.boot_config import MAINTENANCE_REF
from metal.kube.client.errors import NotFound
from metal.kube.meta.objects import Key
from metal.kube.meta.permissions import Permission


def is_assigned(key: Key, server: Server) -> bool:
    """True when the server is assigned to the maintenance."""
    ref = server.spec.server_maintenance_ref
    return ref is not None and (ref.namespace, ref.name) == (key.namespace, key.name)


async def assign(deps: MaintenanceDeps, maintenance: ServerMaintenance, name: str) -> None:
    """Assign the server if the maintenance is still next, judging by the newest versions. Raises ApiError."""
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
    if queue_order.obstacle(maintenance, server, claim, deps.of_server(name), deps.rules) is None:
        await _write(deps, server, maintenance)


async def release(deps: MaintenanceDeps, key: Key, name: str) -> None:
    """Assign the server to the next maintenance or to none, and update its claim's labels. Raises ApiError."""
    server = deps.servers.get(Key(name))
    if server is None:
        return
    left = [
        one for one in deps.of_server(name) if (one.metadata.namespace, one.metadata.name) != (key.namespace, key.name)
    ]
    claim = deps.claim_of(server)
    if is_assigned(key, server):
        await _write(deps, server, queue_order.first(left, claim, deps.rules))
    if claim is not None:
        await claim_labels.update(deps, claim, left)


async def _write(deps: MaintenanceDeps, server: Server, maintenance: ServerMaintenance | None) -> None:
    ref = (
        {"namespace": maintenance.metadata.namespace, "name": maintenance.metadata.name}
        if maintenance is not None
        else None
    )
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
    """Permissions of this module."""
    return (
        Permission(
            kinds.server, ("get", "patch"), "assigns a server to a maintenance, after reading its newest version"
        ),
        Permission(kinds.claim, ("get",), "reads the approval of the claim's owner"),
    )
