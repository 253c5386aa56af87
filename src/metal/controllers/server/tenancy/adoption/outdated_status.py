"""Corrects a record of tenancy that is older than the tenancy: a status from a backup was written over a newer one.

Such a record is complete, so that `lost_status` does not rebuild it, but the claim that has booted since is missing in
it: the machine of that claim would be switched off, booted or given away. Three other sources have that claim:

- the claim: its condition Booted is never withdrawn, and `spec.serverRef` names this server. The record is brought up
  to date with it, and `spec.serverClaimRef` is written again. When the record has the data of another tenant, nothing
  is changed and the server waits for an administrator (`FormerTenant`).
- the annotation `metal.ironcore.dev/tenancy`, which is written after the record. If it has a boot, or data on the
  drives of a server that no claim holds, and the record has not, then the record is older and is rebuilt from it.
- the Lease of the machine, of which `correct` gets the copy when a fence finds that the record is older
  (`metal.machine.lease_tenancy`): status and annotation were restored. When the claim is gone, too, it is unknown
  whether it was deleted or the backup removed it. Nothing is erased then until operation=retry.

A claim is read from the API before anything is decided by it.
"""

import msgspec

from metal.api.claim import ServerClaim
from metal.api.sanitization import KnownDrive
from metal.api.server import State
from metal.api.tenancy import ClaimBoot, Tenancy
from metal.controllers.server.reasons import Reason, WaitFor
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy.adoption import lost_status
from metal.controllers.server.tenancy.tenancy import read_claim, refer_to
from metal.controllers.shared.condition_types import BOOTED
from metal.controllers.shared.indexes import BY_SERVER
from metal.kube.controller.controller import Requeue
from metal.kube.meta import conditions
from metal.kube.meta.objects import key_of
from metal.machine import drive_identity, kept_tenancy, tenancy

_UNCLAIMED = (State.INITIAL, State.DISCOVERY, State.AVAILABLE)
"""States in which the annotation has been brought up to date with the record; in others it may lag behind."""


async def run(scope: Scope) -> Requeue | None:
    """None when the record is up to date, or is now; else the next pass, or the wait. Raises ApiError."""
    known = scope.tenancy
    if not known.data:
        return None  # `lost_status` rebuilds it
    booted = [one for one in scope.deps.claims.by_index(BY_SERVER, scope.name) if _has_booted(one)]
    if any(_is_recorded(scope, one) for one in booted):
        return None
    for one in sorted(booted, key=lambda one: one.metadata.uid != known.uid):
        if (claim := await _confirmed(scope, one)) is not None:
            return await _belongs_to(scope, claim)
    return _from_annotation(scope)


def _has_booted(claim: ServerClaim) -> bool:
    return claim.metadata.deletion_timestamp is None and conditions.is_true(claim.status.conditions, BOOTED)


def _is_recorded(scope: Scope, claim: ServerClaim) -> bool:
    """True when the record has this claim's boot, and the reference, if there is one, is to this claim."""
    known, ref, meta = scope.tenancy, scope.server.spec.server_claim_ref, claim.metadata
    is_held = ref is None or (ref.namespace, ref.name) == (meta.namespace, meta.name)
    return is_held and known.uid == meta.uid and known.boot is not None and known.boot.booted_at is not None


async def _confirmed(scope: Scope, cached: ServerClaim) -> ServerClaim | None:
    """The claim as the API has it, if it has booted on this server."""
    claim = await read_claim(scope, cached.metadata.name, cached.metadata.namespace)
    ref = claim.spec.server_ref if claim is not None else None
    return claim if claim is not None and _has_booted(claim) and ref is not None and ref.name == scope.name else None


async def _belongs_to(scope: Scope, claim: ServerClaim) -> Requeue:
    """Nothing is changed at the machine; the record names the claim from now on, unless another tenant has data."""
    known, meta = scope.tenancy, claim.metadata
    if known.uid not in ("", meta.uid) and tenancy.holds_data(known):
        return _wait(scope, claim)
    await refer_to(scope, claim)
    scope.status = tenancy.without_old_fields(scope.status, _brought_up(scope, claim))
    scope.set(drives=_drives(scope), boot_window=None, power_request=None, operation_request=None, boot_attempts=0)
    text = f"the status is older than the boot of claim {key_of(claim)}: it was restored from a backup"
    scope.record_event("StatusOutdated", f"{text}. The machine is not changed; it is that claim's", warning=True)
    return scope.transition(State.RESERVED, text, warning=True)


