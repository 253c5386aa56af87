"""Finds the erasure of a missing drive in another server, for the text of Error `SanitizationOwed`.

A drive that was moved may be erased where it is now. The evidence of that server names it, but whether a tenant used it
here afterwards is known to an administrator only: so the text says where and when it was erased, and how to accept it.
"""

from metal.api.names import OPERATION
from metal.api.sanitization import DriveErasure, KnownDrive, Result, SanitizationEvidence
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy.drive_search import others_with_key
from metal.controllers.server.tenancy.sanitization_result import ACCEPT
from metal.evidence import record
from metal.evidence.drives import describe
from metal.evidence.verdict import is_weaker, missing
from metal.kube.meta.clock import timestamp
from metal.machine import drive_identity

_LONGEST = 1000


async def sentence(scope: Scope) -> str:
    """Where missing drives were erased, and what to do then; empty when no evidence shows it. Raises ApiError."""
    context = scope.context
    own = await record.find(context.client, context.kinds, scope.status.sanitization_evidence)
    if own is None:
        return ""
    found = [text for drive in missing(scope.status.drives, own.status.drives) if (text := await _where(scope, drive))]
    if not found:
        return ""
    operation = f"{context.kinds.key(OPERATION)}={ACCEPT}"
    return (
        f"{'; '.join(found)[:_LONGEST]}. If it was not in this server after that, accept this as its erasure: kubectl "
        f"annotate servers {scope.name} {operation}"
    )


async def _where(scope: Scope, drive: KnownDrive) -> str:
    """The erasure of the drive in another server that lists it, after the boot of this server's last tenant."""
    for server in others_with_key(scope, drive):
        evidence = await record.find(scope.context.client, scope.context.kinds, server.status.sanitization_evidence)
        if evidence is None or not _is_later(scope, evidence):
            continue
        erased = next((one for one in evidence.status.drives if _is_erased(scope, one, drive)), None)
        if erased is not None:
            when = timestamp(evidence.status.ended_at) if evidence.status.ended_at is not None else "an unknown time"
            proof = f"{erased.class_}, SanitizationEvidence {evidence.metadata.name}"
            return f"{describe(drive)} was erased in server {server.metadata.name} at {when} ({proof})"
    return ""


def _is_later(scope: Scope, evidence: SanitizationEvidence) -> bool:
    boot, began = scope.tenancy.boot, evidence.metadata.creation_timestamp
    return boot is None or boot.booted_at is None or (began is not None and began >= boot.booted_at)


def _is_erased(scope: Scope, one: DriveErasure, drive: KnownDrive) -> bool:
    enough = one.result == Result.SUCCEEDED and not is_weaker(one.class_, scope.tenancy.policy)
    return enough and drive_identity.same(one, drive)
