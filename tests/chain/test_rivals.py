"""Two managers hand over, in virtual time, at every wrong moment that chance finds."""

import asyncio
import os
import random
from dataclasses import replace

import pytest

from metal.api.core import EVENT
from metal.config.options import Sanitization
from tests.chain.rivals import Rivals, rivals
from tests.sim.plane import CONFIG

pytestmark = [pytest.mark.looptime, pytest.mark.timeout(240)]
STEPS = 12
WALKS = int(os.environ.get("METAL_WALKS", "2"))


class Walk:
    """Hand-overs and claims, one after the other; notes how long nobody led."""

    def __init__(self, world: Rivals, rng: random.Random) -> None:
        self.world, self.rng = world, rng
        self.claims: list[str] = []
        self.made = 0
        self.gaps: dict[str, list[float]] = {"kill": [], "stop": [], "freeze": [], "unplug": []}

    async def run(self) -> None:
        for _ in range(STEPS):
            for _ in range(self.rng.randrange(3)):
                await self.tenant()
            await asyncio.sleep(self.rng.choice((0.1, 1.0, 5.0, 20.0)) * self.rng.random())
            await self.hand_over(self.rng.choice(list(self.gaps)))

    async def tenant(self) -> None:
        """A claim comes, or one goes, whatever its machine is doing."""
        if self.claims and self.rng.random() < 0.4:
            name = self.claims.pop(self.rng.randrange(len(self.claims)))
            await self.world.client.delete(self.world.kinds.claim, name, "default")
            return
        self.made += 1
        self.claims.append(f"c{self.made}")
        await self.world.add_claim(self.claims[-1])

    async def hand_over(self, how: str) -> None:
        """Take the lead from whoever has it, and wait until somebody else has it."""
        old = await self.world.leader()
        begun = asyncio.get_running_loop().time()
        if how in ("kill", "stop"):
            await (old.kill() if how == "kill" else old.stop())
            self.world.rivals.remove(old)
        elif how == "freeze":
            old.cable.freeze()
        else:
            old.cable.refused = True
        new = await self.world.leader()
        while new is old:
            await asyncio.sleep(0.05)
            new = await self.world.leader()
        assert not old.manager.runtime.working
        self.gaps[how].append(asyncio.get_running_loop().time() - begun)
        old.cable.mend()
        if how in ("kill", "stop"):
            await self.world.add()

    async def settle(self) -> None:
        """Without further hand-overs, every claim gets its system, and every server is Available in the end."""
        for name in self.claims[len(self.world.fleet.machines) :]:
            await self.world.client.delete(self.world.kinds.claim, name, "default")
        kept = self.claims[: len(self.world.fleet.machines)]
        await self.world.until_true(lambda: len(self.world.tenants()) == len(kept), within=4000, what="tenants")
        for name in kept:
            await self.world.client.delete(self.world.kinds.claim, name, "default")
        await self.world.until_available(len(self.world.fleet.machines), within=4000)


@pytest.mark.parametrize("seed", range(WALKS))
async def test_hand_overs_break_nothing(seed: int) -> None:
    """Leaders are killed, stopped and cut off while machines are discovered, claimed and given back: no invariant
    breaks, no claim is lost, nobody waits longer than promised, and everything comes to rest as it should."""
    async with rivals(4, seed=seed) as world:
        await world.announce()
        walk = Walk(world, random.Random(seed))
        await walk.run()
        await walk.settle()
    for how, limit in {"kill": 12.0, "stop": 3.0, "freeze": 12.0, "unplug": 12.0}.items():
        assert max(walk.gaps[how], default=0.0) < limit, walk.gaps


async def test_no_machine_is_switched_on_twice_for_one_reason() -> None:
    """Fifteen leaders are killed at random moments of a fleet's discovery and its claims' boots: each machine has had
    one start for the probe and one for its claim."""
    async with rivals(6, seed=7) as world:
        walk = Walk(world, random.Random(7))
        await world.announce()
        for _ in range(8):
            await asyncio.sleep(walk.rng.uniform(0.0, 8.0))
            await walk.hand_over(walk.rng.choice(("kill", "stop")))
        await world.until_available(6, within=2000)
        for _ in range(6):
            walk.made += 1
            await world.add_claim(f"c{walk.made}")
        for _ in range(7):
            await asyncio.sleep(walk.rng.uniform(0.0, 8.0))
            await walk.hand_over(walk.rng.choice(("kill", "unplug")))
        await world.until_true(lambda: len(world.tenants()) == 6, within=2000)
        for machine in world.fleet.machines:
            uuid = machine.identity.uuid
            powered = [e for e in world.fleet.history.of(uuid, "power") if e.details["state"] == "On"]
            systems = [e.details["kind"] for e in world.fleet.history.of(uuid, "os")]
            assert (len(powered), systems) == (2, ["probe", "tenant"])


STRICT = replace(CONFIG, sanitization=Sanitization(policy="Purge"))
LAX = replace(CONFIG, sanitization=Sanitization(policy="None", opt_out=True))


@pytest.mark.behaviour(
    "Cleanup", "A hand-over between managers with different options weakens no sanitization policy of a tenancy."
)
async def test_a_hand_over_to_other_options_lowers_no_policy_of_a_tenancy() -> None:
    """Booted under the strict manager, released under the lax one, after several hand-overs: the policy is kept."""
    async with rivals(1, seed=3, config=STRICT, other=LAX) as world:
        await world.announce()
        await world.until_available(1)
        walk, policies = Walk(world, random.Random(3)), list[str]()
        while (await world.leader()).manager.config is not STRICT:
            await walk.hand_over("kill")
        await world.add_claim(sanitizationPolicy="None")
        await world.until_true(lambda: len(world.tenants()) == 1, within=2000, what="tenants")
        for how in ("kill", "stop", "freeze"):
            await walk.hand_over(how)
            await asyncio.sleep(600)
            policies.append((await world.servers())[0].status.tenancy.policy)
        assert (await world.leader()).manager.config is LAX
        versions = {s.metadata.name: s.metadata.resource_version for s in await world.servers()}
        await asyncio.sleep(1800)
        assert versions == {s.metadata.name: s.metadata.resource_version for s in await world.servers()}
        await world.client.delete(world.kinds.claim, "c1", "default")
        await world.until_available(1, within=4000)
        (server,) = await world.servers()
    assert policies == ["Purge"] * 3
    assert server.status.tenancy.sanitization == "Purge"


@pytest.mark.behaviour(
    "Embedded API and assembly", "A new leader whose options differ from its predecessor's says in an Event which."
)
async def test_a_leader_with_other_options_says_so() -> None:
    """Once for each change, as a Warning Event of the Lease; a leader with the same options says nothing."""
    async with rivals(1, seed=4, config=STRICT, other=LAX) as world:
        walk = Walk(world, random.Random(4))
        await walk.hand_over("unplug")
        await asyncio.sleep(60)
        events = (await world.client.list(EVENT)).items
    told = [e for e in events if e.reason == "OptionsChanged"]
    assert [(e.type, e.involved_object.kind, e.involved_object.name) for e in told] == [
        ("Warning", "Lease", "metal-operator")
    ]
    assert "sanitization" in told[0].message
    assert "enrolment" not in told[0].message