def _brought_up(scope: Scope, claim: ServerClaim) -> Tenancy:
    """The record with this claim and its boot; policy and generation are the higher of what is known."""
    kept = kept_tenancy.rebuilt(lost_status.annotation(scope) or "", scope.now)
    base = kept if kept.uid == claim.metadata.uid else scope.tenancy
    dirty = tenancy.served(tenancy.not_erased(base, scope.now), scope.now)
    generation = max(claim.status.boot_generation, base.boot.boot_generation if base.boot is not None else 0)
    boot = ClaimBoot(claim_uid=claim.metadata.uid, booted_at=scope.now, boot_generation=generation)
    policy = base.policy if base.uid == claim.metadata.uid else ""
    return msgspec.structs.replace(tenancy.begin(dirty, claim), boot=boot, policy=policy)


def _drives(scope: Scope) -> tuple[KnownDrive, ...]:
    """The drives of the record and those of the annotation, each once."""
    return drive_identity.union(scope.status.drives, kept_tenancy.drives_in(lost_status.annotation(scope) or ""))


async def correct(scope: Scope, kept: Tenancy) -> Requeue:
    """The record becomes that of the Lease; Error when its claim is gone. Raises ApiError."""
    scope.discard()
    ref = kept.claim_ref
    claim = await read_claim(scope, ref.name, ref.namespace) if ref is not None else None
    is_gone = ref is not None and (claim is None or claim.metadata.uid != ref.uid)
    if is_gone:  # the machine may run, and must not be booted if somebody decides to keep it
        kept = msgspec.structs.replace(kept, boot=ClaimBoot(claim_uid=kept.uid, booted_at=scope.now))
    scope.status = tenancy.without_old_fields(scope.status, kept)
    scope.set(drives=_drives(scope), boot_window=None, power_request=None, operation_request=None, boot_attempts=0)
    text = f"the status is older than the Lease of the machine, which has data {kept.data}: it was restored"
    scope.record_event("StatusOutdated", text, warning=True)
    if ref is None:
        return Requeue(0)
    if not is_gone:
        return scope.transition(State.RESERVED, text, warning=True)
    scope.set(state=State.CLEANUP.value)
    return scope.fail(
        Reason.STATUS_OUTDATED,
        f"the status was restored from before the claim {ref.namespace}/{ref.name}, which does not exist. The Lease of "
        f"the machine has data {kept.data} of that claim (UID {ref.uid}). The machine is not changed. To keep the "
        f"data, create a claim with spec.serverRef {scope.name}, set spec.serverClaimRef of the Server to it and "
        "status.tenancy.claimRef.uid to its UID, then retry: nothing is booted or erased",
    )


def _wait(scope: Scope, claim: ServerClaim) -> Requeue:
    known, meta = scope.tenancy.claim_ref, claim.metadata
    former = f"{known.namespace}/{known.name} (UID {known.uid})" if known is not None else "unknown"
    return scope.wait(
        WaitFor.FORMER_TENANT,
        f"a manual decision: the last tenant is {former}, but the claim {key_of(claim)} has booted on "
        "this server: one of both comes from a backup. The machine is not changed and nothing is erased. Delete that "
        f"claim if it has lost this server; or set status.tenancy.claimRef of the Server to it (UID {meta.uid}) and "
        "spec.serverClaimRef to keep its data",
    )


def _from_annotation(scope: Scope) -> Requeue | None:
    """Rebuild the record from the annotation when that has a boot, or data, which the record has not."""
    value, known = lost_status.annotation(scope), scope.tenancy
    if not value:
        return None
    kept = kept_tenancy.rebuilt(value, scope.now)
    is_unclaimed = scope.status.state in _UNCLAIMED and not kept_tenancy.is_dangerous(known)
    has_boot_more = kept.uid == known.uid != "" and known.boot is None and not known.sanitization
    if not (tenancy.holds_data(kept) if is_unclaimed else has_boot_more and kept.boot is not None):
        return None
    scope.status = tenancy.without_old_fields(scope.status, kept)
    scope.set(drives=_drives(scope), boot_window=None, power_request=None, operation_request=None)
    text = f"the status is older than the annotation, which has data {kept.data}: it was restored from a backup"
    scope.record_event("StatusOutdated", text, warning=True)
    return scope.transition(State.RESERVED, text, warning=True)
