"""Two moves at once: one runs, the other is refused, and the Lease of an ended move expires."""

import asyncio
from datetime import UTC, datetime

import pytest

from metal.api.core import LEASE
from metal.api.kinds import kinds
from metal.kube.client.errors import Unavailable
from metal.move.homes import Home, Refused
from metal.move.lock import LEASE_DURATION, NAME, RENEW_DEADLINE, RENEW_INTERVAL, run_locked
from tests.kube.client.fakeapi import FakeAPI

pytestmark = pytest.mark.looptime
SPACE = "metal-system"


def clock() -> datetime:
    """A fixed clock: times in a Lease are informative only."""
    return datetime(2026, 1, 1, tzinfo=UTC)


class Sites:
    """Two homes, and the moves that run on them."""

    def __init__(self) -> None:
        self.apis = (FakeAPI(), FakeAPI())
        self.homes = tuple(Home(f"home{n}", api, kinds()) for n, api in enumerate(self.apis))
        self.working = 0

    async def move(self, name: str, seconds: float = 60.0) -> str:
        """Some work; two at a time are a failure."""

        async def work() -> str:
            self.working += 1
            assert self.working == 1
            try:
                await asyncio.sleep(seconds)
            finally:
                self.working -= 1
            return name

        return await run_locked(self.homes, work, identity=name, clock=clock)

    @property
    def leases(self) -> int:
        """The number of Leases."""
        return sum((LEASE.plural, SPACE, NAME) in api.objects for api in self.apis)


async def test_a_second_move_is_refused_while_the_first_works_and_may_begin_after_it() -> None:
    """The first is not disturbed, and deletes its Leases."""
    sites = Sites()
    first = asyncio.ensure_future(sites.move("first"))
    await asyncio.sleep(1)
    with pytest.raises(Refused, match="another metalctl move is running at home0"):
        await sites.move("second")
    assert await first == "first"
    assert sites.leases == 0
    assert await sites.move("second", 1.0) == "second"


async def test_two_that_begin_in_the_same_moment_never_both_work() -> None:
    """Also with source and target exchanged: at most one gets both Leases."""
    sites, back = Sites(), Sites()
    back.homes = (sites.homes[1], sites.homes[0])
    ends = await asyncio.gather(sites.move("there"), back.move("back"), return_exceptions=True)
    assert sum(isinstance(end, Refused) for end in ends) >= 1
    assert sites.leases == 0


async def test_a_move_that_was_killed_is_followed_after_some_seconds() -> None:
    """Its Lease is no longer renewed."""
    sites = Sites()
    body = {"metadata": {"name": NAME, "namespace": SPACE}, "spec": {"holderIdentity": "dead"}}
    await sites.apis[0].create(LEASE, body)
    began = asyncio.get_running_loop().time()
    assert await sites.move("second", 1.0) == "second"
    assert asyncio.get_running_loop().time() - began <= LEASE_DURATION + RENEW_INTERVAL
    assert sites.leases == 0


@pytest.mark.parametrize("home", [0, 1])
async def test_a_move_that_nobody_hears_of_stops_before_another_may_begin(home: int) -> None:
    """Its work is cancelled within RENEW_DEADLINE seconds of its last renewal."""
    sites = Sites()
    first = asyncio.ensure_future(sites.move("first", 600.0))
    await asyncio.sleep(1)

    def away(verb: str, plural: str, name: str) -> float:
        raise Unavailable("no answer")

    sites.apis[home].faults.before = away
    await asyncio.sleep(RENEW_DEADLINE + RENEW_INTERVAL)
    assert sites.working == 0
    with pytest.raises(Refused, match="another one may have started"):
        await first


async def test_a_lease_that_was_taken_away_ends_the_move() -> None:
    """A manually deleted Lease allows another move to start."""
    sites = Sites()
    first = asyncio.ensure_future(sites.move("first", 600.0))
    await asyncio.sleep(1)
    await sites.apis[0].delete(LEASE, NAME, SPACE)
    await asyncio.sleep(RENEW_INTERVAL + 1)
    assert sites.working == 0
    with pytest.raises(Refused):
        await first
