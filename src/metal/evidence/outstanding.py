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
from metal.kube.client.errors import AlreadyExists
from metal.kube.client.protocol import Client
from metal.kube.meta.permissions import Permission
from metal.machine.report import drives_in

LABEL = "owed-by"
"""Label (under the API group) of such evidence while it is owed: the system's UUID."""
_ERASED = (Policy.CLEAR, Policy.PURGE)


async def leave(client: Client, kinds: Kinds, server: Server, system: str, policy: str) -> SanitizationEvidence:
    """Write down what this server owes after its last tenant, before it goes; no policy: nothing but whose it is.

    Doing it twice is doing it once. Raises ApiError.
    """
    name = f"owed-{system}-{server.metadata.uid}"
    spec = {
        "serverRef": {"name": server.metadata.name}, "systemUUID": system, "claimUID": server.status.tenant,
        "policy": policy,
    }  # fmt: skip
    meta = {"name": name, "labels": {kinds.key(LABEL): system}}
    try:
        evidence = await client.create(kinds.evidence, {"metadata": meta, "spec": spec})
    except AlreadyExists:
        evidence = await client.get(kinds.evidence, name)
    known = server.status.drives or drives_in(server.status.storages)
    told = msgspec.structs.replace(evidence.status, drives=tuple(_drive(one) for one in known))
    return await record.write(client, kinds, evidence, told)


def _drive(known: KnownDrive) -> DriveErasure:
    return DriveErasure(
        name=known.name, serial_number=known.serial_number, wwn=known.wwn, slot=known.slot, size=known.size
    )


async def find(client: Client, kinds: Kinds, system: str) -> list[SanitizationEvidence]:
    """All that Servers of this system have left behind and nobody has ended, the oldest first. Raises ApiError."""
    left = (await client.list(kinds.evidence, labels=f"{kinds.key(LABEL)}={system}")).items
    return sorted((one for one in left if not one.status.phase), key=lambda one: str(one.metadata.creation_timestamp))


def drives(left: list[SanitizationEvidence]) -> tuple[KnownDrive, ...]:
    """The drives that the servers had, each once."""
    known = (
        KnownDrive(name=one.name, serial_number=one.serial_number, wwn=one.wwn, slot=one.slot, size=one.size)
        for evidence in left
        for one in evidence.status.drives
    )
    return tuple(dict.fromkeys(known))


async def settle(
    client: Client, kinds: Kinds, evidence: SanitizationEvidence, became: str, proof: str, key: SigningKey,
    now: datetime,
) -> None:  # fmt: skip
    """End what was left behind: a cleanup has come to its end. Raises ApiError."""
    status = msgspec.structs.replace(
        evidence.status,
        phase=EvidencePhase.SUCCEEDED if became in _ERASED else EvidencePhase.FAILED,
        ended_at=now,
        remarks=(f"the cleanup ended with sanitization {became} (SanitizationEvidence {proof or 'none'})",),
    )
    await record.sign(client, kinds, evidence, status, key, now)
    # A backup that is restored without status must not make it owed again.
    labels = {"metadata": {"labels": {kinds.key(LABEL): None}}}
    await client.patch(kinds.evidence, evidence.metadata.name, labels)


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """What is done with evidence of what is owed, beyond what is done with any."""
    return (
        Permission(kinds.evidence, ("list",), "finds what a machine owes whose Server is made anew"),
        Permission(kinds.evidence, ("patch",), "takes the label from what is owed no more"),
    )
