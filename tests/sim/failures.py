"""Lives a row of docs/failures.md: the fault comes, people see what the page says, it goes, and all comes to rest."""

import asyncio

from metal.kube.meta import conditions
from tests.mutants.stories import PATIENCE, Restless, at_rest
from tests.sim.failing import FailingPlane, Row, failing, go_on, of_machine, reach, retry
from tests.sim.plane import KINDS
from tests.sim.telling import Telling, told

UNTOUCHED = 1200.0
"""Seconds after which what has not come to rest by itself needs a person."""


async def live(row: Row) -> Telling:
    """What was said from the fault until everything was at rest. Raises Restless."""
    async with failing(row) as world:
        fault = row.inject or of_machine(row.fault)
        await fault.prepare(world)
        await reach(world, row.step)
        since = world.clock()
        await fault.begin(world)
        await go_on(world, row.step)
        await asyncio.sleep(row.minutes * 60)
        stood = told(world.fleet.history, since, world.clock()).stood
        await row.also(world)
        await fault.mend(world)
        if row.retry:
            await _stays(world, row.retry)
            await retry(world, row.retry)
        await _settle(world)
        telling = told(world.fleet.history, since, world.clock())
        telling.stood = stood
    return telling


async def _settle(world: FailingPlane) -> None:
    machines = len(world.fleet.machines)
    await world.until(lambda servers: len(servers) == machines, within=4000, what="all servers")
    await at_rest(world)
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE
    while problem := await _ill_bmc(world):
        if loop.time() > end:
            raise Restless(problem)
        await asyncio.sleep(30)


async def _ill_bmc(world: FailingPlane) -> str:
    """What a BMC says that is not at rest."""
    for bmc in (await world.client.list(KINDS.bmc)).items:
        if not conditions.is_true(bmc.status.conditions, "Ready"):
            return f"BMC {bmc.metadata.name} is {bmc.status.state}: {bmc.status.conditions}"
    return ""


async def _stays(world: FailingPlane, whom: str) -> None:
    """It is mended, and nothing goes on by itself."""
    await asyncio.sleep(UNTOUCHED)
    states = [server.status.state for server in await world.servers()]
    stuck = "Error" in states if whom == "server" else await _ill_bmc(world)
    if not stuck:
        raise Restless(f"nobody had to say retry: {states}")


def check(row: Row, telling: Telling) -> None:
    """The page's words were said; no Error and no warning was there that the page does not tell of."""
    said = sorted(telling.words)
    assert row.words <= telling.words, (sorted(row.words - telling.words), said)
    assert not row.wait or row.wait in telling.waits, (dict(telling.stood), said)
    errors = {word.removeprefix("Error ") for word in row.words if word.startswith("Error ")}
    assert telling.errors == errors, said
    known = {word.removeprefix("Event ") for word in row.words if word.startswith("Event ")}
    assert telling.warnings <= known | ({"Error"} if errors else set()), said
