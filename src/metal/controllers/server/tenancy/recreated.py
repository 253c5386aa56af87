"""A Server that was deleted and created again: the machine may still be its tenant's, or an erasure may be outstanding.

When a Server is deleted with a tenant's data on the machine, `record_outstanding` keeps its claim's UID and the policy
in a SanitizationEvidence that is found by what identifies the system (`outstanding.system_of`). When a Server of that
machine appears, `enter` decides its first state: Reserved when exactly one existing claim may have it and matches;
Cleanup when an erasure is outstanding and no claim can have it; Initial when nothing is outstanding. Where several
claims may have it, nothing is erased and the server waits for an administrator (`FormerTenant`). `before_discovery`
decides again where the UUID identifies no machine and the serial number was not known before. `before_available` checks
again at the end of discovery, for Servers that existed before the other one was deleted. `close_records` closes these
records, once a cleanup has erased the machine.
"""

from contextlib import suppress

import structlog

from metal.api.claim import ServerClaim
from metal.api.sanitization import Policy, SanitizationEvidence
from metal.api.server import State
from metal.controllers.server import system_check
from metal.controllers.server.reasons import ConditionType, Reason, WaitFor
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy import sanitization_policy
from metal.controllers.server.tenancy.drive_search import system_of
from metal.controllers.server.tenancy.ownership import Ownership, names_another, ownership, record_of
from metal.controllers.server.tenancy.tenancy import assume_booted, find_claim
from metal.controllers.server.traits import traits_of
from metal.controllers.shared.condition_types import BOOTED
from metal.controllers.shared.indexes import BY_SERVER
from metal.evidence import outstanding
from metal.evidence.signing import KeyUnusable
from metal.kube.controller.controller import Requeue
from metal.kube.meta import conditions
from metal.machine import tenancy
from metal.machine.identity import is_shared

_log = structlog.get_logger(__name__)


async def record_outstanding(scope: Scope) -> None:
    """Record the outstanding erasure and the claim of a Server that is being deleted. Raises ApiError."""
    claimed = traits_of(scope.status.state).owed_when_deleted and tenancy.holds_data(scope.tenancy)
    if system_check.problem(scope.server) or not (tenancy.ran_tenant(scope.tenancy) or claimed):
        return
    policy = scope.tenancy.policy or sanitization_policy.policy_for(scope, None)
    if policy == Policy.NONE and await find_claim(scope) is None:
        return
    policy = "" if policy == Policy.NONE else policy
    evidence = await outstanding.create(
        scope.context.client, scope.context.kinds, scope.server, system_of(scope), policy
    )
    _log.warning("server deleted while a tenant's data is on it", server=scope.name, evidence=evidence.metadata.name)


async def enter(scope: Scope) -> Requeue | None:
    """Give a Server without a state its first one; None for a Server that has one. Raises ApiError.

    A claimed one (a restored backup) is Reserved, and counts as booted, so that no network boot overwrites its disk.
    """
    if scope.status.state:
        return None
    if scope.server.spec.server_claim_ref is not None:
        assume_booted(scope)
        return scope.transition(State.RESERVED, "claimed before its status was lost")
    return await _enter_unclaimed(scope)


async def _enter_unclaimed(scope: Scope) -> Requeue:
    known = None if system_check.problem(scope.server) else await _former_tenant(scope)
    return _begin_new(scope) if known is None else known


async def before_discovery(scope: Scope) -> Requeue | None:
    """Repeats the decision of `enter` where it was made without the serial number, or before a restored backup.

    A UUID that many machines have identifies none without a serial number. A Server that was restored as it was before
    its claim has a state, and does not name the claim that has booted.
    """
    unclaimed = scope.server.spec.server_claim_ref is None and not system_check.problem(scope.server)
    return await _former_tenant(scope) if is_shared(scope.server.uuid) or (unclaimed and _is_named(scope)) else None


def _is_named(scope: Scope) -> bool:
    near = scope.deps.claims.by_index(BY_SERVER, scope.name)
    return any(conditions.is_true(one.status.conditions, BOOTED) for one in near)


async def _former_tenant(scope: Scope) -> Requeue | None:
    """Give the machine back to its tenant, or erase it first; None when nothing is known of a former tenant."""
    records = await _open_records(scope)
    owners = await _possible_owners(scope, records)
    if not owners:
        return _clean_up_first(scope, records) if any(one.spec.policy for one in records) else None
    if len(owners) > 1 or not _is_owner(scope, owners[0], records):
        return scope.wait(WaitFor.FORMER_TENANT, _ambiguity(owners, records))
    ref = {"namespace": owners[0].metadata.namespace, "name": owners[0].metadata.name}
    await scope.patch({"spec": {"serverClaimRef": ref}})
    assume_booted(scope)
    return scope.transition(State.RESERVED, "claimed before its Server was deleted")


