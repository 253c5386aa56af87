"""The record of tenancy of a Server: how it is read, and its transitions. No other module changes or interprets it.

`Server.status.tenancy` says whose machine the server is (`claimRef`), what the claim has booted (`boot`), how its data
must be sanitized (`policy`) and whether the drives hold data of a tenant (`data`). Each function here takes a record
and returns the next; the caller writes it with the Server's resourceVersion.

- *Read* with `of`, never with `server.status.tenancy`: it converts the status of earlier versions, and counts a
  claim's boot script that a boot server of such a version served.
- *Begun* (`begin`) when a claim is bound, before its boot configuration can be served.
- *Dirty* (`served`) in the same write with which the boot server serves the first boot script of the claim; nothing of
  the tenant reaches the machine before.
- *Erasing* (`erasing`) before the first drive is touched. From then on the data is no longer complete, and no claim
  continues with it. It ends as Clean (`erased`), or as Dirty again when something was not erased (`not_erased`).
- *Accepted* (`accepted`) when data may remain by decision: policy None, or an administrator accepted the failure.
- *Unknown* (`unknown`) when no record says what ran on the machine: after another operator, or a lost status.
- *Released* (`released`) for the next claim, only with data Clean or Accepted.

`MOVES` lists the transitions of `data`; docs/states.md prints it, and a transition that it lacks raises.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from metal.api.boot_window import BootWindow, Phase, Purpose
from metal.api.claim import ServerClaim
from metal.api.sanitization import Policy
from metal.api.server import Server, ServerSpec, ServerStatus
from metal.api.tenancy import Data, Tenancy, TenantRef

DATA_KEPT = ("None", "Accepted")
"""Results of a sanitization after which data may remain by decision."""
NOTHING_SERVED = "NotOwed"
"""Result of a sanitization when nothing of the claim had reached the machine."""


@dataclass(frozen=True)
class Move:
    """One transition of `data`: from, to, who writes it, and when."""

    source: tuple[Data, ...]
    target: Data
    writer: str
    when: str


MOVES = (
    Move((), Data.CLEAN, "Server controller", "a new Server: no tenant has used the machine"),
    Move((), Data.UNKNOWN, "Server controller", "a Server of another operator, or a Server whose status was lost"),
    Move((), Data.DIRTY, "Server controller", "an erasure is outstanding from before the Server was created"),
    Move(
        (Data.CLEAN, Data.ACCEPTED, Data.UNKNOWN), Data.DIRTY, "boot server",
        "in the write with which the first boot script of a claim is served",
    ),
    Move((Data.CLEAN, Data.ACCEPTED), Data.UNKNOWN, "Server controller", "the status was lost during a tenancy"),
    Move(
        (Data.CLEAN, Data.ACCEPTED, Data.UNKNOWN), Data.DIRTY, "Server controller",
        "an erasure is found to be outstanding",
    ),
    Move((Data.DIRTY, Data.UNKNOWN), Data.ERASING, "Server controller", "before the boot that erases the drives"),
    Move((Data.ERASING,), Data.CLEAN, "Server controller", "the evidence shows that every drive was erased"),
    Move((Data.ERASING,), Data.DIRTY, "Server controller", "a drive was not erased: the server goes to Error"),
    Move(
        (Data.DIRTY, Data.UNKNOWN, Data.ERASING), Data.ACCEPTED, "Server controller",
        "the policy is None, or an administrator accepted the failed sanitization",
    ),
    Move((Data.UNKNOWN,), Data.ACCEPTED, "Server controller", "`adoption.unknownData` is `Trust`"),
)  # fmt: skip
"""The transitions of `data`."""
_ALLOWED = {(source, move.target) for move in MOVES for source in (move.source or ("",))}


def of(server: Server) -> Tenancy:
    """The record of a server, converted from the status of an earlier version if it has one."""
    return read(server.spec, server.status)


def read(spec: ServerSpec, status: ServerStatus) -> Tenancy:
    """The record in a status; `spec` names the claim, which earlier versions recorded by its UID only."""
    found = _converted(spec, status) if is_outdated(status) else status.tenancy
    if found.data in (Data.CLEAN, Data.ACCEPTED) and is_tenants(status.boot_window):
        return served(found, _served_at(status.boot_window))
    return found


def is_tenants(window: BootWindow | None) -> bool:
    """True when this network boot has served a claim's boot script."""
    return window is not None and window.purpose == Purpose.CLAIM and window.script_served_at is not None


