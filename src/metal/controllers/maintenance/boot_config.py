"""The ServerBootConfiguration of a maintenance: it has its name, is owned by it, and is referenced by its server."""

from typing import Any

import msgspec

from metal.api.claim import ServerBootConfiguration
from metal.api.kinds import Kinds
from metal.api.maintenance import ServerMaintenance
from metal.api.server import Server
from metal.controllers.maintenance.scope import MaintenanceDeps, MaintenanceScope
from metal.controllers.shared import boot_config as shared
from metal.kube.meta.objects import key_of
from metal.kube.meta.ownership import controller_reference, is_controlled_by
from metal.kube.meta.permissions import APPLY, Permission, blocks, disowns


class NameTaken(Exception):
    """A ServerBootConfiguration of this name has another owner."""


async def reconcile(scope: MaintenanceScope, server: Server) -> ServerBootConfiguration | None:
    """Write the configuration of the template; None without a template. Raises NameTaken, ApiError."""
    deps, maintenance = scope.deps, scope.obj
    if maintenance.spec.server_boot_configuration_template is None:
        return None
    config = deps.configs.get(key_of(maintenance))
    if config is not None and not is_controlled_by(config, maintenance):
        raise NameTaken(
            f"ServerBootConfiguration {key_of(maintenance)} has another owner: create the maintenance with another name"
        )
    desired = _desired(deps, maintenance)
    if config is None or msgspec.to_builtins(config.spec) != desired["spec"]:
        config = await shared.apply(deps.context, deps.configs, desired)
    current, key = server.spec.maintenance_boot_configuration_ref, key_of(maintenance)
    await shared.set_reference(deps.context, deps.servers, server, shared.MAINTENANCE_REF, current, key)
    return config


def _desired(deps: MaintenanceDeps, maintenance: ServerMaintenance) -> dict[str, Any]:
    template = maintenance.spec.server_boot_configuration_template
    if template is None:
        raise ValueError("only a maintenance with a template boots something")
    owner = controller_reference(maintenance, deps.context.kinds.maintenance)
    spec = msgspec.structs.replace(template.spec, server_ref=maintenance.spec.server_ref)
    return shared.manifest(key_of(maintenance), owner, msgspec.to_builtins(spec))


async def drop(deps: MaintenanceDeps, maintenance: ServerMaintenance) -> None:
    """Delete the configuration of a maintenance that ends, before the garbage collector does."""
    config = deps.configs.get(key_of(maintenance))
    if config is None or not is_controlled_by(config, maintenance):
        return
    await shared.drop(deps.context, config)


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """Permissions of this module."""
    return (
        Permission(kinds.boot_config, (*APPLY, "delete"), "asks for what a maintenance boots, until it ends"),
        Permission(kinds.server, ("patch",), "points the server at the maintenance's boot configuration"),
        blocks(kinds.maintenance),
        disowns(kinds.boot_config),
    )
