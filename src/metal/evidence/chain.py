"""The chain of a machine's signed evidence: each record has a number, and name and digest of the record before.

A record that is deleted or replaced is missing from the chain: the next one names it (`problems`). What comes next is
derived from two sources: the records themselves, which have the machine as a label, and the ConfigMap
`evidence-head-<machine>` in the manager's namespace, which names the last record, so that also the deletion of the last
one is noticed. Either may be behind after a crash; the higher number counts.

The digest covers the record as it was first signed: kind, name, spec and status without signature and `acceptedAt`,
which is the only field that is signed again later. Records are signed one at a time (`lock`), by the leader.

A record whose signature is lost, because an older version of it was restored from a backup, is signed once more: with
a new number and a remark. `problems` reports it, because the version that was signed first is gone.
"""

import asyncio
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from metal.api.core import CONFIG_MAP, ConfigMap
from metal.api.kinds import Kinds
from metal.api.sanitization import PreviousEvidence, SanitizationEvidence
from metal.evidence.signing import PublicKey, SigningKey, canonical
from metal.kube.client.errors import NotFound
from metal.kube.client.protocol import Client
from metal.kube.meta.permissions import APPLY, Permission, Where
from metal.machine.uuids import spellings

MACHINE = "machine"
"""Label (under the API group) of a record: the machine whose chain it belongs to."""
HEAD = "evidence-head"
"""Label (under the API group) of the ConfigMaps that name the last record of a machine."""
_MANAGER = "metal-operator-evidence"
_SIGNED_BEFORE = "signed again: it was signed before, and an older version without that signature was restored"


@dataclass(frozen=True)
class Head:
    """The last record of a machine, as its ConfigMap has it."""

    machine: str
    sequence: int
    name: str
    digest: str


@dataclass
class Chain:
    """Numbers records and links each with the one before."""

    client: Client
    kinds: Kinds
    namespace: str
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def link(self, evidence: SanitizationEvidence) -> SanitizationEvidence:
        """The record with its number and the record before; unchanged if it has a number. Raises ApiError."""
        if evidence.status.sequence:
            return evidence
        machine = machine_of(evidence)
        last = await self._head(machine)
        listed = await self.client.list(self.kinds.evidence, labels=f"{self.kinds.key(MACHINE)}={machine}")
        for one in listed.items:
            if one.status.signature is not None and one.status.sequence > (last.sequence if last else 0):
                last = head_of(one)
        before = PreviousEvidence(name=last.name, digest=last.digest) if last is not None else None
        number = last.sequence + 1 if last is not None else 1
        named = {
            before.name for before in (before, *(one.status.previous for one in listed.items)) if before is not None
        }
        remarks = (*evidence.status.remarks, *((_SIGNED_BEFORE,) if evidence.metadata.name in named else ()))
        return _with(evidence, sequence=number, previous=before, remarks=remarks)

    async def advance(self, evidence: SanitizationEvidence) -> None:
        """Remember a record that was written as the last one of its machine. Raises ApiError."""
        head = head_of(evidence)
        known = await self._head(head.machine)
        if known is not None and known.sequence >= head.sequence:
            return
        meta = {
            "name": f"{HEAD}-{head.machine}", "namespace": self.namespace, "labels": {self.kinds.key(HEAD): "true"},
        }  # fmt: skip
        data = {"machine": head.machine, "sequence": str(head.sequence), "name": head.name, "digest": head.digest}
        await self.client.apply(CONFIG_MAP, {"metadata": meta, "data": data}, manager=_MANAGER)

    async def _head(self, machine: str) -> Head | None:
        try:
            found = await self.client.get(CONFIG_MAP, f"{HEAD}-{machine}", self.namespace)
        except NotFound:
            return None
        return next(iter(heads((found,))), None)


@dataclass(frozen=True)
class Signer:
    """The signing key with the chain that each signed record joins."""

    key: SigningKey
    chain: Chain

    @property
    def public(self) -> PublicKey:
        """The key that verifies its signatures."""
        return self.key.public