def _served_at(window: BootWindow | None) -> datetime | None:
    return window.script_served_at if window is not None else None


def begin(tenancy: Tenancy, claim: ServerClaim) -> Tenancy:
    """A claim becomes the tenant. A boot that is assumed (see `ClaimBoot`) counts as the last one that it requested."""
    meta, boot = claim.metadata, tenancy.boot
    kept = boot is not None and not boot.claim_uid
    if boot is not None and kept:
        boot = msgspec.structs.replace(boot, claim_uid=meta.uid, boot_generation=claim.spec.boot_generation)
    ref = TenantRef(namespace=meta.namespace, name=meta.name, uid=meta.uid)
    return msgspec.structs.replace(tenancy, claim_ref=ref, boot=boot if kept else None, policy="", sanitization="")


def is_boot_of_another(tenancy: Tenancy) -> bool:
    """True when the record names a claim and the boot of another one: an administrator has written the claim."""
    boot = tenancy.boot
    return boot is not None and boot.booted_at is not None and boot.claim_uid not in ("", tenancy.uid)


def kept(tenancy: Tenancy, claim: ServerClaim, now: datetime) -> Tenancy:
    """The data of a former claim is this claim's by decision; the boot of that one counts as assumed (`begin`).

    It is so since `now`: the copy in the Lease of the machine, which has the former claim, is older.
    """
    boot = msgspec.structs.replace(tenancy.boot, claim_uid="") if tenancy.boot is not None else None
    begun = begin(msgspec.structs.replace(tenancy, boot=boot), claim)
    return msgspec.structs.replace(begun, policy=tenancy.policy, since=now)


def served(tenancy: Tenancy, now: datetime | None) -> Tenancy:
    """Something of the claim is about to reach the machine."""
    return _moved(tenancy, Data.DIRTY, now, sanitization="")


def owed(tenancy: Tenancy, claim_uid: str, policy: str, now: datetime) -> Tenancy:
    """Data of a claim that no longer exists is on the drives, or they are to be erased without one (empty UID)."""
    ref = TenantRef(uid=claim_uid) if claim_uid else None
    return msgspec.structs.replace(served(tenancy, now), claim_ref=ref, policy=policy)


def erasing(tenancy: Tenancy, now: datetime) -> Tenancy:
    """The drives are about to be erased."""
    return _moved(tenancy, Data.ERASING, now)


def erased(tenancy: Tenancy, category: str, now: datetime) -> Tenancy:
    """Every drive was erased; `category` is the weakest that one reached."""
    return _moved(tenancy, Data.CLEAN, now, sanitization=category)


def not_erased(tenancy: Tenancy, now: datetime) -> Tenancy:
    """The erasure ended, and a drive was not erased."""
    return _moved(tenancy, Data.DIRTY, now) if tenancy.data == Data.ERASING else tenancy


def accepted(tenancy: Tenancy, result: str, now: datetime) -> Tenancy:
    """Data may remain by decision; `result` is the policy None or Accepted."""
    if tenancy.data == Data.CLEAN:
        return msgspec.structs.replace(tenancy, sanitization=result)
    return _moved(tenancy, Data.ACCEPTED, now, sanitization=result)


def not_owed(tenancy: Tenancy) -> Tenancy:
    """The claim ended, and nothing of it had reached the machine."""
    return msgspec.structs.replace(tenancy, sanitization=NOTHING_SERVED)


def unknown(tenancy: Tenancy, now: datetime) -> Tenancy:
    """It is not known what ran on the machine."""
    return tenancy if holds_data(tenancy) else _moved(tenancy, Data.UNKNOWN, now, sanitization="")


