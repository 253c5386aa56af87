"""Adds the ServerMaintenance controller to a runtime: its informers, its indexes and the changes that cause a pass."""

from collections.abc import Iterable

from metal.api.claim import ServerClaim
from metal.api.server import Server
from metal.controllers.maintenance.reconciler import ServerMaintenanceReconciler
from metal.controllers.maintenance.scope import BY_MAINTENANCE, MaintenanceDeps
from metal.controllers.maintenance.settings import MaintenanceSettings
from metal.controllers.shared.indexes import BY_CLAIM, BY_SERVER, claim_index
from metal.controllers.shared.scope import Context
from metal.kube.controller.controller import owner_keys
from metal.kube.controller.runtime import Runtime
from metal.kube.meta.objects import Key, key_of


def setup_maintenances(
    context: Context, runtime: Runtime, settings: MaintenanceSettings, *, workers: int = 8
) -> ServerMaintenanceReconciler:
    """Add the ServerMaintenance controller."""
    kinds = context.kinds
    deps = MaintenanceDeps(
        context, settings, maintenances=runtime.informer(kinds.maintenance), servers=runtime.informer(kinds.server),
        claims=runtime.informer(kinds.claim), configs=runtime.informer(kinds.boot_config),
    )  # fmt: skip
    deps.maintenances.add_index(BY_SERVER, lambda one: (one.spec.server_ref.name,))
    deps.servers.add_index(BY_MAINTENANCE, _maintenance_of)
    deps.servers.add_index(BY_CLAIM, claim_index)
    reconciler = ServerMaintenanceReconciler(deps)
    controller = runtime.controller("servermaintenance", reconciler.reconcile, workers=workers)
    own = context.own_writes(kinds.maintenance)
    controller.watches_own(deps.maintenances, own, lambda one: _queue(deps, one.spec.server_ref.name, key_of(one)))
    controller.watches(deps.servers, lambda server: _of_server(deps, server))
    controller.watches(deps.claims, lambda claim: _of_claim(deps, claim), _approval_may_have_changed)
    controller.watches(deps.configs, owner_keys(kinds.maintenance))
    return reconciler


def _maintenance_of(server: Server) -> Iterable[str]:
    ref = server.spec.server_maintenance_ref
    return () if ref is None else (f"{ref.namespace}/{ref.name}",)


def _queue(deps: MaintenanceDeps, server: str, *more: Key) -> Iterable[Key]:
    """All maintenances in a server's queue: one that is created or deleted changes which is next."""
    return {*map(key_of, deps.maintenances.by_index(BY_SERVER, server)), *more}


def _of_server(deps: MaintenanceDeps, server: Server) -> Iterable[Key]:
    ref = server.spec.server_maintenance_ref
    return _queue(deps, server.metadata.name, *(() if ref is None else (Key(ref.name, ref.namespace),)))


def _of_claim(deps: MaintenanceDeps, claim: ServerClaim) -> Iterable[Key]:
    servers = deps.servers.by_index(BY_CLAIM, str(key_of(claim)))
    return {key for server in servers for key in _queue(deps, server.metadata.name)}


def _approval_may_have_changed(old: ServerClaim | None, new: ServerClaim | None) -> bool:
    """Whether a claim was created or deleted, or its labels changed, one of which is the approval."""
    if old is None or new is None:
        return True
    before, after = old.metadata, new.metadata
    return (before.uid, before.deletion_timestamp, dict(before.labels)) != (
        after.uid, after.deletion_timestamp, dict(after.labels),
    )  # fmt: skip
