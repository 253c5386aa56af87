"""Wires the Server and ServerClaim reconcilers to a runtime: which change wakes which key."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from metal.api.bmc import BMC as BMCObject
from metal.api.claim import ServerBootConfiguration, ServerClaim
from metal.api.endpoint import Endpoint
from metal.api.server import Server, State
from metal.bmc.protocols import Pool
from metal.controllers.claim import matching
from metal.controllers.claim.reconciler import BY_CLAIM, ServerClaimReconciler, claim_index
from metal.controllers.claim.scope import ClaimDeps
from metal.controllers.server.netboot import boot_verification
from metal.controllers.server.reconciler import ServerReconciler
from metal.controllers.server.scope import Deps
from metal.controllers.server.tenancy.tenancy import BY_SERVER
from metal.controllers.shared import bmc_events
from metal.controllers.shared.bmc_endpoint import BMCEndpointDefaults
from metal.controllers.shared.predicates import spec_or_metadata_changed
from metal.controllers.shared.scope import Context
from metal.controllers.shared.settings import ClaimSettings, ServerSettings
from metal.evidence.keys import KeyStore
from metal.kube.controller.runtime import Runtime
from metal.kube.meta import conditions
from metal.kube.meta.objects import Key, key_of
from metal.machine import directory

BY_BMC = "bmc"
UNBOUND = "unbound"


def bmc_index(server: Server) -> Iterable[str]:
    """Index of Servers by their BMC's name."""
    return () if server.spec.bmc_ref is None else (server.spec.bmc_ref.name,)


def server_index(claim: ServerClaim) -> Iterable[str]:
    """Index of ServerClaims by the server that they name."""
    return () if claim.spec.server_ref is None else (claim.spec.server_ref.name,)


def unbound_index(claim: ServerClaim) -> Iterable[str]:
    """Index of the ServerClaims that wait for a server."""
    return () if claim.status.phase == "Bound" else ("yes",)


@dataclass
class Environment:
    """What the reconcilers of this module are made of."""

    context: Context
    runtime: Runtime
    pool: Pool
    access_defaults: BMCEndpointDefaults = field(default_factory=BMCEndpointDefaults)


def setup_servers(env: Environment, settings: ServerSettings, *, workers: int = 64) -> ServerReconciler:
    """Add the Server controller. Workers are coroutines that wait for BMCs, so there are many."""
    runtime, kinds = env.runtime, env.context.kinds
    deps = Deps(
        env.context, settings, env.pool, servers=runtime.informer(kinds.server), claims=runtime.informer(kinds.claim),
        configs=runtime.informer(kinds.boot_config), bmcs=runtime.informer(kinds.bmc),
        secrets=runtime.informer(kinds.bmc_secret), endpoints=runtime.informer(kinds.endpoint),
        maintenances=runtime.informer(kinds.maintenance), access_defaults=env.access_defaults,
        metrics=runtime.metrics.registry,
        keys=KeyStore(env.context.client, kinds, settings.namespace, settings.signing_key),
    )  # fmt: skip
    deps.servers.add_index(BY_BMC, bmc_index)
    deps.servers.add_index(BY_CLAIM, claim_index)
    deps.claims.add_index(BY_SERVER, server_index)
    deps.servers.add_index(boot_verification.BY_MAC, boot_verification.mac_index)
    deps.endpoints.add_index(directory.BY_MAC, directory.by_mac)
    reconciler = ServerReconciler(deps)
    runtime.on_resume(deps.memos.clear)
    controller = runtime.controller("server", reconciler.reconcile, workers=workers, deadline=180.0)
    controller.watches(deps.servers)
    controller.watches(deps.configs, _server_of_config)
    controller.watches(deps.claims, lambda claim: _servers_of_claim(deps, claim), _is_order)
    controller.watches(deps.maintenances, lambda one: (Key(one.spec.server_ref.name),), spec_or_metadata_changed)
    controller.watches(deps.endpoints, lambda endpoint: _servers_with_lease(deps, endpoint))
    controller.watches_changes(deps.bmcs, lambda old, new: _servers_of_bmc(deps, old, new))
    return reconciler


def _server_of_config(config: ServerBootConfiguration) -> Iterable[Key]:
    return (Key(config.spec.server_ref.name),)


