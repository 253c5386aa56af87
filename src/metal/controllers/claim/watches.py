"""Registers the ServerClaim reconciler with a runtime: which change of which object reconciles which claim."""

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial

from metal.api.claim import ServerBootConfiguration, ServerClaim
from metal.api.names import IGNORE, OPERATION
from metal.api.server import Server
from metal.controllers.claim import matching
from metal.controllers.claim.reasons import ClaimReason
from metal.controllers.claim.reconciler import ServerClaimReconciler
from metal.controllers.claim.scope import ClaimDeps
from metal.controllers.claim.settings import ClaimSettings
from metal.controllers.claim.waiting import Age, WaitingClaims, age
from metal.controllers.server.traits import traits_of
from metal.controllers.shared.indexes import BY_CLAIM, BY_SERVER, claim_index, server_index
from metal.controllers.shared.scope import Context
from metal.kube.controller.runtime import Runtime
from metal.kube.meta import conditions
from metal.kube.meta.objects import Key, key_of


def setup_claims(
    context: Context, runtime: Runtime, settings: ClaimSettings, *, workers: int = 16
) -> ServerClaimReconciler:
    """Add the ServerClaim controller."""
    kinds = context.kinds
    deps = ClaimDeps(
        context, settings, claims=runtime.informer(kinds.claim), servers=runtime.informer(kinds.server),
        configs=runtime.informer(kinds.boot_config), waiting=WaitingClaims(partial(_can_bind, context, settings)),
    )  # fmt: skip
    deps.servers.add_index(BY_CLAIM, claim_index)
    deps.claims.add_index(BY_SERVER, server_index)
    reconciler = ServerClaimReconciler(deps)
    controller = runtime.controller("serverclaim", reconciler.reconcile, workers=workers, order=partial(_rank, deps))
    reconciler.wake = controller.queue.add
    controller.watches_changes(deps.claims, lambda old, new: _next_in_line(deps, old, new))
    controller.watches_own(deps.claims, context.own_writes(kinds.claim))
    controller.watches_changes(deps.servers, lambda old, new: _claims_of(deps, old, new))
    controller.watches(deps.configs, _claim_of_config, _content_changed)
    return reconciler


def _claims_of(deps: ClaimDeps, old: Server | None, new: Server | None) -> Iterable[Key]:
    """The claims that hold the server or held it, those that name it, and the one that gets it when it is free."""
    for server in (old, new):
        if server is not None and (ref := server.spec.server_claim_ref) is not None:
            yield Key(ref.name, ref.namespace)
    last = new or old
    if last is None:
        return
    name, free = last.metadata.name, new is not None and _is_free(new)
    if not (free and _still_fits(deps, last)) and (lost := deps.waiting.withdraw(name)) is not None:
        yield lost  # it looks for another one
    if last.spec.server_claim_ref is None:
        yield from map(key_of, deps.claims.by_index(BY_SERVER, name))
    if free and deps.waiting.getting(name) is None and (key := deps.waiting.offer(last)) is not None:
        yield key


def _is_free(server: Server) -> bool:
    return server.spec.server_claim_ref is None and traits_of(server.status.state).claimable


def _still_fits(deps: ClaimDeps, server: Server) -> bool:
    """Whether the claim to which the server is promised, if any, can still have it."""
    key = deps.waiting.getting(server.metadata.name)
    claim = deps.claims.get(key) if key is not None else None
    return claim is None or matching.mismatch(claim, server) is None


def _next_in_line(deps: ClaimDeps, old: ServerClaim | None, new: ServerClaim | None) -> Iterable[Key]:
    """The claim that gets the server which was promised to one that waits no longer."""
    freed = deps.waiting.update(old, new)
    server = deps.servers.get(Key(freed)) if freed else None
    if server is not None and _is_free(server) and (key := deps.waiting.offer(server)) is not None:
        yield key


def _waits(claim: ServerClaim) -> bool:
    return claim.status.phase != "Bound" and claim.metadata.deletion_timestamp is None


def _can_bind(context: Context, settings: ClaimSettings, claim: ServerClaim) -> bool:
    """Whether the claim competes for servers: it waits, is managed, and has lost none."""
    meta = claim.metadata
    bound = conditions.find(claim.status.conditions, "Bound")
    return (
        _waits(claim)
        and meta.namespace != settings.namespace
        and meta.annotations.get(context.kinds.key(OPERATION)) != IGNORE
        and (bound is None or bound.reason != ClaimReason.SERVER_LOST)
        and not matching.selector_problem(claim)
    )


def _rank(deps: ClaimDeps, key: Key) -> Age:
    """The oldest claim is first; one that was deleted has nothing to wait for."""
    claim = deps.claims.get(key)
    return age(claim) if claim is not None else (datetime.min.replace(tzinfo=UTC), "", key)


def _claim_of_config(config: ServerBootConfiguration) -> Iterable[Key]:
    return (key_of(config),)


def _content_changed(old: ServerBootConfiguration | None, new: ServerBootConfiguration | None) -> bool:
    """Whether a configuration came, went or asks for something else; whether it is ready is its server's affair."""
    if old is None or new is None:
        return True
    before, after = old.metadata, new.metadata
    return old.spec != new.spec or (before.uid, before.owner_references) != (after.uid, after.owner_references)
