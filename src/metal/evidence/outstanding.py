"""Outstanding sanitization: remembers that the drives of a deleted Server still have to be erased.

A Server's status is deleted with it, but its machine keeps the tenant's data and may get a Server again. So before a
Server is deleted, a SanitizationEvidence `owed-<system>-<Server UID>` without a phase is created, with the policy and
the known drives, labelled with what identifies the system (`system_of`). A new Server finds it by that label and begins
with the cleanup; the result of that cleanup closes the record: it gets a phase and a signature, and loses the label.

A drive may be moved to another machine before its erasure. So open records are indexed by the identity of their drives
too (`drive_index`); when another server has erased one of them, `settle` records it; the last one closes the record.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from metal.api.kinds import Kinds
from metal.api.sanitization import (
    DriveErasure,
    EvidencePhase,
    KnownDrive,
    Policy,
    Result,
    SanitizationEvidence,
)
from metal.api.server import Server
from metal.evidence import record
from metal.evidence.chain import MACHINE, Signer, machine
from metal.evidence.drives import as_erasure, as_known
from metal.kube.client.errors import AlreadyExists
from metal.kube.client.protocol import Client
from metal.kube.meta.permissions import Permission, follows
from metal.machine import drive_identity, tenancy
from metal.machine.identity import Identity, lease_name
from metal.machine.report import drives_in
from metal.machine.uuids import spellings

LABEL = "owed-by"
"""Label (under the API group) of such a record until it is closed: `system_of`."""
BY_DRIVE = "drive"
"""Index of open records, and of Servers, by the identity of their drives."""
_ERASED = (Policy.CLEAR, Policy.PURGE)


def system_of(identity: Identity, server: str) -> str:
    """What identifies a machine, as a label: its UUID, else a digest of its serial number or declared identifier.

    A UUID that many machines have identifies none. Where nothing identifies the machine, the Server's name is taken.
    """
    return identity.uuid or lease_name(identity.key or f"name:{server}").removeprefix("system-")


async def create(client: Client, kinds: Kinds, server: Server, system: str, policy: str) -> SanitizationEvidence:
    """Record the outstanding sanitization of a server that is being deleted; an empty policy records only its claim.

    Idempotent: an open record of this Server is taken. A closed one, of a Server that was restored, is never changed.
    Raises ApiError.
    """
    name = f"owed-{system}-{server.metadata.uid}"
    spec = {
        "serverRef": {"name": server.metadata.name}, "systemUUID": min(spellings(server.uuid)),
        "claimUID": tenancy.of(server).uid, "policy": policy,
    }  # fmt: skip
    labels = {kinds.key(LABEL): system, kinds.key(MACHINE): machine(server.uuid)}
    evidence = await _open(client, kinds, name, {"labels": labels}, spec)
    known = server.status.drives or drives_in(server.status.storages)
    status = msgspec.structs.replace(evidence.status, drives=tuple(map(as_erasure, known)))
    return await record.write(client, kinds, evidence, status)


async def _open(
    client: Client, kinds: Kinds, name: str, meta: dict[str, Any], spec: dict[str, Any]
) -> SanitizationEvidence:  # fmt: skip
    number, unique = 1, name
    while True:
        try:
            return await client.create(kinds.evidence, {"metadata": {**meta, "name": unique}, "spec": spec})
        except AlreadyExists:
            found = await client.get(kinds.evidence, unique)
        if not found.status.phase:
            return found
        number, unique = number + 1, f"{name}-{number + 1}"


async def find(client: Client, kinds: Kinds, system: str) -> list[SanitizationEvidence]:
    """All open records of this system, the oldest first; closed ones lose the label here if they still have it.

    Raises ApiError.
    """
    found = (await client.list(kinds.evidence, labels=f"{kinds.key(LABEL)}={system}")).items
    for one in found:
        if one.status.phase:
            await unlabel(client, kinds, one)
    return sorted((one for one in found if not one.status.phase), key=lambda one: str(one.metadata.creation_timestamp))


def drives(records: list[SanitizationEvidence]) -> tuple[KnownDrive, ...]:
    """The drives in these records that no server has erased, each once."""
    return tuple(dict.fromkeys(as_known(one) for evidence in records for one in unsettled(evidence)))


def unsettled(evidence: SanitizationEvidence) -> list[DriveErasure]:
    """The drives of an open record that are not erased; none for a closed record."""
    return [one for one in evidence.status.drives if one.result != Result.SUCCEEDED and not evidence.status.phase]


def drive_index(evidence: SanitizationEvidence) -> Iterable[str]:
    """Index of labelled records by the keys of their drives: also of erased ones, until the record is closed."""
    return {key for drive in evidence.status.drives for key in drive_identity.keys(drive)}


def selector(kinds: Kinds) -> str:
    """Label selector of all open records."""
    return kinds.key(LABEL)


async def settle(
    client: Client, kinds: Kinds, evidence: SanitizationEvidence, erased: Iterable[KnownDrive], sanitization: str,
    proof: str, key: Signer, now: datetime,
) -> None:  # fmt: skip
    """Record that another server has erased these drives; closes the record after the last one. Raises ApiError."""
    done = tuple(erased)
    drives = tuple(
        msgspec.structs.replace(one, result=Result.SUCCEEDED, class_=sanitization, ended_at=now, message=proof)
        if drive_identity.find(one, done) is not None else one
        for one in evidence.status.drives
    )  # fmt: skip
    status = msgspec.structs.replace(evidence.status, drives=drives)
    evidence = await record.write(client, kinds, evidence, status)
    if not unsettled(evidence):
        await close(client, kinds, evidence, sanitization, proof, key, now)


async def close(
    client: Client, kinds: Kinds, evidence: SanitizationEvidence, sanitization: str, proof: str, key: Signer,
    now: datetime,
) -> None:  # fmt: skip
    """Close a record with the result of the cleanup and the name of its evidence. Raises ApiError."""
    status = msgspec.structs.replace(
        evidence.status,
        phase=EvidencePhase.SUCCEEDED if sanitization in _ERASED else EvidencePhase.FAILED,
        ended_at=now,
        remarks=(f"the cleanup ended with sanitization {sanitization} (SanitizationEvidence {proof or 'none'})",),
    )
    await record.sign(client, kinds, evidence, status, key, now)
    await unlabel(client, kinds, evidence)


async def unlabel(client: Client, kinds: Kinds, evidence: SanitizationEvidence) -> None:
    """The last step of `close`: a backup that is restored without status must not open the record again."""
    labels = {"metadata": {"labels": {kinds.key(LABEL): None}}}
    await client.patch(kinds.evidence, evidence.metadata.name, labels)


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """Permissions for these records, in addition to those for evidence."""
    return (
        Permission(
            kinds.evidence, ("list",), "finds outstanding sanitizations of a machine whose Server was created again"
        ),
        *follows(kinds.evidence, why="recognizes a drive with outstanding sanitization in another server"),
        Permission(kinds.evidence, ("patch",), "removes the label of a closed record"),
    )
