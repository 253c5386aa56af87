"""Rules for clients that restore older objects, delete them, or drop fields of them, and for clocks that are set."""

import asyncio
from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import rule

from metal.kube.client.errors import NotFound
from metal.kube.meta.objects import Kind
from metal.sim.history import ObjectChange
from tests.sim.lives.stage import SECONDS, WHICH, Fleet
from tests.sim.plane import KINDS

RESTORED = st.sampled_from(["server", "server", "claim", "bmc"])
DELETED = st.sampled_from(["server", "server", "bmc", "endpoint", "boot_config", "evidence"])
STEPS = st.sampled_from([1, 3, 10, 40])
GO_FIELDS = frozenset({"state", "powerState", "indicatorLED", "conditions", "networkInterfaces", "storages"})
"""Fields of a Server's status that a typed client of the Go operator writes back; the others are lost."""


HOURS = st.sampled_from([-24, -1, 1])
"""By how much a clock is set: more than any deadline but that of an erasure."""


class Restores(Fleet):
    """Rules for objects as they were, for those that are gone, and for the clock."""

    @rule(hours=HOURS, seconds=SECONDS)
    def set_clock(self, hours: int, seconds: float) -> None:
        """The clock of API, manager and machines is set."""
        self.world.clock.adjust(hours * 3600)
        self.do(asyncio.sleep(0), seconds)

    @rule(kind=RESTORED, which=WHICH, steps=STEPS, with_status=st.booleans(), seconds=SECONDS)
    def restore(self, kind: str, which: int, steps: int, with_status: bool, seconds: float) -> None:
        """An object is restored from a backup as it was some versions ago; it may have been deleted since."""
        self.do(self._restore(getattr(KINDS, kind), which, steps, with_status), seconds)

    async def _restore(self, kind: Kind[Any], which: int, steps: int, with_status: bool) -> None:
        entries = [e for e in self.world.fleet.history if isinstance(e, ObjectChange) and e.kind == kind.kind]
        names = sorted({(e.namespace, e.name) for e in entries})
        if not names:
            return
        namespace, name = names[which % len(names)]
        versions = [e.obj for e in entries if e.name == name and e.obj is not None]
        old = msgspec.to_builtins(versions[max(0, len(versions) - 1 - steps)])
        await self._put(kind, namespace, name, old, with_status=with_status)

    async def _put(self, kind: Kind[Any], namespace: str, name: str, old: dict[str, Any], *, with_status: bool) -> None:
        client, meta = self.world.client, old["metadata"]
        kept = {key: meta[key] for key in ("labels", "annotations", "ownerReferences") if key in meta}
        try:
            now = msgspec.to_builtins(await client.get(kind, name, namespace))
        except NotFound:
            body = {"metadata": {"name": name, "namespace": namespace, **kept}, "spec": old.get("spec", {})}
            await client.create(kind, body)
            now = {}
        else:
            spec = dict.fromkeys(now.get("spec", {})) | old.get("spec", {})
            await client.patch(kind, name, {"spec": spec, "metadata": kept}, namespace)
        if with_status:
            status = dict.fromkeys(now.get("status", {})) | old.get("status", {})
            await client.patch_status(kind, name, {"status": status}, namespace)

    @rule(kind=DELETED, which=WHICH, seconds=SECONDS)
    def delete(self, kind: str, which: int, seconds: float) -> None:
        """An object is deleted."""
        self.do(self._delete(getattr(KINDS, kind), which), seconds)

    async def _delete(self, kind: Kind[Any], which: int) -> None:
        found = (await self.world.client.list(kind)).items
        if found:
            meta = found[which % len(found)].metadata
            await self.world.client.delete(kind, meta.name, meta.namespace)

    @rule(which=WHICH, seconds=SECONDS)
    def drop_claim_ref(self, which: int, seconds: float) -> None:
        """A client removes the reference of a Server to its claim."""
        self.do(self._change(which, {"spec": {"serverClaimRef": None}}), seconds)

    async def _change(self, which: int, body: dict[str, Any]) -> None:
        servers = await self.world.servers()
        if servers:
            await self.world.client.patch(KINDS.server, servers[which % len(servers)].metadata.name, body)

    @rule(which=WHICH, all_of_it=st.booleans(), seconds=SECONDS)
    def wipe_status(self, which: int, all_of_it: bool, seconds: float) -> None:
        """A client of another version writes a status without the fields that it does not know, or without any."""
        self.do(self._wipe_status(which, all_of_it), seconds)

    async def _wipe_status(self, which: int, all_of_it: bool) -> None:
        servers = await self.world.servers()
        if not servers:
            return
        server = servers[which % len(servers)]
        kept = frozenset[str]() if all_of_it else GO_FIELDS
        lost = {name: None for name in msgspec.to_builtins(server.status) if name not in kept}
        await self.world.client.patch_status(KINDS.server, server.metadata.name, {"status": lost})
