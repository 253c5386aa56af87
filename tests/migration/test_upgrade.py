"""A site that the former version of this operator wrote is continued by this one, and no tenant notices.

`left-by-former-version.json` was recorded from the former version's controllers (before `status.tenancy` existed):
eight Servers, and the simulated machines as they were at that moment. 0 and 1 run their claims; 2 is being erased;
3 is in Error and owes the erasure of a drive; 4 is parked; 5 is in maintenance, 6 is claimed and in maintenance;
7 is being booted for its claim.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import msgspec
import pytest

from metal.api.server import Server
from metal.apiserver.machinery.records import encode
from metal.apiserver.server import EmbeddedAPI
from metal.apiserver.storage.journal import Change, Loaded, MemoryJournal
from metal.config.options import Sanitization
from metal.kube.meta.clock import LoopClock
from metal.kube.meta.conditions import find
from metal.sim.machine.state import State
from tests.crds import crds
from tests.migration.site import ALL, Doc, install
from tests.sim.plane import CONFIG, KINDS, OPTIONS, Plane

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime]
RECORDED: Doc = msgspec.json.decode(Path(__file__).with_name("left-by-former-version.json").read_bytes())
NAME = "mac-02-b3-c0-00-00-{:02d}-system-0"
STATES = ("Reserved", "Reserved", "Available", "Error", "Parked", "Maintenance", "Maintenance", "Reserved")
DATA = ("Dirty", "Dirty", "Clean", "Dirty", "Clean", "Clean", "Dirty", "Dirty")


class Folder(MemoryJournal):
    """The data folder of the former version, read once; nothing is written to it."""

    async def open(self) -> Loaded:
        changes = tuple(map(_stored, RECORDED["objects"]))
        return Loaded(max(change.resource_version for change in changes), changes)


def _stored(doc: Doc) -> Change:
    meta, kind = doc["metadata"], ALL[doc["kind"]]
    body = encode(doc)
    version = int(meta["resourceVersion"])
    return Change(kind.group, kind.plural, meta.get("namespace", ""), meta["name"], version, body)


class Upgrade(Plane):
    """The former version has stopped; `begin` starts this one on what it wrote."""

    def __init__(self) -> None:
        config = replace(CONFIG, sanitization=Sanitization(policy="Clear"))
        super().__init__(8, 11, config, OPTIONS)
        self.clock = LoopClock(datetime.fromisoformat(RECORDED["now"]))
        self.api = EmbeddedAPI(None, self.clock, rng=random.Random(1))
        self.api.backend.store._journal = Folder()
        self.client = self.api.client()
        self.manager = self._manager(self.seed)
        for machine in self.fleet.machines:
            machine.adopt(msgspec.convert(deepcopy(RECORDED["machines"][machine.identity.uuid]), State))
        self.fleet.machines[3].faults.lying_drive = True

    async def begin(self, definitions: list[Doc], *, minutes: float = 30.0) -> None:
        """Start the API with these CRDs, then the manager, and give them time."""
        await self.api.start()
        await install(self.client, definitions)
        await self.fleet.start()
        await self.start_manager()
        await asyncio.sleep(minutes * 60.0)

    async def stop(self) -> None:
        await self.manager.stop(grace=0.0)
        await self.fleet.stop()
        await self.api.stop()

    async def server(self, number: int) -> Server:
        """The Server of a number."""
        return await self.client.get(KINDS.server, NAME.format(number))

    def moved(self, *numbers: int) -> list[str]:
        """All that happened to these machines and can be felt there."""
        return [
            f"{number}: {entry}"
            for number in numbers
            for entry in self.fleet.history.of(self.fleet.machines[number].identity.uuid)
            if entry.what in ("reset", "power", "override", "fetch", "disk")
        ]


@asynccontextmanager
async def upgrade() -> AsyncIterator[Upgrade]:
    """The site, before this version runs."""
    made = Upgrade()
    try:
        yield made
    finally:
        await made.stop()


def _former(definitions: list[Doc]) -> list[Doc]:
    """The CRDs of the former version, as far as it matters: they drop `status.tenancy`."""
    for crd in definitions:
        if crd["spec"]["names"]["kind"] == "Server":
            schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            del schema["properties"]["status"]["properties"]["tenancy"]
    return definitions


def _data(server: Server) -> str:
    return server.status.tenancy.data


async def test_every_server_continues_and_no_tenant_notices() -> None:
    """CRDs first: states go on, `status.tenancy` replaces the former fields, and only 2 and 7 are switched."""
    async with upgrade() as site:
        await site.begin(crds(KINDS))
        servers = [await site.server(number) for number in range(8)]

        assert site.moved(0, 1, 3, 4, 5, 6) == []
        assert site.moved(2)  # the history does record what happens
        assert tuple(server.status.state for server in servers) == STATES
        assert tuple(map(_data, servers)) == DATA
        assert [n for n in (0, 1, 6, 7) if not site.fleet.machines[n].state.disk.marker] == []
        assert not site.fleet.machines[2].state.disk.marker
        assert site.fleet.machines[3].state.disk.marker
        claimed = {n: s.status.tenancy.claim_ref.name for n, s in enumerate(servers) if s.status.tenancy.claim_ref}
        assert {n: claimed[n] for n in (0, 1, 6, 7)} == {n: f"claim-{n}" for n in (0, 1, 6, 7)}


@pytest.mark.life
async def test_a_manager_that_starts_before_its_crds_waits_for_them_and_then_continues() -> None:
    """Manager first: with the former CRDs no machine is touched; with the new ones every server continues."""
    async with upgrade() as site:
        await site.begin(_former(crds(KINDS)))
        held = site.moved(0, 1, 3, 4, 5, 6)
        ready = find((await site.server(0)).status.conditions, "Ready")
        await install(site.client, crds(KINDS))
        await asyncio.sleep(1800)

        assert held == site.moved(0, 1, 3, 4, 5, 6) == []
        assert ready is not None
        assert ready.reason == "CustomResourceDefinitions"
        assert _data(await site.server(0)) == "Dirty"
        assert (await site.server(3)).status.state == "Error"
