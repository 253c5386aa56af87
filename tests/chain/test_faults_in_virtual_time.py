"""Machines enrol while the embedded API fails in every way, under virtual time: all end as if it never had."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.chain.proxy import Trouble
from tests.chain.shaky import Shaky
from tests.chain.shakyplane import ShakyPlane
from tests.sim.plane import CONFIG, KINDS, OPTIONS

pytestmark = [pytest.mark.looptime, pytest.mark.life]
MACHINES = 10
MOST = 2.0
"""How many times the requests of an undisturbed enrolment one sort of trouble may cost."""
MOST_OF_ALL = 3.0
"""And all sorts at once."""


async def enrol(disturb: Callable[[Shaky], Awaitable[None]], trouble: Trouble) -> tuple[int, Shaky, list[int]]:
    """Enrol a fleet; returns requests while it enrolled, the client, and how often each machine was switched on."""
    world = ShakyPlane(MACHINES, 0, CONFIG, OPTIONS)
    await world.start()
    try:
        world.shaky.trouble = trouble
        world.shaky.requests.clear()
        disturbing = asyncio.ensure_future(disturb(world.shaky))
        await world.announce()
        await world.until_available(MACHINES, within=1500)
        await disturbing
        world.shaky.trouble = Trouble()
        await asyncio.sleep(30)
        requests = world.shaky.requests.total()
        assert len((await world.client.list(KINDS.bmc)).items) == MACHINES
        assert len(await world.servers()) == MACHINES
        history = world.fleet.history
        ons = [
            sum(entry.details["state"] == "On" for entry in history.of(machine.identity.uuid, "power"))
            for machine in world.fleet.machines
        ]
        world.check()
        return requests, world.shaky, ons
    finally:
        await world.stop()


async def _nothing(_: Shaky) -> None:
    return


async def _crashes(shaky: Shaky) -> None:
    for pause, away in ((3.0, 10.0), (12.0, 20.0)):
        await asyncio.sleep(pause)
        await shaky.crash(away)


@pytest.mark.parametrize(
    ("disturb", "trouble"),
    [
        (_crashes, Trouble()),
        (_nothing, Trouble(watch_life=5.0)),
        (_nothing, Trouble(share=0.2)),
        (_nothing, Trouble(delay=1.0)),
        (_crashes, Trouble(share=0.2, watch_life=5.0, delay=0.2)),
    ],
    ids=["killed", "watches-cut", "failing", "slow", "all-of-it"],
)
async def test_an_enrolment_ends_the_same_whatever_the_api_does(
    disturb: Callable[[Shaky], Awaitable[None]], trouble: Trouble
) -> None:
    """Every machine is Available after one boot, with one object of each kind; requests stay within bounds."""
    calm, _, _ = await enrol(_nothing, Trouble())
    requests, shaky, ons = await enrol(disturb, trouble)
    assert set(ons) == {1}
    most = MOST_OF_ALL if trouble.share and trouble.delay else MOST
    assert requests <= most * calm, f"{requests} requests against {calm} undisturbed"
    assert (shaky.expired > 0) == (disturb is _crashes)
    assert (shaky.cut > 0) == (trouble.watch_life > 0)
