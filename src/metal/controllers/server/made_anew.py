"""A Server object that was deleted and is made again: the machine is still its tenant's, or owes an erasure still."""

from contextlib import suppress

import structlog

from metal.api.claim import ServerClaim
from metal.api.sanitization import Policy, SanitizationEvidence
from metal.api.server import State
from metal.controllers.server import owing
from metal.controllers.server.claimed import BY_SERVER, assume_booted, tenant_that_booted
from metal.controllers.server.scope import Scope
from metal.evidence import owed, record
from metal.evidence.signing import KeyUnusable
from metal.kube.controller import Requeue

_log = structlog.get_logger(__name__)
_DISCOVERED = "Discovered"


async def leave_owed(scope: Scope) -> None:
    """The Server is being deleted: what its drives owe is kept for its machine's next Server. Raises ApiError."""
    policy = scope.status.sanitization_policy or owing.policy_for(scope, None)
    if policy == Policy.NONE or not owing.is_owed(scope):
        return
    evidence = await owed.leave(scope.context.client, scope.context.kinds, scope.server, policy)
    _log.warning("server deleted before it was erased", server=scope.name, evidence=evidence.metadata.name)


async def begin(scope: Scope) -> Requeue:
    """The first state of a Server that nobody's claim is written on. Raises ApiError."""
    left = await owed.find(scope.context.client, scope.context.kinds, scope.server)
    claim = tenant_that_booted(scope) or (_tenant(scope, left) if left is not None else None)
    if claim is not None:
        ref = {"namespace": claim.metadata.namespace, "name": claim.metadata.name}
        await scope.patch({"spec": {"serverClaimRef": ref}})
        assume_booted(scope)
        return scope.go(State.RESERVED, "claimed before its Server was deleted")
    return scope.go(State.INITIAL, "a new server") if left is None else _owe(scope, left)


def _tenant(scope: Scope, left: SanitizationEvidence) -> ServerClaim | None:
    """Whose claim is still there, booted or not: nothing of it may be erased."""
    for claim in scope.deps.claims.by_index(BY_SERVER, scope.name):
        if claim.metadata.uid == left.spec.claim_uid and claim.metadata.deletion_timestamp is None:
            return claim
    return None


def _owe(scope: Scope, left: SanitizationEvidence) -> Requeue:
    scope.set(
        tenant=left.spec.claim_uid or "unknown", tenant_served=True, sanitization_policy=left.spec.policy,
        drives=owed.drives(left),
    )  # fmt: skip
    scope.condition(_DISCOVERED, False, "ErasedFirst", "what the last tenant left is erased first")
    return scope.go(
        State.CLEANUP,
        f"its Server was deleted before it was erased (SanitizationEvidence {left.metadata.name}); that comes first",
        warning=True,
    )


def is_undiscovered(scope: Scope) -> bool:
    """True for a server that was cleaned up before anybody has looked what it is made of."""
    found = scope.find_condition(_DISCOVERED)
    return found is not None and found.status == "False"


async def settle(scope: Scope) -> None:
    """The cleanup has come to its end, and with it what a deleted Server had left. Raises ApiError."""
    context, status = scope.context, scope.status
    name = owed.name_of(scope.server.uuid, status.tenant)
    left = await record.find(context.client, context.kinds, name)
    if left is None or left.status.phase:
        return
    with suppress(KeyUnusable):  # then it stays owed: erased twice is better than never
        key = await scope.deps.keys.signing_key()
        became, proof = status.sanitization, status.sanitization_evidence
        await owed.settle(context.client, context.kinds, left, became, proof, key, scope.now)
