"""Drives with data of another server's tenant: a drive that was moved, or all drives after a mainboard was replaced.

In: the drives that the BMC or the probe found in this server, and what `drive_search` finds out about each.

- A claim exists that may own the data: nothing is booted, erased or given away (`before_boot`, `before_available`,
  `before_erasure`, `before_permission`, `before_claim_boot`). The server waits (`DriveOwed`) until the drive or the
  claim is gone, or an administrator accepts.
- No such claim exists: the server begins with its cleanup, to the strictest policy that applies to the data, before it
  becomes Available. `settle` then records the result in the records of deleted Servers.

Out: `status.owedDrives` and the condition `DriveOwed`, which name drive, claim, evidence and former server. `accept`
(operation=accept-owed-drives) sets `acceptedAt` there; such a drive does not stop this server any more.
"""

from collections.abc import Iterable

import msgspec
import structlog

from metal.api.boot_window import Phase, Purpose, Trust
from metal.api.names import OPERATION, RETRY
from metal.api.sanitization import KnownDrive, OwedDrive, Policy
from metal.api.server import ServerStatus, State
from metal.bmc.errors import BMCBusy, BMCError
from metal.controllers.server.bmc import failing, inventory_summary
from metal.controllers.server.reasons import ConditionType, Operation, WaitFor
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy import drive_search, non_unique, record_key
from metal.evidence import outstanding, record
from metal.evidence.drives import describe
from metal.kube.controller.controller import Requeue
from metal.kube.meta import conditions
from metal.machine import boot_window, drive_identity, tenancy
from metal.machine.report import drives_in, with_listed

ACCEPT = "accept-owed-drives"
"""Operation: the data of former claims on drives of this server is not protected and not erased for them."""
_log = structlog.get_logger(__name__)
_MOST = 64
"""Most drives that status.owedDrives lists."""
_LONGEST = 1500
"""Characters of the drives in a message."""


async def before_boot(scope: Scope) -> Requeue | None:
    """Before the discovery boots the machine: the wait if a claim may own a drive that the BMC lists, else None."""
    return await _protect(scope, drives_in(scope.status.storages))


async def before_claim_boot(scope: Scope) -> Requeue | None:
    """Before a claim's boot begins: the wait if a drive has data of another claim, else None. Raises BMCError.

    The drives are read from the BMC, because one may have been put into the server since its discovery. The claim may
    write to it, so that it is a drive of this server from then on, also after it was put into another one.
    """
    window = scope.status.boot_window
    if window is not None and window.purpose == Purpose.CLAIM and window.phase not in (Phase.SUCCEEDED, Phase.CLOSED):
        return None  # it has begun
    await scope.observe()  # a BMC that does not answer is a failure of its connection, not of its inventory
    listed = await _listed(scope)
    busy, owed = await _protect(scope, listed), _open(scope.status.owed_drives)
    if busy is not None or owed:
        return _wait(scope, owed) if busy is None else busy
    scope.set(drives=with_listed(scope.status.drives, listed))
    return None


async def _listed(scope: Scope) -> tuple[KnownDrive, ...]:
    """The drives that the BMC lists now. Raises BMCError; also when it cannot list all, as it could before."""
    operation = Operation.READ_INVENTORY
    scope.attempted.add(operation)
    failing.require_due(scope, operation)
    try:
        found = await scope.unrecorded().inventory(scope.uri)
        if found.problems and conditions.is_true(scope.status.conditions, ConditionType.INVENTORY_COMPLETE):
            raise BMCBusy(f"it does not list all drives, as it did before: {'; '.join(found.problems)}"[:_LONGEST])
    except BMCError as exc:
        exc.operation = operation.value
        failing.failed(scope, operation, exc.reason, exc)
        raise
    failing.succeeded(scope, operation)
    return drives_in(inventory_summary.of_inventory(found, ServerStatus())["storages"])


async def before_erasure(scope: Scope, refused: Iterable[KnownDrive] = ()) -> Requeue | None:
    """Before the boot that erases: the wait if a claim of another server may own a drive, else None. Raises BMCError.

    A drive that was put into the server since its discovery must be erased, too, also if the probe does not see it.
    `refused` are the drives that the probe saw in the last boot, which ended before their erasure was allowed.
    """
    known, listed = scope.status.drives, await _listed(scope)
    busy = await _protect(scope, (*known, *listed, *refused))
    if busy is None:
        scope.set(drives=with_listed(known, listed))
    return busy


