"""A Server that was deleted and created again: the machine may still be its tenant's, or an erasure may be outstanding.

When a Server is deleted with a tenant's data on the machine, `record_outstanding` keeps its claim's UID and the policy
in a SanitizationEvidence that is found by what identifies the system (`outstanding.system_of`). When a Server of that
machine appears, `adoption` decides its first state by `open_records` and `possible_owners`: Reserved when exactly one
existing claim may have it and matches; Cleanup when an erasure is outstanding and no claim can have it. Where several
claims may have it, nothing is erased and the server waits for an administrator (`FormerTenant`). `before_available`
checks again at the end of discovery, for Servers that existed before the other one was deleted. `close_records` closes
these records, once a cleanup has erased the machine.
"""

import structlog

from metal.api.claim import ServerClaim
from metal.api.sanitization import Policy, SanitizationEvidence
from metal.api.server import State
from metal.controllers.server import system_check
from metal.controllers.server.reasons import ConditionType, WaitFor
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy import record_key, sanitization_policy
from metal.controllers.server.tenancy.drive_search import system_of
from metal.controllers.server.tenancy.ownership import Ownership, names_another, ownership, record_of
from metal.controllers.server.tenancy.tenancy import find_claim
from metal.controllers.server.traits import traits_of
from metal.controllers.shared.condition_types import BOOTED
from metal.controllers.shared.indexes import BY_SERVER
from metal.evidence import outstanding
from metal.kube.controller.controller import Requeue
from metal.kube.meta import conditions
from metal.kube.meta.objects import key_of
from metal.machine import tenancy

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


def is_named(scope: Scope) -> bool:
    """True when a claim that has booted names this Server."""
    near = scope.deps.claims.by_index(BY_SERVER, scope.name)
    return any(conditions.is_true(one.status.conditions, BOOTED) for one in near)


async def before_available(scope: Scope) -> Requeue | None:
    """None when no erasure is outstanding; repeats the check for Servers that existed before."""
    records = [one for one in await open_records(scope) if one.spec.policy]
    if not records:
        return None
    owners = await possible_owners(scope, records)
    return await_decision(scope, owners, records) if owners else clean_up_first(scope, records)


async def open_records(scope: Scope) -> list[SanitizationEvidence]:
    """The open records of this machine, the oldest first. Raises ApiError."""
    return await outstanding.find(scope.context.client, scope.context.kinds, system_of(scope))


async def possible_owners(scope: Scope, records: list[SanitizationEvidence]) -> list[ServerClaim]:
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


def is_owner(scope: Scope, claim: ServerClaim, records: list[SanitizationEvidence]) -> bool:
    """True when the only claim that may have the machine was on it, and names no other Server."""
    was_here = not records or claim.metadata.uid in {one.spec.claim_uid for one in records}
    return was_here and not names_another(claim, scope.name)


def await_decision(scope: Scope, owners: list[ServerClaim], records: list[SanitizationEvidence]) -> Requeue:
    """Wait for what an administrator has to decide; it ends when these claims or records are gone."""
    claims = ", ".join(str(key_of(one)) for one in owners)
    evidence = ", ".join(one.metadata.name for one in records) or "none"
    text = (
        f"a manual decision: ownership is ambiguous, because a Server was deleted while a tenant's data was on its "
        f"drives (SanitizationEvidence {evidence}), which may be that of {claims}. The machine is not changed. "
        f"{_how_to_keep(scope, owners, records)}. Where the data is not needed, delete these claims to have it erased, "
        "or delete that evidence to have the machine discovered as a new one"
    )
    return scope.wait(WaitFor.FORMER_TENANT, text)


def _how_to_keep(scope: Scope, owners: list[ServerClaim], records: list[SanitizationEvidence]) -> str:
    """How the data is kept, depending on what the claims name."""
    again = f"Server {scope.name}: once it was created again, which its BMC does, it is given to the claim"
    if len(owners) == 1 and is_owner(scope, owners[0], records):
        return f"To keep the claim, delete {again}"
    if others := sorted({one.spec.server_ref.name for one in owners if one.spec.server_ref} - {scope.name}):
        return (
            f"To keep the claim, create a Server with the name in its spec.serverRef ({', '.join(others)}), and "
            f"systemUUID and bmcRef of this one, then delete Server {scope.name}"
        )
    return (
        f"None of them is recorded as the last tenant. To keep the data for one of them, which must have {scope.name} "
        f"in its spec.serverRef, delete the others and that evidence, then {again}"
    )


def clean_up_first(scope: Scope, records: list[SanitizationEvidence]) -> Requeue:
    """Begin with the erasure that these records say is outstanding: all their drives, to the strictest policy."""
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
    for record in await open_records(scope):
        if result not in (Policy.CLEAR, Policy.PURGE) and record.spec.claim_uid != ended.uid:
            continue  # nothing was erased, and this record is of another tenant
        key = await record_key.find(scope, record.metadata.name)
        if key is not None:
            await outstanding.close(context.client, context.kinds, record, result, evidence_name, key, scope.now)
