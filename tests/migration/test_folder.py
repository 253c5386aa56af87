"""A data folder that `metalctl up` of the former version wrote is continued, also when this version is killed.

`left-in-a-folder.sql` is the text of such a folder's state.db, `left-in-a-folder.json` the state file of
`metalctl sim`. They were recorded at commit c5cda5f: `metalctl sim -n 6 --scheme https --fault lying_drive=1 --state
FILE` and `metalctl up --data DIR`; claims of 0, 1, 2 and 5; `metalctl release claim-2 claim-5`;
`spec.tls.trustOnFirstUse` for BMC 0; `metalctl park` of 4; Ctrl-C. The dump has no CRDs, rights, Events, signing keys
and managedFields; the probe's Ignition (100 KB) is an empty one; the pinned certificate is the one of this process.
"""

import asyncio
import random
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from metal.api.server import Server
from metal.apiserver.server import EmbeddedAPI
from metal.apiserver.storage.journal import Loaded, MemoryJournal
from metal.apiserver.storage.sqlite import check_format, read_all
from metal.config.options import Sanitization
from metal.kube.meta.clock import LoopClock
from metal.kube.meta.conditions import find
from metal.sim.machine import store
from metal.sim.options import Options
from metal.sim.sites.fleet import Fleet, FleetSettings
from tests.crds import crds
from tests.migration.site import install
from tests.sim.plane import CONFIG, KINDS, OPTIONS, Plane

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime]
LEFT = Path(__file__).with_name("left-in-a-folder.sql")
MACHINES = LEFT.with_suffix(".json")
STOPPED = datetime(2026, 11, 23, 9, 12, tzinfo=UTC)
NAME = "mac-02-b3-c0-00-00-{:02d}-system-0"
STATES = ("Reserved", "Reserved", "Available", "Available", "Parked", "Error")
DATA = ("Dirty", "Dirty", "Clean", "Clean", "Clean", "Dirty")
TENANCY = "metal.ironcore.dev/tenancy"
PIN = "1c28b97cc83b912436b4e836b049ad9179650b14ff151c3dbc59734f1d4d5071"


def folder(path: Path) -> Path:
    """The state.db that the former version wrote."""
    with closing(sqlite3.connect(path / "state.db")) as db:
        db.executescript(LEFT.read_text())
    return path / "state.db"


class Folder(MemoryJournal):
    """Reads a state.db once, as the journal of a data folder does; nothing is written to it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    async def open(self) -> Loaded:
        with closing(sqlite3.connect(self._path)) as db:
            check_format(db, self._path)
            return read_all(db)


class Upgraded(Plane):
    """The machines as they were, and this version on what the former one wrote about them."""

    def __init__(self, state: Path) -> None:
        super().__init__(0, 0, replace(CONFIG, sanitization=Sanitization(policy="Clear")), OPTIONS)
        self.clock = LoopClock(STOPPED)
        self.api = EmbeddedAPI(None, self.clock, rng=random.Random(1))
        self.api.backend.store._journal = Folder(state)
        self.client = self.api.client()
        options = Options(power=3.0, boot=20.0, latency=0.03, scheme="https", port=18000)
        settings = FleetSettings(
            boot_url=self.config.boot_url, network=self.network, clock=self.clock, history_limit=None
        )
        self.fleet = Fleet(6, options=options, settings=settings)
        store.load(MACHINES, self.fleet.machines)
        self.fleet.machines[5].faults.lying_drive = True
        self.manager = self._manager(self.seed)

    async def __aenter__(self) -> "Upgraded":
        await self.api.start()
        await install(self.client, crds(KINDS))
        await self.fleet.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.manager.stop(grace=0.0)
        await self.fleet.stop()
        await self.api.stop()

    async def numbered(self) -> list[Server]:
        return [await self.client.get(KINDS.server, NAME.format(number)) for number in range(6)]

    def touched(self) -> list[str]:
        """All that happened to any machine and can be felt there."""
        felt = ("reset", "power", "override", "fetch", "disk")
        uuids = [machine.identity.uuid for machine in self.fleet.machines]
        return [str(entry) for uuid in uuids for entry in self.fleet.history.of(uuid) if entry.what in felt]


async def _check(site: Upgraded) -> None:
    servers = await site.numbered()
    assert site.touched() == []
    assert tuple(server.status.state for server in servers) == STATES
    assert tuple(server.status.tenancy.data for server in servers) == DATA
    owners = [server.status.tenancy.claim_ref for server in servers]
    assert [ref.name if ref else "" for ref in owners] == ["claim-0", "claim-1", "", "", "", "claim-5"]
    for claim in (await site.client.list(KINDS.claim, "default")).items:
        ready = find(claim.status.conditions, "Ready")
        assert ready is not None
        assert ready.status == "True", ready
    bmc = await site.client.get(KINDS.bmc, "mac-02-b3-c0-00-00-00")
    assert bmc.status.certificate is not None
    assert bmc.status.certificate.sha256 == PIN
    error = servers[5].status
    assert "SIM000000005-D0" in error.waiting_for, error


async def test_a_folder_of_the_former_version_is_continued(tmp_path: Path) -> None:
    """No machine is switched, booted or erased; claims stay Ready, owed data stays owed, pins and parking stay."""
    async with Upgraded(folder(tmp_path)) as site:
        await site.start_manager()
        await asyncio.sleep(1800)
        await _check(site)


@pytest.mark.parametrize("converted", [1, 3])
async def test_a_conversion_that_is_interrupted_is_continued(tmp_path: Path, converted: int) -> None:
    """The process is killed when some Servers have `status.tenancy` and others have not; the next one completes it."""
    async with Upgraded(folder(tmp_path)) as site:
        await site.start_manager()
        seen = 0
        while seen < converted:
            await asyncio.sleep(0.001)
            seen = sum(TENANCY in server.metadata.annotations for server in await site.numbered())
        assert seen < 6
        await site.restart_manager()
        await asyncio.sleep(1800)
        await _check(site)


async def test_a_former_leader_in_between_changes_no_tenant(tmp_path: Path) -> None:
    """The former version led again for a moment, as in a rollout that is undone. It wrote its own fields for a claimed
    server, and made one Available that owes an erasure: the claim stays, and nothing is given away unerased."""
    async with Upgraded(folder(tmp_path)) as site:
        await site.start_manager()
        await asyncio.sleep(1800)
        await site.manager.stop(grace=0.0)
        claimed, owing = (await site.numbered())[1], NAME.format(5)
        ref = claimed.status.tenancy.claim_ref
        assert ref is not None
        boot = {"claimUID": ref.uid, "image": "127.0.0.1:18084/demo:latest", "bootedAt": "2026-11-23T09:42:00Z"}
        former = {"tenant": ref.uid, "claimBoot": boot, "sanitizationPolicy": "Clear"}
        await site.client.patch_status(KINDS.server, claimed.metadata.name, {"status": former})
        available = {"state": "Available", "failure": None, "since": "2026-11-23T09:42:00Z"}
        await site.client.patch_status(KINDS.server, owing, {"status": available})

        await site.restart_manager()
        await asyncio.sleep(1800)
        servers = await site.numbered()
        assert servers[1].status.state == "Reserved"
        assert servers[1].status.tenancy.data == "Dirty"
        assert servers[1].status.tenancy.claim_ref == ref
        assert [line for line in site.touched() if claimed.uuid in line] == []
        assert servers[5].status.state != "Available"
        assert servers[5].status.tenancy.data == "Dirty"
        assert site.fleet.machines[5].state.disk.marker
