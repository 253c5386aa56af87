"""Everything around the controllers that a test does not want to play by hand: boot server, boot operator, machine."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from metal.api.boot_window import Phase, Purpose
from metal.kube.client.errors import Conflict, NotFound
from metal.machine.boot_window import Refused
from tests.controllers.world import KINDS, World


class Surroundings:
    """Makes boot configurations ready, and lets the machine fetch and report after each network boot.

    `served` counts by claim UID how often a tenant's Ignition went out.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.silent = False
        self.served: Counter[str] = Counter()
        self._boots = world.bmc.network_boots

    @asynccontextmanager
    async def acting(self) -> AsyncIterator[None]:
        """Act in the background for a while; what went wrong there is raised at the end."""
        task = asyncio.create_task(self.run())
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def run(self) -> None:
        """Act until cancelled."""
        while True:
            await asyncio.sleep(1)
            try:
                await self._prepare()
                await self._boot()
            except (Conflict, NotFound, Refused):
                continue  # somebody was faster, or nothing is served: the next second sees

    async def _prepare(self) -> None:
        for config in (await self.world.client.list(KINDS.boot_config)).items:
            current = config.status.observed_generation == config.metadata.generation
            if config.status.state != "Ready" or not current:
                await self.world.config_ready(config.metadata.name, config.metadata.namespace)

    async def _boot(self) -> None:
        bmc = self.world.bmc
        if bmc.network_boots == self._boots or self.silent or bmc.power != "On" or bmc.last_boot != "network":
            return
        server = await self.world.server()
        window = server.status.boot_window
        if window is None or window.phase not in (Phase.OPEN, Phase.SCRIPT_SERVED, Phase.IGNITION_SERVED):
            self._boots = bmc.network_boots
            return
        if window.phase == Phase.OPEN:
            await self.world.fetch_script()
        elif window.phase == Phase.SCRIPT_SERVED:
            await self.world.fetch_ignition()
            self.served[window.claim_uid] += 1
            if window.claim_uid:
                self._boots = bmc.network_boots
        elif window.purpose == Purpose.SANITIZATION:
            await self.world.erase()
            self._boots = bmc.network_boots
        else:
            await self.world.report()
            self._boots = bmc.network_boots
