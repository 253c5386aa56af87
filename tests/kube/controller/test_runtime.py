"""Runtime: shared informers, orderly start and stop, crashes that surface."""

import asyncio
import random

import pytest
import structlog

from metal.kube.client.errors import Unavailable
from metal.kube.controller.controller import Done, Result
from metal.kube.controller.runtime import Runtime
from metal.kube.controller.tasks import Crashed
from metal.kube.meta.objects import Key
from tests.kube.client.fakeapi import FakeAPI
from tests.kube.things import THING, WORLD, body
from tests.kube.virtual import settle

pytestmark = pytest.mark.looptime


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_controllers_of_one_kind_share_an_informer() -> None:
    """Two controllers over one kind cost one list and one watch."""
    api = FakeAPI()
    runtime = Runtime(api, rng=random.Random(1))
    seen: list[tuple[str, Key]] = []
    for name in ("one", "two"):

        async def reconcile(key: Key, name: str = name) -> Result:
            seen.append((name, key))
            return Done()

        runtime.controller(name, reconcile).watches(runtime.informer(THING))
    await api.create(THING, body("a"))

    await runtime.start(sync_within=5)
    await settle()
    await runtime.stop()

    assert sorted(seen) == [("one", Key("a", "ns")), ("two", Key("a", "ns"))]
    assert (api.count("list"), api.count("watch"), api.watches) == (1, 1, 0)
    assert runtime.informer(THING) is not runtime.informer(THING, "ns")
    assert runtime.informer(THING) is not runtime.informer(WORLD)


async def test_starting_against_a_dead_api_says_what_it_waits_for() -> None:
    """Every 10 seconds a line names the kinds; with a limit, start gives up."""
    api = FakeAPI()
    api.faults.next("list", *[Unavailable("down")] * 100)
    runtime = Runtime(api, rng=random.Random(1))
    runtime.informer(THING)

    with structlog.testing.capture_logs() as logs, pytest.raises(TimeoutError):
        await runtime.start(sync_within=25)
    await runtime.stop()

    assert [entry["kinds"] for entry in logs if "waiting" in entry["event"]] == [["Thing"], ["Thing"]]


async def test_stop_waits_for_reconciles_and_then_cancels_them() -> None:
    """What ends within the grace period ends by itself, the rest is cut off; then nothing runs any more."""
    api = FakeAPI()
    for name in ("quick", "endless"):
        await api.create(THING, body(name))
    runtime = Runtime(api, rng=random.Random(1))
    ended: list[str] = []

    async def reconcile(key: Key) -> Result:
        try:
            await asyncio.sleep(3 if key.name == "quick" else 10_000)
        except asyncio.CancelledError:
            ended.append(f"{key.name} cut off")
            raise
        ended.append(key.name)
        return Done()

    runtime.controller("test", reconcile).watches(runtime.informer(THING))
    await runtime.start()
    await settle()
    await runtime.stop(grace=10)

    assert ended == ["quick", "endless cut off"]
    assert now() == 10
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_run_ends_when_asked() -> None:
    """Setting the stop event ends `run` without an error."""
    stop = asyncio.Event()
    runtime = Runtime(FakeAPI(), rng=random.Random(1))
    runtime.informer(THING)
    asyncio.get_running_loop().call_later(7, stop.set)

    await runtime.run(stop)

    assert now() == 7


async def test_a_crash_is_logged_and_surfaces() -> None:
    """A background task that dies ends `run` with its name and cause, and the rest is stopped."""
    api = FakeAPI()
    runtime = Runtime(api, rng=random.Random(1))
    runtime.informer(THING)

    async def die() -> None:
        await asyncio.sleep(5)
        raise ZeroDivisionError("boom")

    runtime.background("dying", die)
    with structlog.testing.capture_logs() as logs, pytest.raises(Crashed, match=r"background/dying.*boom") as caught:
        await runtime.run()

    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert [entry["task"] for entry in logs if entry["log_level"] == "error"] == ["background/dying"]
    assert (now(), api.watches) == (5, 0)


async def test_a_task_that_just_ends_is_a_crash_too() -> None:
    """What must run for ever and returns is missed, not forgotten."""
    runtime = Runtime(FakeAPI(), rng=random.Random(1))

    async def end() -> None:
        await asyncio.sleep(1)

    runtime.background("ending", end)
    with pytest.raises(Crashed, match="without being stopped"):
        await runtime.run()


async def test_cancelling_run_stops_everything() -> None:
    """Ctrl-C leaves no task and no watch behind."""
    api = FakeAPI()
    runtime = Runtime(api, rng=random.Random(1))
    runtime.informer(THING)
    task = asyncio.ensure_future(runtime.run())
    await asyncio.sleep(1)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert api.watches == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_an_informer_made_later_starts_by_itself() -> None:
    """A kind first asked for while running is followed at once."""
    api = FakeAPI()
    await api.create(THING, body("a"))
    runtime = Runtime(api, rng=random.Random(1))
    await runtime.start()

    informer = runtime.informer(THING)
    await asyncio.wait_for(informer.synced.wait(), 1)
    await runtime.stop()

    assert len(informer) == 1
