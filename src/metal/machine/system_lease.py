"""One Lease for each physical machine names the Server that may act on it.

Two Servers for one machine can be created at the same moment: by two BMC objects, by two managers during a change of
leaders, by hand. A cache shows that too late, and a list followed by a create is not atomic. A Lease with a name made
of the machine's identity (`identity.lease_name`) is: the API creates it once.

`acquire` creates the Lease before enrolment creates a Server. `require` is called before everything that could harm a
tenant: it reads the Lease, one request by name, and raises `NotInCharge` unless the Lease names this Server. A Server
takes the Lease over when its holder no longer exists, is another machine by now, or when `charge.in_charge` prefers
this Server; the resourceVersion makes sure that only one takes it. `release` deletes the Lease of a deleted Server.

`require` also compares the record of tenancy with its copy in the Lease, and brings the copy up to date
(`lease_tenancy`): one write when the boot of a claim begins, and one when its data is erased or accepted.

The Lease is not renewed. A holder that does not exist is only replaced `GRACE` seconds after it took the Lease, because
its enrolment may still be in progress.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from metal.api.core import LEASE, Lease
from metal.api.kinds import Kinds
from metal.api.names import MACHINE_ID, TENANCY
from metal.api.server import Server, ServerStatus
from metal.kube.client.errors import AlreadyExists, Conflict, NotFound
from metal.kube.client.protocol import Client
from metal.kube.meta.clock import Clock, micro_time
from metal.kube.meta.permissions import Permission, Where
from metal.machine import kept_tenancy, lease_tenancy
from metal.machine.charge import in_charge
from metal.machine.identity import compare, identity_of, lease_name

GRACE = timedelta(seconds=60)
"""Longer than a pass over a BMC takes between the Lease and the Server."""


class NotInCharge(Exception):
    """Another Server acts on this machine, or none may. `other` is that Server; str() says why."""

    def __init__(self, other: Server, reason: str) -> None:
        super().__init__(reason)
        self.other, self.reason = other, reason


class Unidentified(Exception):
    """Nothing identifies the machine: its UUID is that of many, and its serial number is missing."""


class SystemLeases:
    """The Leases of all machines, in the manager's namespace."""

    def __init__(self, client: Client, kinds: Kinds, namespace: str, clock: Clock) -> None:
        self._client, self._kinds, self._namespace, self._clock = client, kinds, namespace, clock

    async def holder(self, key: str) -> str:
        """Name of the Server that the Lease of this key names; empty without one. Raises ApiError."""
        lease = await self._read(key)
        return "" if lease is None else lease.spec.holder_identity

    async def acquire(self, key: str, name: str) -> Server | None:
        """Have the Lease name a Server that is about to be created; the Server of this machine if one exists.

        Raises Conflict when the Lease cannot be decided now, and ApiError.
        """
        try:
            await self._create(key, name)
        except AlreadyExists:
            return await self._decide(key, name, lambda _: False)
        return None

    async def require(self, server: Server, status: ServerStatus | None = None) -> None:
        """Return when the Lease of this Server's machine names it, by now if need be.

        Raises NotInCharge, Unidentified, RecordOutdated, Conflict when the Lease cannot be decided now, and ApiError.
        """
        mine, name = identity_of(server, self._kinds, status), server.metadata.name
        if not mine.key:
            raise Unidentified
        lease = await self._read(mine.key)
        if lease is None or lease.spec.holder_identity != name:
            other = await self._take(mine.key, name, lease, lambda other: in_charge((server, other)) is server)
            if other is not None:
                raise NotInCharge(other, compare(mine, identity_of(other, self._kinds)).reason)
            lease = await self._read(mine.key)
        await self._keep(lease, server, status or server.status)

    async def has_begun(self, server: Server, claim_uid: str) -> bool:
        """Whether a network boot of this claim has begun, as the Lease has it. Raises ApiError."""
        lease = await self._read(identity_of(server, self._kinds).key)
        return lease is not None and kept_tenancy.rebuilt(self._kept(lease), self._clock()).uid == claim_uid

    async def release(self, key: str, name: str) -> None:
        """Delete the Lease if it names this Server. Raises ApiError."""
        lease = await self._read(key) if key else None
        if lease is None or lease.spec.holder_identity != name:
            return
        try:
            version = lease.metadata.resource_version
            await self._client.delete(LEASE, lease_name(key), self._namespace, resource_version=version)
        except (NotFound, Conflict):
            return  # another Server has taken it meanwhile

    async def _keep(self, lease: Lease | None, server: Server, status: ServerStatus) -> None:
        """Bring the copy of the record of tenancy up to date. Raises RecordOutdated, Conflict and ApiError."""
        if lease is None:
            raise Conflict(f"the Lease of {server.metadata.name} was deleted in between")
        old, meta = self._kept(lease), lease.metadata
        if (new := lease_tenancy.value(old, server.spec, status, self._clock())) != old:
            kept = {"resourceVersion": meta.resource_version, "annotations": {self._kinds.key(TENANCY): new or None}}
            await self._client.patch(LEASE, meta.name, {"metadata": kept}, self._namespace)

    def _kept(self, lease: Lease) -> str:
        return lease.metadata.annotations.get(self._kinds.key(TENANCY), "")

    async def _take(
        self, key: str, name: str, lease: Lease | None, may_take: Callable[[Server], bool]
    ) -> Server | None:
        if lease is None:
            try:
                await self._create(key, name)
            except AlreadyExists:
                return await self._decide(key, name, may_take)
            return None
        return await self._settle(key, name, lease, may_take)

    async def _decide(self, key: str, name: str, may_take: Callable[[Server], bool]) -> Server | None:
        lease = await self._read(key)
        if lease is None:
            raise Conflict(f"the Lease {lease_name(key)} was deleted in between")
        return await self._settle(key, name, lease, may_take)

    async def _settle(self, key: str, name: str, lease: Lease, may_take: Callable[[Server], bool]) -> Server | None:
        """None when the Lease names `name`, by now if need be; else the Server that holds it."""
        if lease.spec.holder_identity == name:
            return None
        other = await self._server(lease.spec.holder_identity)
        if other is None:
            taken = lease.spec.acquire_time
            if taken is not None and self._clock() - taken < GRACE and taken <= self._clock():
                raise Conflict(f"Server {lease.spec.holder_identity} is being created for the same machine")
        elif identity_of(other, self._kinds).key == key and not may_take(other):
            return other
        body = {"metadata": {"resourceVersion": lease.metadata.resource_version}, "spec": self._spec(name)}
        await self._client.patch(LEASE, lease_name(key), body, self._namespace)
        return None

    async def _create(self, key: str, name: str) -> None:
        meta = {
            "name": lease_name(key), "namespace": self._namespace,
            "annotations": {self._kinds.key(MACHINE_ID): key[:1024]},
        }  # fmt: skip
        await self._client.create(LEASE, {"metadata": meta, "spec": self._spec(name)})

    def _spec(self, name: str) -> dict[str, Any]:
        return {"holderIdentity": name, "acquireTime": micro_time(self._clock())}

    async def _read(self, key: str) -> Lease | None:
        try:
            return await self._client.get(LEASE, lease_name(key), self._namespace)
        except NotFound:
            return None

    async def _server(self, name: str) -> Server | None:
        if not name:
            return None
        try:
            return await self._client.get(self._kinds.server, name)
        except NotFound:
            return None


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """Permissions of this module. The Lease's name contains the machine's UUID, so no rule can list it."""
    why = "one Lease for each machine names the Server that may act on it"
    return (
        Permission(LEASE, ("get", "create", "patch", "delete"), why, where=Where.HOME),
        Permission(kinds.server, ("get",), "reads the Server that acts on a machine"),
    )
