"""Boot server, bootconfig controller and registry over the embedded API, with its schemas, apply and conflicts."""

import asyncio
import base64
import json
import random
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from metal.api.core import CONFIG_MAP, EVENT, NAMESPACE, SECRET
from metal.api.kinds import kinds
from metal.apiserver.server import EmbeddedAPI
from metal.controllers.bootconfig.watches import setup_boot_configs
from metal.controllers.shared.scope import Context
from metal.kube.controller.events import Recorder
from metal.kube.controller.runtime import Runtime
from metal.kube.meta.clock import LoopClock
from metal.machine.directory import CachedDirectory
from metal.machine.report import network_interfaces
from metal.machineapi.bootserver.service import BootService
from metal.machineapi.bootserver.settings import BootSettings
from metal.machineapi.http.refusals import Refusals
from metal.machineapi.registry.service import RegistryService, RegistrySettings
from tests.crds import crds
from tests.machineapi.world import IGNITION, MAC, MACHINE, NEIGHBOR, UUID, Clock, Shelf, secret

pytestmark = pytest.mark.looptime
KINDS = kinds()
REPORT = {"networkInterfaces": [{"name": "eth0", "macAddress": MAC, "ipAddresses": [MACHINE]}]}


class Site:
    """All services for machines, over one embedded API."""

    def __init__(self, folder: Path) -> None:
        self.clock = LoopClock(Clock().now)
        self.api = EmbeddedAPI(None, self.clock)
        self.client = self.api.client()
        self.runtime = Runtime(self.client, rng=random.Random(1))
        self.recorder = Recorder(self.client, EVENT, component="test", clock=self.clock)
        self.runtime.background("events", self.recorder.run)
        images, settings = Shelf(folder), BootSettings(base_url="http://10.0.0.1:8082")
        context = Context(self.client, KINDS, self.clock, random.Random(1), self.recorder)
        setup_boot_configs(context, self.runtime, images, settings)
        refusals = Refusals(self.clock, event=lambda server, *told: self.recorder.event(server, KINDS.server, *told))
        directory = CachedDirectory(self.runtime.informer(KINDS.server), self.runtime.informer(KINDS.endpoint))
        self.boots = [
            BootService(self.client, KINDS, directory, images, refusals, settings, clock=self.clock) for _ in range(2)
        ]
        self.registry = RegistryService(
            self.client, KINDS, directory, refusals, RegistrySettings(namespace="ns"), clock=self.clock
        )

    async def start(self) -> None:
        await self.api.start()
        await self.api.install_crds(crds(KINDS))
        await self.client.create(NAMESPACE, {"metadata": {"name": "ns"}})
        await self.runtime.start()
        spec = {"systemUUID": UUID, "bmcRef": {"name": "bmc"}}
        await self.client.create(KINDS.server, {"metadata": {"name": "s1"}, "spec": spec})
        await self.client.create(SECRET, secret("ignition", ignition=json.dumps(IGNITION).encode()))
        spec = {"serverRef": {"name": "s1"}, "image": "registry.test/os:1", "ignitionSecretRef": {"name": "ignition"}}
        await self.client.create(KINDS.boot_config, {"metadata": {"name": "sbc", "namespace": "ns"}, "spec": spec})
        await asyncio.sleep(1)

    async def open(self, purpose: str, minimum: str = "Lease") -> None:
        config = await self.client.get(KINDS.boot_config, "sbc", "ns")
        assert config.status.state == "Ready", config.status
        window = {
            "id": "b1", "purpose": purpose, "configRef": {"namespace": "ns", "name": "sbc"}, "phase": "Open",
            "configUID": config.metadata.uid, "openedAt": "2026-01-01T12:00:00Z", "expiresAt": "2026-01-01T12:30:00Z",
            "method": "IPXE", "minimumTrust": minimum,
        }  # fmt: skip
        await self.client.patch_status(KINDS.server, "s1", {"status": {"bootWindow": window}})
        await asyncio.sleep(0.1)

    async def shown(self, *, leased: bool) -> None:
        """The BMC shows power On and a MAC address, with or without a lease."""
        interfaces = [{"name": "eth0", "macAddress": MAC, "source": "OutOfBand"}]
        status = {"status": {"networkInterfaces": interfaces, "powerState": "On"}}
        await self.client.patch_status(KINDS.server, "s1", status)
        if leased:
            spec = {"macAddress": MAC, "ip": MACHINE}
            await self.client.create(KINDS.endpoint, {"metadata": {"name": "lease"}, "spec": spec})

    async def window(self) -> Any:
        return (await self.client.get(KINDS.server, "s1")).status.boot_window


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    made = Site(tmp_path)
    await made.start()
    yield made
    await made.runtime.stop(grace=1.0)
    await made.api.stop()


def token_of(script: bytes) -> str:
    found: list[str] = re.findall(r"token=([\w-]+)", script.decode())
    return found[0]


async def test_a_discovery_runs_through(site: Site) -> None:
    """After script, Ignition and report the whole inventory is stored for the Server controller."""
    await site.shown(leased=True)
    await site.open("Discovery")
    script = await site.boots[0].script(UUID, MACHINE)
    ignition = await site.boots[1].ignition(UUID, token_of(script.body), MACHINE)
    files = {file["path"]: file["contents"]["source"] for file in json.loads(ignition.body)["storage"]["files"][1:]}
    token = base64.b64decode(files["/etc/metalprobe/token"].partition("base64,")[2]).decode()
    body = json.dumps({"systemUUID": UUID, "data": REPORT}).encode()
    assert (await site.registry.register(f"Bearer {token}", body, MACHINE)).status == 201
    assert (await site.registry.register(f"Bearer {token}", body, MACHINE)).status == 200
    window = await site.window()
    assert (window.phase, window.token_digest, window.report_token_digest) == ("Succeeded", "", "")
    inventory = await site.client.get(CONFIG_MAP, "inventory-s1", "ns")
    (interface,) = network_interfaces(json.loads(inventory.data["report.json"]))
    assert interface.mac_address == MAC


async def test_two_replicas_and_two_askers_make_one_winner(site: Site) -> None:
    """The API's conflict decides which requester succeeds; the race is recorded and reported as an Event."""
    await site.shown(leased=False)
    await site.open("Claim", "FirstRequest")
    answers = await asyncio.gather(site.boots[0].script(UUID, MACHINE), site.boots[1].script(UUID, NEIGHBOR))
    assert sorted(answer.status for answer in answers) == [200, 403]
    assert (await site.window()).phase == "Contested"
    await site.recorder.flush()
    events = await site.client.list(EVENT, "default")
    assert "BootContested" in [event.reason for event in events.items]


async def test_a_lease_decides_who_is_the_machine(site: Site) -> None:
    """The MAC address comes from the Server's status, the lease from an Endpoint."""
    await site.shown(leased=True)
    await site.open("Claim")
    assert (await site.boots[0].script(UUID, NEIGHBOR)).status == 403
    script = await site.boots[1].script(UUID, MACHINE)
    assert (await site.boots[0].ignition(UUID, token_of(script.body), MACHINE)).status == 200
    assert (await site.window()).phase == "Succeeded"


async def test_readiness_writes_nothing_once_it_is_settled(site: Site) -> None:
    """Defaulting and pruning by the API do not look like changes to the reconciler."""
    version = site.api.backend.store.version
    await asyncio.sleep(600)
    assert site.api.backend.store.version == version
