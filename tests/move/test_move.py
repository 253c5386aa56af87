"""All objects go to another API; machines notice nothing, and at no time do two managers act."""

import asyncio

import pytest

from tests.move.homes import Killed, Life, TwoHomes, two_homes
from tests.sim.plane import is_ready

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime]


async def _acts(site: TwoHomes, *, second: bool) -> None:
    """The claim can be released at this home, and another one served."""
    client, manager = (site.client2, site.manager2) if second else (site.client, site.manager)
    site.route(manager)
    await client.delete(site.kinds.claim, "c1", "default")
    await asyncio.sleep(300)
    states = {s.metadata.name: s.status.state for s in (await client.list(site.kinds.server)).items}
    assert set(states.values()) == {"Available"}


async def test_objects_with_status_and_owners_come_to_the_other_home_and_no_machine_notices() -> None:
    """The claim stays Bound, Booted and Ready; hours later nothing was switched; then it can be released there."""
    async with two_homes() as site:
        before = site.felt()
        outcome = await site.mover().run()
        await asyncio.sleep(3600)

        assert site.felt() == before
        assert outcome.moved["Server"] == 2
        assert len(outcome.stopped) == 2
        claim = await site.client2.get(site.kinds.claim, "c1", "default")
        assert is_ready(claim)
        assert (site.manager.pause.paused, site.manager2.pause.paused) == (True, False)
        await _acts(site, second=True)


async def test_what_was_moved_can_be_moved_back() -> None:
    """The old objects of the first home are not valid any more and are replaced."""
    async with two_homes() as site:
        before = site.felt()
        await site.mover().run()
        await asyncio.sleep(300)
        await site.mover(back=True).run()
        await asyncio.sleep(300)

        assert site.felt() == before
        assert (site.manager.pause.paused, site.manager2.pause.paused) == (False, True)
        await _acts(site, second=False)


async def test_killed_after_any_write_it_is_run_again_and_nothing_is_acted_on_by_both() -> None:
    """One site, a mover that dies after 1, 2, 3 … writes until one lives long enough."""
    async with two_homes() as site:
        before, writes = site.felt(), 0
        while True:
            writes += 1
            try:
                await site.mover(Life(writes)).run()
            except Killed:
                await asyncio.sleep(10)
                if (await site.client2.list(site.kinds.server)).items:
                    assert site.manager.pause.paused
                continue
            break
        await asyncio.sleep(600)

        assert writes > 20
        assert site.felt() == before
        await _acts(site, second=True)