async def before_permission(scope: Scope, seen: tuple[KnownDrive, ...]) -> Requeue | None:
    """Before the first drive is erased: the wait if a claim of another server may own one that the probe sees."""
    return await _protect(scope, with_listed(seen, scope.status.drives))


async def before_available(scope: Scope) -> Requeue | None:
    """At the end of a discovery: the wait, the cleanup when the data is of no claim that exists, or None."""
    busy = await _protect(scope, scope.status.drives or drives_in(scope.status.storages), complete=True)
    if busy is not None:
        return busy
    owed = _open(scope.status.owed_drives)
    return _clean_up_first(scope, owed) if owed else None


async def _protect(scope: Scope, drives: Iterable[KnownDrive], *, complete: bool = False) -> Requeue | None:
    """Record the owed drives; the wait if a claim may own the data on one. `complete`: these are all drives."""
    before = scope.status.owed_drives
    to_look_up = non_unique.to_look_up(scope, drives)
    found = tuple(_with_decision(one, before) for one in await drive_search.find(scope, to_look_up))
    settled = () if complete else tuple(one for one in before if one not in _open(before) and one not in found)
    scope.set(owed_drives=(*found, *settled)[:_MOST])
    owned = [one for one in _open(found) if one.claim]
    if owned:
        return _wait(scope, owned)
    known = scope.find_condition(ConditionType.DRIVE_OWED)
    if known is not None and known.status == "True" and not found:
        scope.condition(ConditionType.DRIVE_OWED, False, "NothingOwed", "no drive has data of another server's claim")
    return None


def _open(owed: Iterable[OwedDrive]) -> list[OwedDrive]:
    """Those that are neither erased nor accepted."""
    return [one for one in owed if one.erased_at is None and one.accepted_at is None]


def _with_decision(found: OwedDrive, before: Iterable[OwedDrive]) -> OwedDrive:
    """What was found, with the times at which this data on this drive was erased or accepted before."""
    for one in before:
        same_data = (one.server, one.claim_uid) == (found.server, found.claim_uid)
        if same_data and drive_identity.same(one.drive, found.drive):
            return msgspec.structs.replace(found, erased_at=one.erased_at, accepted_at=one.accepted_at)
    return found


def _wait(scope: Scope, owed: list[OwedDrive]) -> Requeue:
    operation = f"{scope.context.kinds.key(OPERATION)}={ACCEPT}"
    text = (
        f"a decision by an administrator: {_sentence(owed)}. The machine is not changed. If the mainboard of server "
        f"{owed[0].server} was replaced, set its spec.systemUUID to {scope.server.uuid} and delete Server "
        f"{scope.name}; else return the drive, or delete the claim to have the drive erased; or continue without "
        f"protecting that data: kubectl annotate servers {scope.name} {operation}{_returned(scope)}"
        f"{non_unique.advice(scope, owed)}"
    )
    scope.condition(ConditionType.DRIVE_OWED, True, "ClaimExists", text)
    return scope.wait(WaitFor.DRIVE_OWED, text)


def _returned(scope: Scope) -> str:
    """How the server learns that a drive was returned that only the probe has seen; else empty."""
    window = scope.status.boot_window
    if window is None or not boot_window.awaits_permission(window):
        return ""
    return (
        "; after the return of a drive that only the probe has seen, have the probe look again: kubectl annotate "
        f"servers {scope.name} {scope.context.kinds.key(OPERATION)}={RETRY}"
    )


def _sentence(owed: Iterable[OwedDrive]) -> str:
    return "; ".join(dict.fromkeys(map(_describe, owed)))[:_LONGEST]


def _describe(one: OwedDrive) -> str:
    whose = f"claim {one.claim}" if one.claim else f"a deleted claim ({one.claim_uid or 'UID unknown'})"
    proof = f", SanitizationEvidence {one.evidence}" if one.evidence else ""
    return f"{describe(one.drive)} may have data of {whose} of server {one.server}{proof}"


