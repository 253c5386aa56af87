"""What wakes a controller that writes the status of its own objects."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from metal.kube.cache.informer import Informer
from metal.kube.controller.controller import Controller, Done, Result
from metal.kube.controller.own_writes import OwnWrites
from metal.kube.meta.objects import Key
from tests.kube.client.fakeapi import FakeAPI
from tests.kube.things import THING, Thing, body

pytestmark = pytest.mark.looptime
A = Key("a", "ns")


class Counter:
    """A reconciler that writes a status that differs each time, as a countdown does, until it has had 50 passes."""

    def __init__(self, api: FakeAPI, informer: Informer[Thing], own: OwnWrites) -> None:
        self.api, self.informer, self.own = api, informer, own
        self.passes = 0

    async def __call__(self, key: Key) -> Result:
        self.passes += 1
        if self.passes < 50:
            fresh = await self.api.patch_status(THING, "a", {"status": {"phase": f"pass {self.passes}"}}, "ns")
            self.own.note(fresh)
            self.informer.observe(fresh)
        return Done()


@asynccontextmanager
async def counting() -> AsyncIterator[Counter]:
    """The reconciler at work on one object, after its first passes."""
    api, own = FakeAPI(), OwnWrites()
    await api.create(THING, body("a"))
    informer = Informer(api, THING, rng=random.Random(1))
    counter = Counter(api, informer, own)
    controller = Controller("test", counter, rng=random.Random(1))
    controller.watches_own(informer, own)
    tasks = [asyncio.ensure_future(informer.run()), asyncio.ensure_future(controller.run())]
    await asyncio.sleep(10)
    try:
        yield counter
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_an_own_status_write_causes_no_pass() -> None:
    """One pass for the object that was there at the start, although that pass wrote."""
    async with counting() as counter:
        assert counter.passes == 1


@pytest.mark.parametrize("late", [0.0, 5.0])
async def test_an_own_write_is_known_also_when_the_watch_is_faster_than_the_answer(late: float) -> None:
    """The watch brings the version while the PATCH still waits for its answer."""
    async with counting() as counter:
        counter.api.faults.after = lambda verb, plural, name: late if verb == "patch_status" else 0.0
        await counter.api.patch(THING, "a", {"spec": {"size": 2}}, "ns")
        await asyncio.sleep(60)
        assert counter.passes == 2


@pytest.mark.parametrize(
    "change", [{"spec": {"size": 2}}, {"metadata": {"labels": {"a": "b"}}}, {"metadata": {"annotations": {"a": "b"}}}]
)
async def test_a_change_of_spec_or_metadata_causes_a_pass(change: dict[str, object]) -> None:
    """Another client's change is a cause."""
    async with counting() as counter:
        await counter.api.patch(THING, "a", change, "ns")
        await asyncio.sleep(10)
        assert counter.passes == 2


async def test_a_status_that_another_client_wrote_causes_a_pass() -> None:
    """Only own versions are known."""
    async with counting() as counter:
        await counter.api.patch_status(THING, "a", {"status": {"phase": "another"}}, "ns")
        await asyncio.sleep(10)
        assert counter.passes == 2


async def test_a_status_that_another_client_writes_during_a_pass_causes_another_pass() -> None:
    """It arrives while the pass waits for the answer to its own PATCH, and is not taken for that write."""
    async with counting() as counter:
        counter.api.faults.after = lambda verb, plural, name: 1.0 if verb == "patch_status" else 0.0
        await counter.api.patch(THING, "a", {"spec": {"size": 2}}, "ns")
        await asyncio.sleep(0.5)
        assert counter.passes == 2
        counter.api.faults.after = lambda verb, plural, name: 0.0
        await counter.api.patch_status(THING, "a", {"status": {"phase": "another"}}, "ns")
        await asyncio.sleep(60)
        assert counter.passes == 3


async def test_an_object_that_was_deleted_is_forgotten() -> None:
    """A new object of the same name has no own writes."""
    async with counting() as counter:
        assert repr(counter.own) == "<OwnWrites objects=1>"
        await counter.api.delete(THING, "a", "ns")
        await asyncio.sleep(10)
        assert repr(counter.own) == "<OwnWrites objects=0>"