def _servers_of_claim(deps: Deps, claim: ServerClaim) -> Iterable[Key]:
    """The server that the claim names, and whichever it holds: a claim may be deleted before it could name one."""
    named = () if claim.spec.server_ref is None else (Key(claim.spec.server_ref.name),)
    return {*named, *map(key_of, deps.servers.by_index(BY_CLAIM, str(key_of(claim))))}


def _is_order(old: ServerClaim | None, new: ServerClaim | None) -> bool:
    """Whether a claim may want something else of its server: most of what it says in its status it has from there."""
    return old is None or new is None or _order(old) != _order(new)


def _order(claim: ServerClaim) -> tuple[object, ...]:
    meta = claim.metadata
    return meta.uid, meta.deletion_timestamp, claim.spec, conditions.is_true(claim.status.conditions, "Booted")


def _servers_with_lease(deps: Deps, endpoint: Endpoint) -> Iterable[Key]:
    """The servers that wait for proof that this lease is theirs."""
    found = (s for mac in directory.by_mac(endpoint) for s in deps.servers.by_index(boot_verification.BY_MAC, mac))
    return [key_of(s) for s in found if s.status.wait is not None and s.status.wait.for_ == "BootConfirmation"]


def _servers_of_bmc(deps: Deps, old: BMCObject | None, new: BMCObject | None) -> Iterable[Key]:
    """Those of a BMC that is back, that sent an event, or whose events can no longer be counted on."""
    told = bmc_events.event_received(old, new)
    if new is None or not (told or _came_back(old, new) or bmc_events.events_stopped(old, new)):
        return
    for key in map(key_of, deps.servers.by_index(BY_BMC, new.metadata.name)):
        if told and (memo := deps.memos.get(key)) is not None:
            memo.system = None  # what was read before the event says nothing of it
        yield key


def _came_back(old: BMCObject | None, new: BMCObject) -> bool:
    return _answers(new) and not (old is not None and _answers(old))


def _answers(bmc: BMCObject) -> bool:
    ready, restarts = (conditions.is_true(bmc.status.conditions, name) for name in ("Ready", "Reset"))
    return ready and not restarts


def setup_claims(env: Environment, settings: ClaimSettings, *, workers: int = 16) -> ServerClaimReconciler:
    """Add the ServerClaim controller."""
    runtime, kinds = env.runtime, env.context.kinds
    deps = ClaimDeps(
        env.context, settings, claims=runtime.informer(kinds.claim), servers=runtime.informer(kinds.server),
        configs=runtime.informer(kinds.boot_config),
    )  # fmt: skip
    deps.servers.add_index(BY_CLAIM, claim_index)
    deps.claims.add_index(BY_SERVER, server_index)
    deps.claims.add_index(UNBOUND, unbound_index)
    reconciler = ServerClaimReconciler(deps)
    controller = runtime.controller("serverclaim", reconciler.reconcile, workers=workers)
    controller.watches(deps.claims)
    controller.watches_changes(deps.servers, lambda old, new: _claims_of(deps, old, new))
    controller.watches(deps.configs, _claim_of_config, _is_another)
    return reconciler


def _claims_of(deps: ClaimDeps, old: Server | None, new: Server | None) -> Iterable[Key]:
    """The claims that hold the server or held it, those that name it, and every unbound one that it fits only now."""
    for server in (old, new):
        if server is not None and (ref := server.spec.server_claim_ref) is not None:
            yield Key(ref.name, ref.namespace)
    last = new or old
    if last is None or last.spec.server_claim_ref is not None:
        return
    yield from map(key_of, deps.claims.by_index(BY_SERVER, last.metadata.name))
    if new is None or new.status.state != State.AVAILABLE:
        return
    for claim in deps.claims.by_index(UNBOUND, "yes"):
        if matching.misfit(claim, new) is None and (old is None or matching.misfit(claim, old) is not None):
            yield key_of(claim)


def _claim_of_config(config: ServerBootConfiguration) -> Iterable[Key]:
    return (key_of(config),)


def _is_another(old: ServerBootConfiguration | None, new: ServerBootConfiguration | None) -> bool:
    """Whether a configuration came, went or asks for something else; whether it is ready is its server's affair."""
    if old is None or new is None:
        return True
    before, after = old.metadata, new.metadata
    return old.spec != new.spec or (before.uid, before.owner_references) != (after.uid, after.owner_references)
