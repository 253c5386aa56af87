"""Searches for data of other servers' claims on drives.

Each drive is looked up by its identity (`metal.machine.drive_identity`) in two indexes: the drives in the open records
of deleted Servers (`metal.evidence.outstanding`), and the drives of all Servers on which a claim may have left data.
Both are caches; what they find is confirmed from the API. `ownership` says whether a claim that exists may own it.
"""

from collections.abc import Iterable

import msgspec

from metal.api.claim import ServerClaim
from metal.api.sanitization import KnownDrive, OwedDrive, Policy
from metal.api.server import Server, State
from metal.api.tenancy import TenantRef
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy.ownership import Ownership, Record, ownership, record_of
from metal.evidence import outstanding, record
from metal.evidence.outstanding import BY_DRIVE
from metal.kube.meta.objects import Key, key_of
from metal.machine import drive_identity, tenancy
from metal.machine.identity import identity_of
from metal.machine.report import drives_in


def server_index(server: Server) -> Iterable[str]:
    """Index of Servers by the keys of their drives."""
    return {key for drive in drives_of(server) for key in drive_identity.keys(drive)}


def drives_of(server: Server) -> tuple[KnownDrive, ...]:
    """The drives that a Server is known to have; those of its BMC before the first discovery."""
    return server.status.drives or drives_in(server.status.storages)


async def find(scope: Scope, drives: Iterable[KnownDrive]) -> list[OwedDrive]:
    """The drives with data of another server's claim; an empty `claim` means that no such claim exists."""
    unique = {keys: drive for drive in drives if (keys := drive_identity.keys(drive))}
    found = [one for drive in unique.values() for one in (*await _in_records(scope, drive), *_in_servers(scope, drive))]
    if not found:
        return []
    claims, own = _Claims(scope), scope.tenancy.uid if scope.status.state == State.RESERVED else ""
    found = [one for one in found if not own or one.claim_uid != own]
    named = [msgspec.structs.replace(one, claim=await claims.name_of(one)) for one in found]
    return [one for one in named if one.claim or one.policy != Policy.NONE]


async def _in_records(scope: Scope, drive: KnownDrive) -> list[OwedDrive]:
    """The open records that list the drive. Those of this system are `recreated`'s."""
    found = []
    for name in records_of(scope, (drive,)):
        evidence = await record.find(scope.context.client, scope.context.kinds, name)
        if evidence is None or drive_identity.find(drive, outstanding.unsettled(evidence)) is None:
            continue
        found.append(
            OwedDrive(
                drive=drive, server=evidence.spec.server_ref.name, claim_uid=evidence.spec.claim_uid,
                evidence=name, policy=evidence.spec.policy or Policy.NONE,
            )
        )  # fmt: skip
    return found


def records_of(scope: Scope, drives: Iterable[KnownDrive]) -> list[str]:
    """Names of the open records that list one of these drives, without those of this system."""
    own, label = system_of(scope), scope.context.kinds.key(outstanding.LABEL)
    near = (
        r for drive in drives for key in drive_identity.keys(drive) for r in scope.deps.owed.by_index(BY_DRIVE, key)
    )
    return sorted({one.metadata.name for one in near if one.metadata.labels.get(label) != own})


def system_of(scope: Scope) -> str:
    """The label of this machine's own records, which are `recreated`'s."""
    return outstanding.system_of(identity_of(scope.server, scope.context.kinds, scope.status), scope.name)


def _in_servers(scope: Scope, drive: KnownDrive) -> list[OwedDrive]:
    """The other Servers that had the drive when a claim may have written to it."""
    return [
        OwedDrive(
            drive=drive, server=server.metadata.name, claim_uid=tenancy.of(server).uid,
            policy=tenancy.of(server).policy or scope.settings.sanitization_policy,
        )
        for server in others_with_key(scope, drive)
        if tenancy.may_hold_data(server) and drive_identity.find(drive, drives_of(server)) is not None
    ]  # fmt: skip


def others_with_key(scope: Scope, drive: KnownDrive) -> list[Server]:
    """The other Servers with a drive that shares a key with this one, by name; it may be another drive."""
    near = (one for key in drive_identity.keys(drive) for one in scope.deps.servers.by_index(BY_DRIVE, key))
    found = {one.metadata.name: one for one in near if one.metadata.name != scope.name}
    return [found[name] for name in sorted(found)]


class _Claims:
    """Existing claims: from the cache, and before one is taken to be gone, once from the API."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._listed: list[ServerClaim] | None = None

    async def name_of(self, owed: OwedDrive) -> str:
        """Namespace and name of the claim that may own the data; empty if there is none. Raises ApiError.

        Without its UID every possible claim counts.
        """
        former = self._scope.deps.servers.get(Key(owed.server))
        known = _record(owed, former)
        least = Ownership.LIKELY if known.uids else Ownership.POSSIBLE
        ref = former.spec.server_claim_ref if former is not None else None
        claim = self._scope.deps.claims.get(Key(ref.name, ref.namespace)) if ref is not None else None
        if claim is not None and ownership(claim, known) >= least:
            return str(key_of(claim))
        listed = await self._list()
        return next((str(key_of(c)) for c in listed if ownership(c, known) >= least), "")

    async def _list(self) -> list[ServerClaim]:
        if self._listed is None:
            context = self._scope.context
            self._listed = list((await context.client.list(context.kinds.claim)).items)
        return self._listed


def _record(owed: OwedDrive, former: Server | None) -> Record:
    """With the name of the claim while the former Server still has it, or names it without a record of its UID."""
    tenant = tenancy.of(former).claim_ref if former is not None else None
    if tenant is not None and tenant.uid == owed.claim_uid:
        return record_of(owed.server, tenant)
    ref = former.spec.server_claim_ref if former is not None and not owed.claim_uid else None
    if ref is not None:
        return record_of(owed.server, TenantRef(namespace=ref.namespace, name=ref.name))
    return record_of(owed.server, TenantRef(uid=owed.claim_uid))