def machine_of(evidence: SanitizationEvidence) -> str:
    """The machine of a record as a label's value: one for both byte orders of its UUID."""
    return machine(evidence.spec.system_uuid)


def machine(system_uuid: str) -> str:
    """The machine with this system UUID as a label's value."""
    try:
        return min(spellings(system_uuid))
    except ValueError:
        return "x-" + hashlib.sha256(system_uuid.encode()).hexdigest()[:16]


def digest(evidence: SanitizationEvidence) -> str:
    """SHA-256 in hexadecimal of a record without its signature and a later acceptance."""
    return hashlib.sha256(canonical(_with(evidence, signature=None, accepted_at=None))).hexdigest()


def head_of(evidence: SanitizationEvidence) -> Head:
    """The record as the last one of its machine."""
    return Head(machine_of(evidence), evidence.status.sequence, evidence.metadata.name, digest(evidence))


def heads(maps: Iterable[ConfigMap]) -> tuple[Head, ...]:
    """The last records that these ConfigMaps name; invalid ones are skipped."""
    named = (one.data for one in maps if one.data.get("machine") and one.data.get("name"))
    return tuple(
        Head(data["machine"], int(data["sequence"]), data["name"], data.get("digest", ""))
        for data in named
        if data.get("sequence", "").isdecimal()
    )


def problems(records: Iterable[SanitizationEvidence], last: Iterable[Head]) -> dict[str, list[str]]:
    """What is wrong with the chains, by name of the record: a missing one is reported under its own name."""
    numbered = {one.metadata.name: one for one in records if one.status.sequence}
    found: dict[str, list[str]] = {}
    for one in numbered.values():
        for name, problem in _problems(one, numbered):
            found.setdefault(name, []).append(problem)
    for head in last:
        if (problem := _head_problem(head, numbered)) and head.name not in found:
            found[head.name] = [problem]
    for one, other in _doubles(numbered.values()):
        text = f"it has the number {one.status.sequence} of its machine, and so has {other.metadata.name}"
        found.setdefault(one.metadata.name, []).append(text)
    return found


def _problems(
    evidence: SanitizationEvidence, numbered: dict[str, SanitizationEvidence]
) -> Iterable[tuple[str, str]]:  # fmt: skip
    name, number, before = evidence.metadata.name, evidence.status.sequence, evidence.status.previous
    if before is None:
        if number > 1:
            yield name, f"it is number {number} of its machine and names no record before it"
        return
    if before.name == name:
        yield name, f"{_SIGNED_BEFORE}, as number {number - 1} of its machine"
        return
    former = numbered.get(before.name)
    if former is None:
        yield before.name, f"missing: {name}, number {number} of its machine, names it as the record before"
    elif digest(former) != before.digest or former.status.sequence != number - 1:
        yield before.name, f"it is not the record that {name} names as the record before"


def _head_problem(head: Head, numbered: dict[str, SanitizationEvidence]) -> str:
    evidence = numbered.get(head.name)
    if evidence is None:
        return f"missing: it is the last record, number {head.sequence}, of machine {head.machine}"
    return "" if digest(evidence) == head.digest else f"it is not the record that {HEAD}-{head.machine} names"


def _doubles(
    records: Iterable[SanitizationEvidence],
) -> Iterable[tuple[SanitizationEvidence, SanitizationEvidence]]:
    first: dict[tuple[str, int], SanitizationEvidence] = {}
    for one in records:
        other = first.setdefault((machine_of(one), one.status.sequence), one)
        if other is not one:
            yield one, other


def _with(evidence: SanitizationEvidence, **changes: object) -> SanitizationEvidence:
    return msgspec.structs.replace(evidence, status=msgspec.structs.replace(evidence.status, **changes))


def required_permissions() -> tuple[Permission, ...]:
    """Permissions for the ConfigMaps; their names contain the machine, so no rule can list them."""
    why = "names the last evidence of each machine"
    return (Permission(CONFIG_MAP, ("get", *APPLY), why, where=Where.HOME),)
