"""Holding the controllers back and letting them go on, as a standby, a pause and a stop do."""

import asyncio
import contextlib
import random

import pytest

from metal.kube.controller.controller import Done, Requeue, Result
from metal.kube.controller.runtime import Runtime
from metal.kube.controller.tasks import Crashed
from metal.kube.meta.objects import Key
from tests.kube.client.fakeapi import FakeAPI
from tests.kube.things import THING, body
from tests.kube.virtual import settle

pytestmark = pytest.mark.looptime


class Bench:
    """A runtime with one controller that notes what it does."""

    def __init__(self, *, takes: float = 0.0, again: float = 0.0) -> None:
        self.api = FakeAPI()
        self.runtime = Runtime(self.api, rng=random.Random(1))
        self.takes, self.again = takes, again
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.inside = 0
        controller = self.runtime.controller("test", self._reconcile, workers=2, deadline=1000)
        controller.watches(self.runtime.informer(THING))

    async def _reconcile(self, key: Key) -> Result:
        self.begun.append(key.name)
        self.inside += 1
        try:
            await asyncio.sleep(self.takes)
        finally:
            self.inside -= 1
        self.ended.append(key.name)
        return Requeue(self.again) if self.again else Done()

    async def add(self, *names: str) -> None:
        for name in names:
            await self.api.create(THING, body(name))


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_a_runtime_that_is_held_from_the_start_fills_its_caches_and_does_nothing() -> None:
    """A standby knows every object and touches none; released, it reconciles each of them at once."""
    bench = Bench()
    await bench.add("a", "b")
    await bench.runtime.hold("standby")
    await bench.runtime.start(sync_within=5)
    await asyncio.sleep(30)
    assert (len(bench.runtime.informer(THING)), bench.begun, bench.runtime.working) == (2, [], False)

    bench.runtime.release("standby")
    await settle()
    assert (sorted(bench.ended), bench.runtime.working) == (["a", "b"], True)
    await bench.runtime.stop()


async def test_workers_run_only_when_no_reason_holds_them() -> None:
    """Two reasons hold; the release of one changes nothing, and neither does one that never held."""
    bench = Bench()
    await bench.runtime.start()
    await bench.runtime.hold("standby")
    await bench.runtime.hold("move")
    await bench.add("a")
    bench.runtime.release("standby")
    bench.runtime.release("unheard-of")
    await settle()
    assert bench.begun == []
    assert bench.runtime.holds == {"move"}

    bench.runtime.release("move")
    await settle()
    assert bench.ended == ["a"]
    await bench.runtime.stop()


async def test_a_hold_waits_for_reconciles_and_cancels_what_is_left() -> None:
    """Within the grace period they end by themselves; after it they are cut off."""
    bench = Bench(takes=5)
    await bench.add("a")
    await bench.runtime.start()
    await settle()
    await bench.runtime.hold("move", grace=10)
    assert (bench.ended, now()) == (["a"], 5)

    bench.runtime.release("move")
    await settle()
    await bench.runtime.hold("move", grace=2)
    assert (bench.begun, bench.ended, bench.inside, now()) == (["a", "a"], ["a"], 0, 7)
    await bench.runtime.stop()


async def test_a_hold_without_grace_overtakes_one_that_waits() -> None:
    """A leader that drains and then loses its Lease cuts off what is still in progress."""
    bench = Bench(takes=50)
    await bench.add("a")
    await bench.runtime.start()
    await settle()
    patient = asyncio.ensure_future(bench.runtime.hold("stopping", grace=100))
    await asyncio.sleep(1)
    await bench.runtime.hold("standby", grace=0)
    await patient
    assert (bench.ended, bench.inside, now()) == ([], 0, 1)
    await bench.runtime.stop()


async def test_a_hold_whose_caller_went_away_holds_all_the_same() -> None:
    """Its grace period is kept, and the release afterwards finds workers that can begin again."""
    bench = Bench(takes=50)
    await bench.add("a")
    await bench.runtime.start()
    await settle()
    caller = asyncio.ensure_future(bench.runtime.hold("move", grace=3))
    await asyncio.sleep(1)
    caller.cancel()
    await asyncio.sleep(3)
    assert (bench.inside, bench.runtime.working) == (0, False)

    bench.runtime.release("move")
    await asyncio.sleep(60)
    assert bench.ended == ["a"]
    await bench.runtime.stop()


async def test_a_release_while_reconciles_still_end_waits_for_them() -> None:
    """No key is in an old worker and in a new one at the same time."""
    bench = Bench(takes=5)
    await bench.add("a")
    await bench.runtime.start()
    await settle()
    holding = asyncio.ensure_future(bench.runtime.hold("move", grace=100))
    await asyncio.sleep(1)
    bench.runtime.release("move")
    await settle()
    assert bench.inside == 1
    await holding
    await asyncio.sleep(4.5)
    assert (bench.begun, bench.inside) == (["a", "a"], 1)
    await bench.runtime.stop()


async def test_what_changed_and_was_due_meanwhile_is_done_after_the_release() -> None:
    """Delays of before the hold are forgotten: after it every object comes at once, once, and deleted ones do not."""
    bench = Bench(again=1000.0)
    await bench.add("a", "b")
    await bench.runtime.start()
    await settle()
    await bench.runtime.hold("standby")
    await bench.api.delete(THING, "b", "ns")
    await bench.add("c")
    await asyncio.sleep(5)
    bench.begun.clear()
    bench.runtime.release("standby")
    await asyncio.sleep(10)
    assert sorted(bench.begun) == ["a", "c"]
    await bench.runtime.stop()


async def test_memories_are_dropped_before_workers_begin_anew_and_not_before() -> None:
    """Another process may have acted during the hold; at the first start there is nothing to forget."""
    bench = Bench()
    forgotten: list[int] = []
    bench.runtime.on_resume(lambda: forgotten.append(len(bench.begun)))
    await bench.add("a")
    await bench.runtime.start()
    await settle()
    assert forgotten == []
    await bench.runtime.hold("standby")
    bench.runtime.release("standby")
    await settle()
    assert (forgotten, bench.begun) == ([1], ["a", "a"])
    await bench.runtime.stop()


async def test_a_worker_that_does_not_end_is_a_crash() -> None:
    """A reconcile that swallows its cancellation does not block: hold raises, and the process can end."""
    bench = Bench()
    enough = asyncio.Event()

    async def stubborn(key: Key) -> Result:
        while not enough.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await enough.wait()
        return Done()

    bench.runtime.controller("stubborn", stubborn, deadline=1000).watches(bench.runtime.informer(THING))
    await bench.add("a")
    await bench.runtime.start()
    await settle()
    with pytest.raises(Crashed, match="did not end"):
        await bench.runtime.hold("standby", grace=0)
    assert now() == 2
    enough.set()
    await bench.runtime.stop()


async def test_a_hold_is_no_crash() -> None:
    """Workers that end because they were told to do not end the process."""
    bench = Bench()
    stop = asyncio.Event()
    running = asyncio.ensure_future(bench.runtime.run(stop))
    await settle()
    await bench.runtime.hold("standby", grace=0)
    await asyncio.sleep(5)
    bench.runtime.release("standby")
    await asyncio.sleep(5)
    assert bench.runtime.working
    stop.set()
    await running
