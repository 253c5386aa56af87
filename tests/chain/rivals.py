"""Two managers with one API and one fleet in this process, under virtual time."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

from metal.api.core import LEASE
from metal.bmc.redfish.pool import RedfishPool
from metal.config import Config, shared_options
from metal.controllers.endpoint.mac_prefixes import parse
from metal.controllers.endpoint.prefix_file import PrefixFile
from metal.kube.client.errors import Unavailable
from metal.kube.client.protocol import Client, Page, WatchEvent
from metal.kube.client.resources import Resource
from metal.kube.controller.election import ElectionSettings, Elector, Lease
from metal.kube.meta.objects import Kind, Object
from metal.machineapi.bootserver.routes import routes as boot_routes
from metal.machineapi.registry.routes import routes as registry_routes
from metal.manager import Manager, Parts
from metal.sim.images.local import LocalImages
from metal.sim.machine.network import InProcessNetwork, Reply, Unreachable
from metal.sim.options import Options
from tests.sim.plane import CONFIG, OPTIONS, Plane

T = TypeVar("T", bound=Object)
R = TypeVar("R")


class Cable:
    """A client that can be cut off: refused at once, or frozen, when requests arrive as soon as it thaws."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.refused = False
        self._thawed = asyncio.Event()
        self._thawed.set()

    @property
    def cut(self) -> bool:
        return self.refused or not self._thawed.is_set()

    def freeze(self) -> None:
        self._thawed.clear()

    def mend(self) -> None:
        self.refused = False
        self._thawed.set()

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        return await self._send(lambda: self._client.get(kind, name, namespace))

    async def list(
        self, kind: Kind[T], namespace: str = "", *, labels: str = "", fields: str = "", resource_version: str = ""
    ) -> Page[T]:
        options = {"labels": labels, "fields": fields, "resource_version": resource_version}
        return await self._send(lambda: self._client.list(kind, namespace, **options))

    async def watch(
        self, kind: Kind[T], namespace: str = "", *, resource_version: str, labels: str = "", fields: str = ""
    ) -> AsyncIterator[WatchEvent[T]]:
        stream = self._client.watch(kind, namespace, resource_version=resource_version, labels=labels, fields=fields)
        async for event in stream:
            await self._passed()
            yield event

    async def create(self, kind: Kind[T], obj: Mapping[str, Any]) -> T:
        return await self._send(lambda: self._client.create(kind, obj))

    async def patch(self, kind: Kind[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        return await self._send(lambda: self._client.patch(kind, name, patch, namespace))

    async def patch_status(self, kind: Kind[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        return await self._send(lambda: self._client.patch_status(kind, name, patch, namespace))

    async def apply(self, kind: Kind[T], obj: Mapping[str, Any], *, manager: str, force: bool = True) -> T:
        return await self._send(lambda: self._client.apply(kind, obj, manager=manager, force=force))

    async def delete(
        self, kind: Kind[T], name: str, namespace: str = "", *, uid: str = "", resource_version: str = ""
    ) -> None:
        await self._send(lambda: self._client.delete(kind, name, namespace, uid=uid, resource_version=resource_version))

    async def resources(self, api_version: str) -> tuple[Resource, ...]:
        return await self._send(lambda: self._client.resources(api_version))

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _send(self, call: Callable[[], Awaitable[R]]) -> R:
        await self._passed()
        answer = await call()
        await self._passed()  # cut off while it was answered, nobody hears the answer
        return answer

    async def _passed(self) -> None:
        if self.refused:
            raise Unavailable("connection refused")
        await self._thawed.wait()


class Rival:
    """One of several managers."""

    def __init__(self, plane: "Rivals", number: int, config: Config) -> None:
        self.cable = Cable(plane.api.client())
        self.network = InProcessNetwork()
        rng = random.Random(f"{plane.seed}/{number}")
        settings = ElectionSettings(
            "metal-operator", config.namespace, f"manager-{number}", annotations=shared_options.annotations(config)
        )
        self.elector = Elector(self.cable, cast("Kind[Lease]", LEASE), settings, clock=plane.clock, rng=rng)
        parts = Parts(
            self.cable, RedfishPool(plane.fleet.transport_factory, permit=self.elector.require), config,
            PrefixFile(extra=parse(plane.fleet.mac_prefixes_yaml(), "fleet")), Path("unused"), clock=plane.clock,
            rng=rng, images=LocalImages(), elector=self.elector,
        )  # fmt: skip
        self.manager = Manager(parts)
        self.plane = plane

    async def start(self) -> None:
        await self.manager.start()
        self.network.mount(self.plane.config.boot_url, boot_routes(self.manager.boot))
        self.network.mount(self.plane.config.registry_url, registry_routes(self.manager.registry))

    async def kill(self) -> None:
        """Nothing is said to anybody."""
        self.network.unmount_all()
        self.cable.mend()
        self.cable.refused = True
        await self.manager.stop(grace=0.0)

    async def stop(self) -> None:
        """As SIGTERM does."""
        await self.manager.stop(grace=self.plane.config.election.drain)
        self.network.unmount_all()


class Service(InProcessNetwork):
    """Leads machines to another replica with each request."""

    def __init__(self, plane: "Rivals") -> None:
        super().__init__()
        self._plane, self._turn = plane, 0

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes, source_ip: str, timeout: float = 30.0
    ) -> Reply:
        self._turn += 1
        there = [one.network for one in self._plane.rivals if not one.cable.cut]
        for place in range(len(there)):
            network = there[(self._turn + place) % len(there)]
            with suppress(Unreachable):
                return await network.request(
                    method, url, headers=headers, body=body, source_ip=source_ip, timeout=timeout
                )
        raise Unreachable("no replica")


class Rivals(Plane):
    """A plane with two managers."""

    def __init__(self, n: int, seed: int, config: Config, options: Options, other: Config | None = None) -> None:
        self._configs = (other or config, config)
        self.rivals: list[Rival] = []
        self._made = 0
        super().__init__(n, seed, config, options)

    def _network(self) -> InProcessNetwork:
        return Service(self)

    async def start_manager(self) -> None:
        for _ in range(2):
            await self.add()

    async def add(self) -> Rival:
        """One more manager, ready."""
        self._made += 1
        one = Rival(self, self._made, self._configs[self._made % 2])
        await one.start()
        self.rivals.append(one)
        return one

    async def leader(self) -> Rival:
        """Whoever leads; waits for one."""
        while True:
            leaders = [one for one in self.rivals if one.elector.leader]
            assert len(leaders) <= 1
            if leaders:
                return leaders[0]
            await asyncio.sleep(0.1)

    async def stop(self) -> None:
        for one in self.rivals:
            await one.kill()
        await super().stop()


@asynccontextmanager
async def rivals(n: int, *, seed: int, config: Config = CONFIG, other: Config | None = None) -> AsyncIterator[Rivals]:
    """A running plane with two managers; the invariants are checked at the end. `other`: options of the second."""
    made = Rivals(n, seed, config, OPTIONS, other)
    await made.start()
    try:
        yield made
        made.check()
    finally:
        await made.stop()