def _clean_up_first(scope: Scope, owed: list[OwedDrive]) -> Requeue:
    policy = Policy.PURGE if any(one.policy == Policy.PURGE for one in owed) else Policy.CLEAR
    text = f"{_sentence(owed)}; the server is erased before it becomes Available"
    if scope.server.spec.server_claim_ref is not None:
        return _wait(scope, owed)
    scope.condition(ConditionType.DRIVE_OWED, True, "NotErased", text)
    known = tenancy.owed(scope.tenancy, owed[0].claim_uid or "unknown", policy, scope.now)
    scope.set(tenancy=known, boot_window=None, boot_attempts=0)
    scope.condition(ConditionType.DISCOVERED, False, "ErasedFirst", "the data of the last tenant is erased first")
    _log.warning("drive with data of another server's tenant", server=scope.name, former=owed[0].server)
    return scope.transition(State.CLEANUP, text, warning=True)


async def settle(scope: Scope) -> None:
    """After a cleanup: record its result for the drives, also in the records of deleted Servers. Raises ApiError."""
    status, result = scope.status, scope.tenancy.sanitization
    if result == "Accepted" and _open(status.owed_drives):
        _accept(scope, "an administrator accepted the sanitization failure")
    if result not in (Policy.CLEAR, Policy.PURGE):
        return
    identified = await _identified(scope)
    erased_here = non_unique.certain(scope, identified)
    for name in drive_search.records_of(scope, erased_here):
        await _settle(scope, name, erased_here)
    _report_open(scope, [one for one in status.drives if one not in identified])
    if status.owed_drives:
        erased = tuple(msgspec.structs.replace(one, erased_at=one.erased_at or scope.now) for one in status.owed_drives)
        scope.set(owed_drives=erased)
        text = f"{_sentence(erased)}: erased (SanitizationEvidence {status.sanitization_evidence})"
        scope.condition(ConditionType.DRIVE_OWED, False, "Erased", text)


async def _identified(scope: Scope) -> tuple[KnownDrive, ...]:
    """The drives of which it is known that they are in this server: those that its BMC lists (only it names a slot).

    What only a report names counts when the boot that reported had the trust OutOfBand: another machine on the boot
    network could have named drives of any server.
    """
    drives, context = scope.status.drives, scope.context
    evidence = await record.find(context.client, context.kinds, scope.status.sanitization_evidence)
    if evidence is not None and evidence.spec.boot_trust == Trust.OUT_OF_BAND:
        return drives
    return tuple(one for one in drives if one.slot)


def _report_open(scope: Scope, drives: list[KnownDrive]) -> None:
    """Record an Event for records of other servers that stay open although a report says that the drive is erased."""
    if names := drive_search.records_of(scope, drives):
        text = (
            f"SanitizationEvidence {', '.join(names)} stays open: its drive was erased according to the report, but "
            "the BMC does not list it, and below the trust OutOfBand a report does not show which drives a server has"
        )
        scope.record_event("DriveNotIdentified", text[:_LONGEST], warning=True)


async def _settle(scope: Scope, name: str, erased: Iterable[KnownDrive]) -> None:
    context, status = scope.context, scope.status
    evidence = await record.find(context.client, context.kinds, name)
    if evidence is None:
        return
    if evidence.status.phase:
        await outstanding.unlabel(context.client, context.kinds, evidence)
        return
    key = await record_key.find(scope, name)
    if key is not None:
        await outstanding.settle(
            context.client, context.kinds, evidence, erased, scope.tenancy.sanitization, status.sanitization_evidence,
            key, scope.now,
        )  # fmt: skip


def accept(scope: Scope) -> None:
    """Execute operation=accept-owed-drives: an Event says what was accepted, or that there is nothing to accept."""
    if _open(scope.status.owed_drives):
        _accept(scope, "an administrator accepted it")
        scope.clear_wait()
    else:
        scope.record_event("NothingOwed", f"operation {ACCEPT} has no effect: no drive is owed", warning=True)


def _accept(scope: Scope, why: str) -> None:
    owed = scope.status.owed_drives
    text = f"{why}: {_sentence(_open(owed))}"
    scope.set(owed_drives=tuple(msgspec.structs.replace(o, accepted_at=o.accepted_at or scope.now) for o in owed))
    scope.condition(ConditionType.DRIVE_OWED, False, "Accepted", text)
    scope.record_event("DriveAccepted", text, warning=True)
