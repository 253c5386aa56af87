"""Registers the Server reconciler with a runtime: which change of which object reconciles which Server."""

from collections.abc import Iterable

from metal.api.bmc import BMC as BMCObject
from metal.api.claim import ServerBootConfiguration, ServerClaim
from metal.api.endpoint import Endpoint
from metal.api.server import Server
from metal.bmc.pool import Pool
from metal.controllers.server.netboot import progress
from metal.controllers.server.reasons import WaitFor
from metal.controllers.server.reconciler import ServerReconciler
from metal.controllers.server.scope import Deps
from metal.controllers.server.settings import ServerSettings
from metal.controllers.server.tenancy import drive_search
from metal.controllers.shared import bmc_events
from metal.controllers.shared.access import secret_use
from metal.controllers.shared.access.bmc_endpoint import BMCEndpointDefaults
from metal.controllers.shared.condition_types import BOOTED, RESET
from metal.controllers.shared.indexes import (
    BY_BMC,
    BY_CLAIM,
    BY_IDENTITY,
    BY_SERVER,
    bmc_index,
    claim_index,
    identity_index,
    server_index,
)
from metal.controllers.shared.scope import Context
from metal.evidence import outstanding
from metal.evidence.keys import KeyStore
from metal.kube.controller.predicates import spec_or_metadata_changed
from metal.kube.controller.runtime import Runtime
from metal.kube.meta import conditions
from metal.kube.meta.objects import Key, key_of
from metal.machine import directory
from metal.machine.charge import tenancy_of
from metal.machine.identity import identity_of


def setup_servers(
    context: Context,
    runtime: Runtime,
    pool: Pool,
    settings: ServerSettings,
    *,
    endpoint_defaults: BMCEndpointDefaults | None = None,
    workers: int = 64,
) -> ServerReconciler:
    """Add the Server controller. Workers are coroutines that wait for BMCs, so there are many."""
    kinds = context.kinds
    deps = Deps(
        context, settings, pool, servers=runtime.informer(kinds.server), claims=runtime.informer(kinds.claim),
        configs=runtime.informer(kinds.boot_config), bmcs=runtime.informer(kinds.bmc),
        secrets=runtime.informer(kinds.bmc_secret), endpoints=runtime.informer(kinds.endpoint),
        maintenances=runtime.informer(kinds.maintenance),
        owed=runtime.informer(kinds.evidence, labels=outstanding.selector(kinds)),
        endpoint_defaults=endpoint_defaults or BMCEndpointDefaults(),
        keys=KeyStore(context.client, kinds, settings.namespace, settings.signing_key),
    )  # fmt: skip
    _add_indexes(deps)
    reconciler = ServerReconciler(deps)
    runtime.on_resume(deps.memos.clear)
    controller = runtime.controller("server", reconciler.reconcile, workers=workers, deadline=180.0)
    controller.watches_own(deps.servers, context.own_writes(kinds.server))
    controller.watches_changes(deps.servers, lambda old, new: _servers_of_machine(deps, old, new))
    controller.watches(deps.configs, _server_of_config)
    controller.watches(deps.claims, lambda claim: _servers_of_claim(deps, claim), _is_order)
    controller.watches(deps.maintenances, lambda one: (Key(one.spec.server_ref.name),), spec_or_metadata_changed)
    controller.watches(deps.endpoints, lambda endpoint: _servers_with_lease(deps, endpoint))
    controller.watches_changes(deps.bmcs, lambda old, new: _servers_of_bmc(deps, old, new))
    return reconciler


def _add_indexes(deps: Deps) -> None:
    deps.servers.add_index(BY_BMC, bmc_index)
    deps.servers.add_index(BY_CLAIM, claim_index)
    deps.servers.add_index(BY_IDENTITY, identity_index(deps.context.kinds))
    deps.servers.add_index(secret_use.BY_SECRET, secret_use.server_index)
    deps.servers.add_index(outstanding.BY_DRIVE, drive_search.server_index)
    deps.servers.add_index(progress.BY_INTERFACE, progress.mac_index)
    deps.bmcs.add_index(secret_use.BY_SECRET, secret_use.bmc_index)
    deps.claims.add_index(BY_SERVER, server_index)
    deps.owed.add_index(outstanding.BY_DRIVE, outstanding.drive_index)
    deps.endpoints.add_index(directory.BY_MAC, directory.by_mac)


def _servers_of_machine(deps: Deps, old: Server | None, new: Server | None) -> Iterable[Key]:
    """The other Servers of a machine, when what decides between them has changed in one of them."""
    kinds, changed = deps.context.kinds, new or old
    if changed is None or (old is not None and new is not None and _deciding(deps, old) == _deciding(deps, new)):
        return
    keys = {key for server in (old, new) if server is not None for key in identity_of(server, kinds).keys}
    for key in keys:
        for server in deps.servers.by_index(BY_IDENTITY, key):
            if server.metadata.name != changed.metadata.name:
                yield key_of(server)


def _deciding(deps: Deps, server: Server) -> tuple[object, ...]:
    return identity_of(server, deps.context.kinds), tenancy_of(server), server.metadata.deletion_timestamp


def _server_of_config(config: ServerBootConfiguration) -> Iterable[Key]:
    return (Key(config.spec.server_ref.name),)


def _servers_of_claim(deps: Deps, claim: ServerClaim) -> Iterable[Key]:
    """The server that the claim names, and those it holds: a claim may be deleted before it could name one."""
    named = () if claim.spec.server_ref is None else (Key(claim.spec.server_ref.name),)
    return {*named, *map(key_of, deps.servers.by_index(BY_CLAIM, str(key_of(claim))))}


def _is_order(old: ServerClaim | None, new: ServerClaim | None) -> bool:
    """Whether a change of a claim may concern its server: most of its status is copied from the server."""
    return old is None or new is None or _order(old) != _order(new)


def _order(claim: ServerClaim) -> tuple[object, ...]:
    meta = claim.metadata
    return meta.uid, meta.deletion_timestamp, claim.spec, conditions.is_true(claim.status.conditions, BOOTED)


def _servers_with_lease(deps: Deps, endpoint: Endpoint) -> Iterable[Key]:
    """The servers that wait for proof that this lease is theirs."""
    found = (s for mac in directory.by_mac(endpoint) for s in deps.servers.by_index(progress.BY_INTERFACE, mac))
    return [key_of(s) for s in found if s.status.wait is not None and s.status.wait.for_ == WaitFor.BOOT_CONFIRMATION]


def _servers_of_bmc(deps: Deps, old: BMCObject | None, new: BMCObject | None) -> Iterable[Key]:
    """The servers of a BMC that answers again, that sent an event, or whose events have stopped."""
    notified = bmc_events.event_received(old, new)
    if new is None or not (notified or _came_back(old, new) or bmc_events.events_stopped(old, new)):
        return
    for key in map(key_of, deps.servers.by_index(BY_BMC, new.metadata.name)):
        if notified and (memo := deps.memos.get(key)) is not None:
            memo.system = None  # a reading from before the event is outdated
        yield key


def _came_back(old: BMCObject | None, new: BMCObject) -> bool:
    return _answers(new) and not (old is not None and _answers(old))


def _answers(bmc: BMCObject) -> bool:
    ready, restarts = (conditions.is_true(bmc.status.conditions, name) for name in ("Ready", RESET))
    return ready and not restarts