def clean(tenancy: Tenancy, now: datetime) -> Tenancy:
    """The record of a new server."""
    return tenancy if tenancy.data else _moved(tenancy, Data.CLEAN, now)


def released(tenancy: Tenancy) -> Tenancy:
    """No claim has the server any more. Raises RuntimeError while the drives may hold data."""
    if holds_data(tenancy):
        raise RuntimeError(f"a server with data {tenancy.data!r} cannot be released")
    return msgspec.structs.replace(tenancy, claim_ref=None, boot=None, policy="")


def holds_data(tenancy: Tenancy) -> bool:
    """True while data of a tenant may be on the drives, neither erased nor accepted."""
    return tenancy.data in (Data.UNKNOWN, Data.DIRTY, Data.ERASING)


def ran_tenant(tenancy: Tenancy) -> bool:
    """True when something of a tenant is known to have reached the machine since it was last clean."""
    return tenancy.data in (Data.DIRTY, Data.ERASING)


def may_hold_data(server: Server) -> bool:
    """True when data of a tenant may be on the drives, also before anything of its claim was recorded as served."""
    known = of(server)
    claimed = server.spec.server_claim_ref is not None
    return claimed or holds_data(known) or bool(known.uid and not known.sanitization)


def _moved(tenancy: Tenancy, target: Data, now: datetime | None, **changes: Any) -> Tenancy:
    if tenancy.data == target:
        return msgspec.structs.replace(tenancy, **changes)
    if (tenancy.data, target) not in _ALLOWED:
        raise RuntimeError(f"data of a tenancy cannot go from {tenancy.data or 'nothing'} to {target}")
    return msgspec.structs.replace(tenancy, data=target.value, since=now, **changes)


def is_outdated(status: ServerStatus) -> bool:
    """True for the status of an earlier version, which had no record. Such a status wins over a record: a site that
    went back to the earlier version has changed it since."""
    return has_old_fields(status) or (not status.tenancy.data and bool(status.state) and status.since is not None)


def has_old_fields(status: ServerStatus) -> bool:
    """True when a field has a value that only an earlier version writes."""
    served = status.old_tenant_served or status.old_claim_boot is not None
    return served or bool(status.old_tenant or status.old_sanitization_policy or status.old_sanitization)


def _converted(spec: ServerSpec, status: ServerStatus) -> Tenancy:
    ref = spec.server_claim_ref
    claim = None
    if status.old_tenant:
        name = (ref.namespace, ref.name) if ref is not None else ("", "")
        claim = TenantRef(namespace=name[0], name=name[1], uid=status.old_tenant)
    return Tenancy(
        claim_ref=claim,
        data=_data_of(status).value,
        since=status.since,
        policy=status.old_sanitization_policy,
        boot=status.old_claim_boot,
        sanitization=status.old_sanitization,
    )


def _data_of(status: ServerStatus) -> Data:
    """What the fields of an earlier version say about the data."""
    window = status.boot_window
    if status.old_sanitization:
        return Data.ACCEPTED if status.old_sanitization in DATA_KEPT else Data.CLEAN
    if window is not None and window.purpose == Purpose.SANITIZATION:
        return Data.DIRTY if window.phase in (Phase.CLOSED, Phase.CONTESTED) else Data.ERASING
    if status.old_claim_boot is not None or status.old_tenant_served or is_tenants(window):
        return Data.DIRTY
    adopted = any(one.type == "TakenOver" for one in status.conditions)
    return Data.UNKNOWN if adopted and not status.old_tenant else Data.CLEAN


def without_old_fields(status: ServerStatus, tenancy: Tenancy) -> ServerStatus:
    """The status with the record instead of the fields of earlier versions."""
    return msgspec.structs.replace(
        status, tenancy=tenancy, old_tenant="", old_claim_boot=None, old_tenant_served=False,
        old_sanitization_policy="", old_sanitization="",
    )  # fmt: skip


def is_data_kept(tenancy: Tenancy) -> bool:
    """True when data may remain by decision, now or after this tenancy."""
    return tenancy.data == Data.ACCEPTED or tenancy.sanitization in DATA_KEPT or tenancy.policy == Policy.NONE
