"""Our manager on what the Go operator left, with simulated machines in the same condition, under virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from metal.api.server import Server
from metal.config.options import BootOptions
from metal.sim.options import Options
from tests.crds import crds
from tests.migration.site import LEFT, Doc, Left, everything, go_crds, install, leave, server_name
from tests.sim.plane import CONFIG, PASSWORD, Plane

MINUTE = 60.0
FIRST_REQUEST = BootOptions(minimum_trust="FirstRequest")
"""No leases are reported at this site, as the Go operator did not need them."""
OPTIONS = Options(power=3.0, boot=20.0, shutdown=5.0, latency=0.03)


class Takeover(Plane):
    """The Go operator has stopped; `begin` starts ours."""

    def __init__(self, left: tuple[Left, ...]) -> None:
        super().__init__(len(left), 3, replace(CONFIG, boot=FIRST_REQUEST), OPTIONS)
        self.left = left
        self.before: dict[str, Doc] = {}

    async def prepare(self) -> None:
        """Their CRDs, their objects, then ours over them."""
        await self.api.start()
        await install(self.client, go_crds())
        await leave(self.client, self.fleet.machines, PASSWORD, self.left)
        self.before = await self.objects_by_key()
        await install(self.client, crds(self.kinds))
        await self.fleet.start()

    async def begin(self, *, minutes: float = 10.0) -> None:
        """Start our manager and give it time."""
        await self.start_manager()
        await asyncio.sleep(minutes * MINUTE)

    async def stop(self) -> None:
        await self.manager.stop(grace=0.0)
        await self.fleet.stop()
        await self.api.stop()

    async def objects_by_key(self) -> dict[str, Doc]:
        """Everything, by kind, namespace and name."""
        return {_key(doc): doc async for doc in everything(self.client)}

    async def server(self, number: int) -> Server:
        """The Server of a number."""
        return await self.client.get(self.kinds.server, server_name(number, self.left[number]))

    def moved(self) -> list[str]:
        """All that happened to machines and can be felt there."""
        return [
            f"{number} {self.left[number].state}: {entry}"
            for number, machine in enumerate(self.fleet.machines)
            for entry in self.fleet.history.of(machine.identity.uuid)
            if entry.what in ("reset", "power", "override", "fetch", "disk")
        ]


def _key(doc: Doc) -> str:
    meta = doc["metadata"]
    return f"{doc.get('kind', '')}/{meta.get('namespace', '')}/{meta['name']}"


@asynccontextmanager
async def takeover(left: tuple[Left, ...] = LEFT) -> AsyncIterator[Takeover]:
    """The site, before our manager runs."""
    made = Takeover(left)
    await made.prepare()
    try:
        yield made
    finally:
        await made.stop()
