"""Random events in any order: faults, claims and killed managers. The invariants hold."""

import asyncio
import os
import random

import pytest

from metal.config.options import Sanitization
from metal.kube.client.errors import ApiError
from tests.sim.plane import Plane, plane

pytestmark = [pytest.mark.looptime, pytest.mark.life]
FAULTS = (
    "dead", "hangs", "http_5xx", "ignores_graceful", "ignores_once", "never_reports", "slow",
    "dies_after_script", "second_fetch", "drops_override", "ignores_reset", "boots_disk", "stale_power",
    "lying_drive", "dying_drive", "missing_drive", "power_loss_in_sanitization",
)  # fmt: skip
STEPS = 25
WALKS = int(os.environ.get("METAL_WALKS", "4"))
"""More of them find more: METAL_WALKS=200 takes about three minutes."""


class Walk:
    """Applies random events to a plane, one after the other."""

    def __init__(self, world: Plane, rng: random.Random) -> None:
        self.world, self.rng = world, rng
        self.made = 0
        self.claims: list[str] = []

    async def run(self) -> None:
        """Some steps, with pauses of seconds to minutes between them."""
        acts = (self.fault, self.fault, self.heal, self.claim, self.drop, self.power, self.kill, self.retry)
        for _ in range(STEPS):
            await self.rng.choice(acts)()
            await asyncio.sleep(self.rng.choice((0.2, 2.0, 15.0, 90.0)) * self.rng.random())

    async def fault(self) -> None:
        self.rng.choice(self.world.fleet.machines).faults.switch(self.rng.choice(FAULTS))

    async def heal(self) -> None:
        machine = self.rng.choice(self.world.fleet.machines)
        for name in machine.faults.active:
            machine.faults.switch(name, False)

    async def claim(self) -> None:
        self.made += 1
        name = f"c{self.made}"
        self.claims.append(name)
        await self.world.add_claim(name, power=self.rng.choice(("On", "On", "Off")))

    async def drop(self) -> None:
        if self.claims:
            name = self.claims.pop(self.rng.randrange(len(self.claims)))
            await self.world.client.delete(self.world.kinds.claim, name, "default")

    async def power(self) -> None:
        if self.claims:
            body = {"spec": {"power": self.rng.choice(("On", "Off"))}}
            await self.world.client.patch(self.world.kinds.claim, self.rng.choice(self.claims), body, "default")

    async def kill(self) -> None:
        await self.world.restart_manager()

    async def retry(self) -> None:
        for server in await self.world.servers():
            if server.status.state == "Error":
                body = {"metadata": {"annotations": {self.world.kinds.key("operation"): "retry"}}}
                await self.world.client.patch(self.world.kinds.server, server.metadata.name, body)

    async def settle(self) -> None:
        """Clear all faults and delete all claims: within hours every server is Available again."""
        for machine in self.world.fleet.machines:
            for name in machine.faults.active:
                machine.faults.switch(name, False)
        for name in self.claims:
            await self.world.client.delete(self.world.kinds.claim, name, "default")
        loop = asyncio.get_running_loop()
        end = loop.time() + 20_000
        while not await self._all_available():
            assert loop.time() < end, [(s.metadata.name, s.status) for s in await self.world.servers()]
            await self.retry()
            await asyncio.sleep(60)

    async def _all_available(self) -> bool:
        servers = await self.world.servers()
        return len(servers) == len(self.world.fleet.machines) and all(s.status.state == "Available" for s in servers)


@pytest.mark.parametrize("policy", ["None", "Clear"])
@pytest.mark.parametrize("seed", range(WALKS))
async def test_whatever_happens_the_invariants_hold(seed: int, policy: str) -> None:
    """A random walk violates nothing, and after the faults every server becomes Available."""
    async with plane(3, seed=seed, sanitization=Sanitization(policy=policy)) as world:
        await world.announce()
        walk = Walk(world, random.Random(seed))
        try:
            await walk.run()
            await walk.settle()
        except ApiError as exc:
            pytest.fail(f"the API refused what a user may do: {exc}")
