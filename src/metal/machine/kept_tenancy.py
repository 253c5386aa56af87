"""What of a Server's tenancy outlives its status: a compact copy in the annotation `metal.ironcore.dev/tenancy`.

The status of a Server can be lost: a client with older types writes the whole status without the fields that it does
not know, or a backup is restored without status. Annotations survive both. The annotation also shows that this operator
managed the Server, from its first pass (`NEW`): a Server with a state and without it comes from another operator.

`of` is the copy of a record. It is on the safe side: with a claim, data that is not sanitized counts as Dirty, because
the boot server writes Dirty to the status only. `rebuilt` is the record that a copy stands for.
"""

from datetime import datetime

import msgspec

from metal.api.meta import Model
from metal.api.sanitization import KnownDrive
from metal.api.tenancy import ClaimBoot, Data, Tenancy, TenantRef
from metal.machine.tenancy import holds_data

NEW = "{}"
"""The value of a Server that this operator enrolled and has not discovered yet: no tenant has used the machine."""
_SAFE = {Data.CLEAN: Data.DIRTY, Data.ACCEPTED: Data.DIRTY, Data.ERASING: Data.DIRTY}


class Kept(Model, frozen=True, kw_only=True):
    """The value of the annotation, in JSON."""

    data: str = ""
    claim_ref: TenantRef | None = None
    policy: str = ""
    boot_generation: int | None = None
    """The generation of the last recorded boot; absent when the claim has not booted."""
    drives: tuple[KnownDrive, ...] = ()
    """The drives that must be erased after the claim."""
    since: datetime | None = None
    """Time at which the copy was written; only in the Lease of the machine (`lease_tenancy`)."""


def of(tenancy: Tenancy, drives: tuple[KnownDrive, ...] = ()) -> str:
    """The value for this record and the known drives, which matter only while a claim or data is on them."""
    active = tenancy.claim_ref is not None and not tenancy.sanitization
    data = _SAFE.get(Data(tenancy.data), tenancy.data) if active or tenancy.data == Data.ERASING else tenancy.data
    booted = tenancy.boot is not None and tenancy.boot.booted_at is not None
    kept = Kept(
        data=str(data), claim_ref=tenancy.claim_ref, policy=tenancy.policy,
        drives=drives if is_dangerous(tenancy) else (),
        boot_generation=tenancy.boot.boot_generation if tenancy.boot is not None and booted else None,
    )  # fmt: skip
    return msgspec.json.encode(kept).decode()


def is_dangerous(tenancy: Tenancy) -> bool:
    """True when the copy must be written before anything else is done: data or a claim would be forgotten."""
    return holds_data(tenancy) or tenancy.claim_ref is not None


def drives_in(value: str) -> tuple[KnownDrive, ...]:
    """The known drives in a value."""
    try:
        return msgspec.json.decode(value, type=Kept).drives
    except (msgspec.DecodeError, msgspec.ValidationError):
        return ()


def rebuilt(value: str, now: datetime) -> Tenancy:
    """The record that a value stands for; Unknown data when it cannot be read."""
    if value == NEW:
        return Tenancy(data=Data.CLEAN.value, since=now)
    try:
        kept = msgspec.json.decode(value, type=Kept)
        data = Data(kept.data)
    except (msgspec.DecodeError, msgspec.ValidationError, ValueError):
        return Tenancy(data=Data.UNKNOWN.value, since=now)
    boot, since = None, kept.since or now
    if kept.boot_generation is not None and kept.claim_ref is not None:
        boot = ClaimBoot(claim_uid=kept.claim_ref.uid, booted_at=now, boot_generation=kept.boot_generation)
    return Tenancy(claim_ref=kept.claim_ref, data=data.value, since=since, policy=kept.policy, boot=boot)