def _begin_new(scope: Scope) -> Requeue:
    scope.set(tenancy=tenancy.clean(scope.tenancy, scope.now))
    return scope.transition(State.INITIAL, "a new server")


async def before_available(scope: Scope) -> Requeue | None:
    """None when no erasure is outstanding; repeats the check for Servers that existed before."""
    records = [one for one in await _open_records(scope) if one.spec.policy]
    if not records:
        return None
    owners = await _possible_owners(scope, records)
    return scope.fail(Reason.FORMER_TENANT, _ambiguity(owners, records)) if owners else _clean_up_first(scope, records)


async def _open_records(scope: Scope) -> list[SanitizationEvidence]:
    return await outstanding.find(scope.context.client, scope.context.kinds, system_of(scope))


async def _possible_owners(scope: Scope, records: list[SanitizationEvidence]) -> list[ServerClaim]:
    """Existing claims that may have this machine: those that were on it, else every possible one.

    When an erasure is outstanding, claims are read from the API, because the cache may be behind. When none is, only a
    claim that may have booted can have left data.
    """
    known = record_of(scope.name, None, (one.spec.claim_uid for one in records))
    if not records:
        near = scope.deps.claims.by_index(BY_SERVER, scope.name)
        return [one for one in near if ownership(one, known) >= Ownership.LIKELY and _may_have_booted(one)]
    claims = (await scope.context.client.list(scope.context.kinds.claim)).items
    found = [(grade, one) for one in claims if (grade := ownership(one, known))]
    proven = [one for grade, one in found if grade is Ownership.PROVEN]
    return proven or [one for _, one in found]


def _may_have_booted(claim: ServerClaim) -> bool:
    """False when the condition says that it has not; a claim of the Go operator has no such condition."""
    booted = conditions.find(claim.status.conditions, BOOTED)
    return booted is None or booted.status == "True"


def _is_owner(scope: Scope, claim: ServerClaim, records: list[SanitizationEvidence]) -> bool:
    was_here = not records or claim.metadata.uid in {one.spec.claim_uid for one in records}
    return was_here and not names_another(claim, scope.name)


def _ambiguity(owners: list[ServerClaim], records: list[SanitizationEvidence]) -> str:
    claims = ", ".join(f"{one.metadata.namespace}/{one.metadata.name}" for one in owners)
    evidence = ", ".join(one.metadata.name for one in records) or "none"
    return (
        f"a manual decision: ownership is ambiguous, because the Server was deleted while a tenant's data was on its "
        f"drives (SanitizationEvidence {evidence}), which may be that of {claims}. The machine is not changed. To "
        "keep the claim, create a Server with the name in its spec.serverRef, and systemUUID and bmcRef of this one, "
        "then delete this one. Where the data is not needed, delete these claims to have it erased, or delete that "
        "evidence to have the machine discovered as a new one"
    )


def _clean_up_first(scope: Scope, records: list[SanitizationEvidence]) -> Requeue:
    policies = {one.spec.policy for one in records}
    policy = Policy.PURGE if Policy.PURGE in policies else Policy.CLEAR
    known = tuple(dict.fromkeys((*scope.status.drives, *outstanding.drives(records))))
    owed = tenancy.owed(scope.tenancy, records[-1].spec.claim_uid or "unknown", policy, scope.now)
    scope.set(tenancy=owed, drives=known, boot_window=None, boot_attempts=0)
    scope.condition(ConditionType.DISCOVERED, False, "ErasedFirst", "the data of the last tenant is erased first")
    names = ", ".join(one.metadata.name for one in records)
    return scope.transition(
        State.CLEANUP, f"its Server was deleted before the erasure (SanitizationEvidence {names}); it is erased first",
        warning=True,
    )  # fmt: skip


def is_undiscovered(scope: Scope) -> bool:
    """True for a server that was cleaned up before it was discovered."""
    found = scope.find_condition(ConditionType.DISCOVERED)
    return found is not None and found.status == "False"


async def close_records(scope: Scope) -> None:
    """Close the records of deleted Servers of this machine after a cleanup. Raises ApiError."""
    if system_check.problem(scope.server):
        return
    context, ended = scope.context, scope.tenancy
    result, evidence_name = ended.sanitization, scope.status.sanitization_evidence
    for record in await _open_records(scope):
        if result not in (Policy.CLEAR, Policy.PURGE) and record.spec.claim_uid != ended.uid:
            continue  # nothing was erased, and this record is of another tenant
        with suppress(KeyUnusable):  # then the record stays open: erased twice is better than never
            key = await scope.deps.keys.signing_key()
            await outstanding.close(context.client, context.kinds, record, result, evidence_name, key, scope.now)
