"""The leader of several managers fails: rows of docs/failures.md."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.chain.rivals import Rival, Rivals, rivals
from tests.mutants.stories import at_rest
from tests.sim.failing import go_on, nothing, reach
from tests.sim.failures import check, compare_final
from tests.sim.reported import reported
from tests.sim.rows import End, Fault, Row, at

pytestmark = [pytest.mark.looptime, pytest.mark.life]
AFTER = 12.0
"""Seconds until another manager leads at the latest: the Lease has to expire first."""


async def _kill(world: Rivals, leader: Rival) -> None:
    world.rivals.remove(leader)
    await leader.kill()


async def _freeze(_: Rivals, leader: Rival) -> None:
    """What it has sent arrives when it thaws."""
    leader.cable.freeze()


async def _cut_off(_: Rivals, leader: Rival) -> None:
    leader.cable.refused = True


FATES: dict[str, tuple[str, Callable[[Rivals, Rival], Awaitable[None]]]] = {
    "leader killed": ("The leader is killed.", _kill),
    "leader frozen": ("The leader is frozen; requests that it has sent arrive when another one leads.", _freeze),
    "leader cut off": ("The leader cannot reach the API.", _cut_off),
}
ROWS = tuple(
    row
    for fault, (what, _) in FATES.items()
    for row in at(
        "discovery boot release", fault, inject=Fault(nothing, what=what), minutes=AFTER / 60, end=End.TAKEN_OVER
    )
)


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_leader_that_fails_is_replaced(row: Row) -> None:
    """Another manager becomes leader within 12 s, no failure or warning is reported, and everything comes to rest."""
    async with rivals(1, seed=7) as world:
        await reach(world, row.step)
        since, old = world.clock(), await world.leader()
        await FATES[row.fault][1](world, old)
        await go_on(world, row.step)
        async with asyncio.timeout(AFTER):
            leader = old
            while leader is old:
                await asyncio.sleep(0.1)
                leader = await world.leader()
        old.cable.mend()
        await at_rest(world)
        await compare_final(world, row)
        report = reported(world.fleet.history, since, world.clock())
    check(row, report)
