"""Registers the ServerClaim reconciler with a runtime: which change of which object reconciles which claim."""

from collections.abc import Iterable

from metal.api.claim import ServerBootConfiguration, ServerClaim
from metal.api.server import Server
from metal.controllers.claim import matching
from metal.controllers.claim.reconciler import ServerClaimReconciler
from metal.controllers.claim.scope import ClaimDeps
from metal.controllers.claim.settings import ClaimSettings
from metal.controllers.server.traits import traits_of
from metal.controllers.shared.indexes import BY_CLAIM, BY_SERVER, claim_index, server_index
from metal.controllers.shared.scope import Context
from metal.kube.controller.runtime import Runtime
from metal.kube.meta.objects import Key, key_of

UNBOUND = "unbound"
"""Index of the ServerClaims that have no server."""


def unbound_index(claim: ServerClaim) -> Iterable[str]:
    """Index of the ServerClaims that wait for a server."""
    return () if claim.status.phase == "Bound" else ("yes",)


def setup_claims(
    context: Context, runtime: Runtime, settings: ClaimSettings, *, workers: int = 16
) -> ServerClaimReconciler:
    """Add the ServerClaim controller."""
    kinds = context.kinds
    deps = ClaimDeps(
        context, settings, claims=runtime.informer(kinds.claim), servers=runtime.informer(kinds.server),
        configs=runtime.informer(kinds.boot_config),
    )  # fmt: skip
    deps.servers.add_index(BY_CLAIM, claim_index)
    deps.claims.add_index(BY_SERVER, server_index)
    deps.claims.add_index(UNBOUND, unbound_index)
    reconciler = ServerClaimReconciler(deps)
    controller = runtime.controller("serverclaim", reconciler.reconcile, workers=workers)
    controller.watches_own(deps.claims, context.own_writes(kinds.claim))
    controller.watches_changes(deps.servers, lambda old, new: _claims_of(deps, old, new))
    controller.watches(deps.configs, _claim_of_config, _content_changed)
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
    if new is None or not traits_of(new.status.state).claimable:
        return
    for claim in deps.claims.by_index(UNBOUND, "yes"):
        if matching.mismatch(claim, new) is None and (old is None or matching.mismatch(claim, old) is not None):
            yield key_of(claim)


def _claim_of_config(config: ServerBootConfiguration) -> Iterable[Key]:
    return (key_of(config),)


def _content_changed(old: ServerBootConfiguration | None, new: ServerBootConfiguration | None) -> bool:
    """Whether a configuration came, went or asks for something else; whether it is ready is its server's affair."""
    if old is None or new is None:
        return True
    before, after = old.metadata, new.metadata
    return old.spec != new.spec or (before.uid, before.owner_references) != (after.uid, after.owner_references)
