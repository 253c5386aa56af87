"""A whole control plane and a simulated fleet in one process, in the test's virtual time."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from metal.api.claim import ServerClaim
from metal.api.core import SECRET
from metal.api.kinds import kinds
from metal.api.server import Server
from metal.apiserver.server import EmbeddedAPI
from metal.bmc.redfish.pool import RedfishPool
from metal.bmc.shell import Shell
from metal.config import Config
from metal.config.options import Maintenance, Sanitization
from metal.controllers.endpoint.mac_prefixes import parse
from metal.controllers.endpoint.prefix_file import PrefixFile
from metal.kube.client.protocol import Client
from metal.kube.meta.clock import LoopClock
from metal.machine.charge import in_charge
from metal.machine.uuids import spellings
from metal.machineapi.bmcevents.routes import routes as event_routes
from metal.machineapi.bootserver.routes import routes as boot_routes
from metal.machineapi.registry.routes import routes as registry_routes
from metal.manager import Manager, Parts
from metal.sim.images.local import LocalImages
from metal.sim.invariants import check_all, check_load
from metal.sim.machine.machine import Machine
from metal.sim.machine.network import InProcessNetwork
from metal.sim.options import Options
from metal.sim.sites.fleet import Fleet, FleetSettings
from metal.sim.sites.object_history import ObjectHistory, watched
from tests.crds import crds

KINDS = kinds()
START = datetime(2026, 1, 1, tzinfo=UTC)
IGNITION = (
    '{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/hostname","contents":{"source":"data:,t"}}]}}'
)
OPTIONS = Options(power=3.0, boot=20.0, shutdown=5.0, latency=0.03)
PASSWORD = "factory-default-17"
CONFIG = Config(
    probe_image="images.sim/probe:latest", sanitization=Sanitization(policy="None"),
    maintenance=Maintenance(enforced_namespaces=("default",)),
)  # fmt: skip
"""Where erasing is not the point, tenants' data is left: it costs each life a boot."""


