"""What becomes of a leader among several managers that fails, at each step: rows of docs/failures.md."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.chain.rivals import Rival, Rivals, rivals
from tests.mutants.stories import at_rest
from tests.sim.failing import Row, at, go_on, reach
from tests.sim.failures import check
from tests.sim.telling import told

pytestmark = [pytest.mark.looptime, pytest.mark.life]
AFTER = 12.0
"""Seconds until the next one acts at the latest: the Lease has to expire first."""


async def _kill(world: Rivals, leader: Rival) -> None:
    world.rivals.remove(leader)
    await leader.kill()


async def _freeze(_: Rivals, leader: Rival) -> None:
    """What it has sent arrives when it thaws."""
    leader.cable.freeze()


async def _cut_off(_: Rivals, leader: Rival) -> None:
    leader.cable.refused = True


FATES: dict[str, Callable[[Rivals, Rival], Awaitable[None]]] = {
    "the leader is killed": _kill,
    "the leader is frozen, and its requests arrive late": _freeze,
    "the leader is cut off from the API": _cut_off,
}
ROWS = tuple(row for fault in FATES for row in at("discovery boot release", fault, inject=None))


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_leader_that_fails_is_replaced(row: Row) -> None:
    """The other manager acts within seconds, nothing is said on any object, and everything comes to rest."""
    async with rivals(1, seed=7) as world:
        await reach(world, row.step)
        since, old = world.clock(), await world.leader()
        await FATES[row.fault](world, old)
        await go_on(world, row.step)
        async with asyncio.timeout(AFTER):
            leader = old
            while leader is old:
                await asyncio.sleep(0.1)
                leader = await world.leader()
        old.cable.mend()
        await at_rest(world)
        telling = told(world.fleet.history, since, world.clock())
    check(row, telling)
