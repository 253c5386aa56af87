"""What a Server that is deleted leaves behind: that its drives are to be erased still, found by the system's UUID.

Kept as SanitizationEvidence without a phase, for a Server's status goes with it, and its machine may come back.
"""

from datetime import datetime

import msgspec

from metal.api.kinds import Kinds
from metal.api.sanitization import DriveErasure, EvidencePhase, KnownDrive, Policy, SanitizationEvidence
from metal.api.server import Server
from metal.evidence import record
from metal.evidence.signing import SigningKey
from metal.kube.client import Client
from metal.kube.errors import AlreadyExists
from metal.kube.rbac import Access

LABEL = "owed-by"
"""Label (under the API group) of such evidence: the system's UUID."""
_UNKNOWN = "unknown"
_ERASED = (Policy.CLEAR, Policy.PURGE)


def name_of(system_uuid: str, claim_uid: str) -> str:
    """One for each tenant of a system: leaving it twice is leaving it once."""
    return f"owed-{system_uuid}-{(claim_uid or _UNKNOWN)[:8]}"


async def leave(client: Client, kinds: Kinds, server: Server, policy: str) -> SanitizationEvidence:
    """Write down what this server owes after its last tenant, before it goes. Raises ApiError."""
    tenant = server.status.tenant
    spec = {
        "serverRef": {"name": server.metadata.name}, "systemUUID": server.uuid, "claimUID": tenant, "policy": policy,
    }  # fmt: skip
    name = name_of(server.uuid, tenant)
    meta = {"name": name, "labels": {kinds.key(LABEL): server.uuid}}
    try:
        evidence = await client.create(kinds.evidence, {"metadata": meta, "spec": spec})
    except AlreadyExists:
        evidence = await client.get(kinds.evidence, name)
    drives = tuple(_drive(known) for known in server.status.drives)
    return await record.write(client, kinds, evidence, msgspec.structs.replace(evidence.status, drives=drives))


def _drive(known: KnownDrive) -> DriveErasure:
    return DriveErasure(
        name=known.name, serial_number=known.serial_number, wwn=known.wwn, slot=known.slot, size=known.size
    )


async def find(client: Client, kinds: Kinds, server: Server) -> SanitizationEvidence | None:
    """What is owed by a system whose Server is made anew, if anything is. Raises ApiError."""
    left = await client.list(kinds.evidence, labels=f"{kinds.key(LABEL)}={server.uuid}")
    return next((one for one in left.items if not one.status.phase), None)


def drives(evidence: SanitizationEvidence) -> tuple[KnownDrive, ...]:
    """The drives that the server had."""
    return tuple(
        KnownDrive(name=one.name, serial_number=one.serial_number, wwn=one.wwn, slot=one.slot, size=one.size)
        for one in evidence.status.drives
    )


async def settle(
    client: Client, kinds: Kinds, evidence: SanitizationEvidence, became: str, proof: str, key: SigningKey,
    now: datetime,
) -> None:  # fmt: skip
    """End what was left behind: a cleanup after that tenant has come to its end. Raises ApiError."""
    status = msgspec.structs.replace(
        evidence.status,
        phase=EvidencePhase.SUCCEEDED if became in _ERASED else EvidencePhase.FAILED,
        ended_at=now,
        remarks=(f"the cleanup ended with sanitization {became} (SanitizationEvidence {proof or 'none'})",),
    )
    await record.sign(client, kinds, evidence, status, key, now)


def access(kinds: Kinds) -> tuple[Access, ...]:
    """What is done with evidence of what is owed, beyond what is done with any."""
    return (Access(kinds.evidence, ("list",), "finds what a machine owes whose Server is made anew"),)
