"""The ServerBootConfiguration of a maintenance: named after it, owned by it, and pointed at by its server."""

from typing import Any

import msgspec

from metal.api.claim import ServerBootConfiguration
from metal.api.kinds import Kinds
from metal.api.maintenance import ServerMaintenance
from metal.api.server import Server
from metal.controllers.maintenance.scope import MaintenanceDeps, MaintenanceScope
from metal.kube.client.errors import NotFound
from metal.kube.meta.objects import key_of
from metal.kube.meta.ownership import controller_reference, is_controlled_by
from metal.kube.meta.permissions import APPLY, Permission, blocks, disowns

MANAGER = "metal-operator"


class NameTaken(Exception):
    """A ServerBootConfiguration of this name belongs to somebody else."""


async def follow(scope: MaintenanceScope, server: Server) -> ServerBootConfiguration | None:
    """The configuration as the template has it, or None without a template. Raises NameTaken, ApiError."""
    deps, maintenance = scope.deps, scope.obj
    if maintenance.spec.server_boot_configuration_template is None:
        return None
    config = deps.configs.get(key_of(maintenance))
    if config is not None and not is_controlled_by(config, maintenance):
        raise NameTaken(
            f"the ServerBootConfiguration {key_of(maintenance)} belongs to something else; "
            "make the maintenance under another name"
        )
    desired = _desired(deps, maintenance)
    if config is None or msgspec.to_builtins(config.spec) != desired["spec"]:
        config = await deps.context.client.apply(deps.context.kinds.boot_config, desired, manager=MANAGER)
        deps.configs.observe(config)
    await _point(deps, maintenance, server)
    return config


def _desired(deps: MaintenanceDeps, maintenance: ServerMaintenance) -> dict[str, Any]:
    template, meta = maintenance.spec.server_boot_configuration_template, maintenance.metadata
    if template is None:
        raise ValueError("only a maintenance with a template boots something")
    owner = controller_reference(maintenance, deps.context.kinds.maintenance)
    spec = msgspec.structs.replace(template.spec, server_ref=maintenance.spec.server_ref)
    return {
        "metadata": {"name": meta.name, "namespace": meta.namespace, "ownerReferences": [owner]},
        "spec": msgspec.to_builtins(spec),
    }


async def _point(deps: MaintenanceDeps, maintenance: ServerMaintenance, server: Server) -> None:
    ref, meta = server.spec.maintenance_boot_configuration_ref, maintenance.metadata
    if ref is not None and (ref.namespace, ref.name) == (meta.namespace, meta.name):
        return
    body = {
        "metadata": {"resourceVersion": server.metadata.resource_version},
        "spec": {"maintenanceBootConfigurationRef": {"namespace": meta.namespace, "name": meta.name}},
    }
    deps.servers.observe(await deps.context.client.patch(deps.context.kinds.server, server.metadata.name, body))


async def drop(deps: MaintenanceDeps, maintenance: ServerMaintenance) -> None:
    """Remove the configuration of a maintenance that ends; the garbage collector would do it later."""
    config = deps.configs.get(key_of(maintenance))
    if config is None or not is_controlled_by(config, maintenance):
        return
    meta, kind = config.metadata, deps.context.kinds.boot_config
    try:
        await deps.context.client.delete(kind, meta.name, meta.namespace, uid=meta.uid)
    except NotFound:
        return


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """What this module does with the API."""
    return (
        Permission(kinds.boot_config, (*APPLY, "delete"), "asks for what a maintenance boots, until it ends"),
        Permission(kinds.server, ("patch",), "points the server at the maintenance's boot configuration"),
        blocks(kinds.maintenance),
        disowns(kinds.boot_config),
    )
