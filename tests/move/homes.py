"""Two homes and one fleet in virtual time: two embedded APIs, a manager on each, and what the machines saw."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from metal.apiserver.server import EmbeddedAPI
from metal.bmc.redfish.pool import RedfishPool
from metal.controllers.endpoint.mac_prefixes import parse
from metal.controllers.endpoint.prefix_file import PrefixFile
from metal.kube.client.protocol import Client
from metal.machineapi.bootserver.routes import routes as boot_routes
from metal.machineapi.registry.routes import routes as registry_routes
from metal.manager import Manager, Parts
from metal.move.homes import Home
from metal.move.mover import Mover
from metal.move.pause import PausedClient
from metal.sim.images.local import LocalImages
from tests.crds import crds
from tests.sim.plane import CONFIG, OPTIONS, Plane


class Killed(Exception):
    """The mover's process was killed."""


class Mortal(PausedClient):
    """A client that is killed right after its n-th write, counted over both homes."""

    def __init__(self, client: Client, life: "Life") -> None:
        super().__init__(client)
        self._life = life

    @asynccontextmanager
    async def _write(self) -> AsyncIterator[None]:
        yield
        self._life.spend()


class Life:
    """Remaining writes; None for unlimited."""

    def __init__(self, writes: int | None = None) -> None:
        self.left, self.spent = writes, 0

    def spend(self) -> None:
        """Count one write."""
        self.spent += 1
        if self.left is not None and self.spent >= self.left:
            raise Killed


class TwoHomes(Plane):
    """The plane of tests/sim, whose API is the first home, and a second home."""

    def __init__(self, n: int) -> None:
        super().__init__(n, 5, CONFIG, OPTIONS)
        self.api2 = EmbeddedAPI(None, self.clock, rng=random.Random(99))
        self.client2 = self.api2.client()
        self.manager2 = self._manager2()

    def _manager2(self) -> Manager:
        pool = RedfishPool(self.fleet.transport_factory)
        prefixes = PrefixFile(extra=parse(self.fleet.mac_prefixes_yaml(), "fleet"))
        parts = Parts(
            self.client2, pool, self.config, prefixes, Path("unused"), clock=self.clock, rng=random.Random(77),
            images=LocalImages(),
        )  # fmt: skip
        return Manager(parts)

    async def start(self) -> None:
        """Both homes; machines talk to the first."""
        await super().start()
        await self.api2.start()
        await self.api2.install_crds(crds(self.kinds))
        await self.manager2.start()

    async def stop(self) -> None:
        """Stop both."""
        await self.manager2.stop(grace=0.0)
        await self.api2.stop()
        await super().stop()

    def mover(self, life: Life | None = None, *, back: bool = False) -> Mover:
        """From the first home to the second, or back."""
        mortal = life or Life()
        homes = [
            Home("first", Mortal(self.client, mortal), self.kinds),
            Home("second", Mortal(self.client2, mortal), self.kinds),
        ]
        return Mover(*(reversed(homes) if back else homes))

    def route(self, manager: Manager) -> None:
        """DHCP and boot URL point to this manager."""
        self.network.unmount_all()
        self.network.mount(self.config.boot_url, boot_routes(manager.boot))
        self.network.mount(self.config.registry_url, registry_routes(manager.registry))

    def felt(self) -> int:
        """The number of resets, power changes and boots of the machines so far."""
        what = ("reset", "power", "override", "fetch", "disk")
        return sum(len(self.fleet.history.of(m.identity.uuid, *what)) for m in self.fleet.machines)

    async def populated(self) -> None:
        """Two servers: one claimed and running, one Available."""
        await self.announce()
        await self.until_available(len(self.fleet.machines))
        await self.add_claim()
        await self.until_claim(lambda c: any(x.type == "Ready" and x.status == "True" for x in c.status.conditions))
        await asyncio.sleep(30)


@asynccontextmanager
async def two_homes(n: int = 2) -> AsyncIterator[TwoHomes]:
    """The first home is populated, the second one empty; managers run on both."""
    made = TwoHomes(n)
    await made.start()
    try:
        await made.populated()
        yield made
    finally:
        await made.stop()