class Plane:
    """Control plane, fleet, and their history. `check` checks the invariants."""

    def __init__(self, n: int, seed: int, config: Config, options: Options) -> None:
        self.clock = LoopClock(START)
        self.network = self._network()
        self.config, self.kinds = config, kinds(config.api_group, config.boot_group)
        settings = FleetSettings(
            config.boot_url, self.network, self.clock, steady=self.clock.steady, history_limit=None
        )
        self.fleet = Fleet(n, seed=seed, options=replace(options, password=PASSWORD), settings=settings)
        self.api = self._api(seed)
        self.client = self.api.client()
        self.objects = ObjectHistory(self.client, self.fleet.history, watched(self.kinds))
        self.seed = seed
        self.manager = self._manager(seed)

    def _api(self, seed: int) -> EmbeddedAPI:
        """The embedded API, without persistence."""
        return EmbeddedAPI(None, self.clock, rng=random.Random(seed))

    def _network(self) -> InProcessNetwork:
        """The network between machines and manager."""
        return InProcessNetwork()

    def _manager(self, seed: int) -> Manager:
        pool = self._pool()
        prefixes = PrefixFile(extra=parse(self.fleet.mac_prefixes_yaml(), "fleet"))
        parts = Parts(
            self.manager_client(), pool, self.config, prefixes, Path("unused"),
            clock=self.clock, rng=random.Random(seed), images=self._images(), shell=self._shell(),
            pause_interval=10.0,  # these planes run for hours, and are not moved
        )  # fmt: skip
        return Manager(parts)

    def _pool(self) -> RedfishPool:
        """The pool of Redfish clients."""
        return RedfishPool(self.fleet.transport_factory)

    def _images(self) -> LocalImages:
        """The registry of images."""
        return LocalImages()

    def _shell(self) -> Shell | None:
        """The SSH shells of BMCs; None for the real one."""
        return None

    def manager_client(self) -> Client:
        """The client of a manager; other planes wrap it."""
        return self.api.client()

    async def start(self) -> None:
        """Start everything except the leases."""
        await self.api.start()
        await self.api.install_crds(crds(self.kinds))
        await self.objects.start()
        await self.fleet.start()
        await self.start_manager()

    async def start_manager(self) -> None:
        """Start the manager and the routes of machines to it."""
        await self.manager.start()
        self.network.mount(self.config.boot_url, boot_routes(self.manager.boot))
        self.network.mount(self.config.registry_url, registry_routes(self.manager.registry))
        if self.config.event_url:
            self.network.mount(self.config.event_url, event_routes(self.manager.events))

    async def restart_manager(self) -> None:
        """Kill the manager and start another one; only the API persists."""
        self.network.unmount_all()
        await self.manager.stop(grace=0.0)
        self.seed += 1
        self.manager = self._manager(self.seed)
        await self.start_manager()

    async def stop(self) -> None:
        """Stop all parts."""
        await self.manager.stop(grace=0.0)
        await self.objects.stop()
        await self.fleet.stop()
        await self.api.stop()

    async def announce(self) -> None:
        """Report the leases of the BMCs."""
        await self.fleet.announce(self.client, self.kinds)

    def check(self) -> None:
        """Check all invariants over the history."""
        seen = {secret for machine in self.fleet.machines for secret in machine.secrets}
        check_all(self.fleet.history, seen | {PASSWORD})
        check_load(self.busiest())

    def busiest(self) -> dict[str, dict[str, int]]:
        """The most reads and writes of each BMC in a minute."""
        return {address: bmc.load.busiest for address, bmc in self.fleet.bmcs.items()}

    async def servers(self) -> list[Server]:
        return sorted((await self.client.list(self.kinds.server)).items, key=lambda server: server.metadata.name)

    async def server_of(self, machine: Machine) -> Server | None:
        """The Server of a machine; of several the one in charge."""
        found = [s for s in await self.servers() if is_of(s, machine)]
        return in_charge(found) if found else None

    async def add_claim(self, name: str = "c1", **spec: Any) -> ServerClaim:
        """A claim in namespace default, with an Ignition."""
        secret = {"metadata": {"name": name, "namespace": "default"}, "stringData": {"ignition": IGNITION}}
        await self.client.apply(SECRET, secret, manager="test")
        body = {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"power": "On", "image": "images.sim/demo:latest", "ignitionSecretRef": {"name": name}, **spec},
        }
        return await self.client.create(self.kinds.claim, body)

    async def until(self, check: Callable[[list[Server]], bool], *, within: float = 600.0, what: str = "") -> None:
        """Wait in virtual time until the check holds for the servers."""
        loop = asyncio.get_running_loop()
        end, pause = loop.time() + within, 0.5
        while not check(servers := await self.servers()):
            told = [(s.metadata.name, s.status.state, s.status.power_state, s.status.waiting_for) for s in servers]
            assert loop.time() < end, f"not within {within:g} s: {what} {told}"
            await asyncio.sleep(pause)
            pause = min(pause * 1.1, 20.0)

    async def until_true(self, check: Callable[[], bool], *, within: float = 600.0, what: str = "") -> None:
        """Wait in virtual time until the check holds for the machines."""
        await self.until(lambda _: check(), within=within, what=what)

    def tenants(self) -> list[Machine]:
        """Machines on which a tenant's system runs, from the network or the disk."""
        return [m for m in self.fleet.machines if m.state.os is not None and m.state.os.kind in ("tenant", "disk")]

    async def until_available(self, count: int, *, within: float = 600.0) -> None:
        """Wait until so many servers are Available."""
        await self.until(
            lambda servers: sum(s.status.state == "Available" for s in servers) >= count,
            within=within, what=f"{count} Available",
        )  # fmt: skip

    async def until_claim(self, check: Callable[[ServerClaim], bool], name: str = "c1", *, within: float = 600) -> None:
        """Wait in virtual time until the check holds for the claim."""
        loop = asyncio.get_running_loop()
        end = loop.time() + within
        while not check(claim := await self.client.get(self.kinds.claim, name, "default")):
            assert loop.time() < end, f"still {claim.status}"
            await asyncio.sleep(0.5)


def is_of(server: Server, machine: Machine) -> bool:
    """Whether the Server describes this machine, in either byte order of its UUID."""
    return server.uuid in spellings(machine.identity.uuid)


def is_ready(claim: ServerClaim) -> bool:
    """Whether the claim's server runs the requested system."""
    return any(c.type == "Ready" and c.status == "True" for c in claim.status.conditions)


@asynccontextmanager
async def plane(n: int = 1, *, seed: int = 0, options: Options = OPTIONS, **config: Any) -> AsyncIterator[Plane]:
    """A running plane whose BMCs are not announced yet; the invariants are checked at the end."""
    made = Plane(n, seed, replace(CONFIG, **config), options)
    await made.start()
    try:
        yield made
        made.check()
    finally:
        await made.stop()
