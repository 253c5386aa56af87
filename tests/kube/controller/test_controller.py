"""Controller: every key is handled until it is done, whatever the reconciler does."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from metal.kube.cache.informer import Informer
from metal.kube.client.errors import Conflict, ServerError, TooManyRequests, Unavailable
from metal.kube.controller.controller import Controller, Done, Requeue, Result, owner_keys
from metal.kube.controller.metrics import Metrics
from metal.kube.meta.objects import Key
from tests.kube.client.fakeapi import FakeAPI
from tests.kube.things import THING, WORLD, Thing, body, thing
from tests.kube.virtual import run, settle

pytestmark = pytest.mark.looptime

A = Key("a", "ns")


def now() -> float:
    return asyncio.get_running_loop().time()


class Script:
    """A reconciler that does one thing after another and notes when."""

    def __init__(self, *steps: Result | BaseException | Callable[[], Awaitable[Result]]) -> None:
        self.steps = list(steps)
        self.times: list[float] = []

    async def __call__(self, key: Key) -> Result:
        self.times.append(now())
        step = self.steps.pop(0) if self.steps else Done()
        if isinstance(step, BaseException):
            raise step
        if isinstance(step, Done | Requeue):
            return step
        return await step()


async def play(
    script: Script, seconds: float = 1000.0, *, deadline: float = 60.0
) -> tuple[CollectorRegistry, list[str]]:
    """Run a controller over one key for a while; returns its metrics and the levels it logged at."""
    registry = CollectorRegistry()
    controller = Controller("test", script, deadline=deadline, rng=random.Random(1), metrics=Metrics(registry))
    controller.queue.add(A)
    with structlog.testing.capture_logs() as logs:
        task = asyncio.ensure_future(controller.run())
        await asyncio.sleep(seconds)
        controller.stop()
        await task
    assert all(entry["controller"] == "test" and entry["key"] == "ns/a" for entry in logs)
    return registry, [entry["log_level"] for entry in logs]


def total(registry: CollectorRegistry, result: str) -> float | None:
    return registry.get_sample_value("controller_runtime_reconcile_total", {"controller": "test", "result": result})


async def test_done_is_not_repeated() -> None:
    """Without a change nothing is done again."""
    script = Script(Done())

    registry, logs = await play(script)

    assert (script.times, logs) == ([0.0], [])
    assert total(registry, "success") == 1
    assert registry.get_sample_value("controller_runtime_reconcile_time_seconds_count", {"controller": "test"}) == 1
    assert registry.get_sample_value("workqueue_depth", {"name": "test", "controller": "test"}) == 0


async def test_requeue_comes_back_after_the_delay() -> None:
    """Requeue(30) means again in 30 seconds."""
    script = Script(Requeue(30), Requeue(5), Done())

    registry, _ = await play(script)

    assert script.times == [0, 30, 35]
    assert total(registry, "requeue_after") == 2


async def test_an_error_is_logged_and_retried_with_growing_pauses() -> None:
    """Pauses roughly double, and success forgets them."""
    script = Script(*[RuntimeError("x")] * 5, Requeue(10), RuntimeError("y"), Done())

    registry, logs = await play(script)

    pauses = [later - earlier for earlier, later in zip(script.times, script.times[1:], strict=False)]
    for pause, ceiling in zip(pauses, [0.1, 0.2, 0.4, 0.8, 1.6], strict=False):
        assert ceiling / 2 <= pause <= ceiling
    assert pauses[6] <= 0.1
    assert total(registry, "error") == 6
    assert logs == ["error"] * 6


async def test_a_conflict_is_retried_quickly_and_quietly() -> None:
    """Losing a race is normal: no warning, and another try within 0.1 s."""
    script = Script(Conflict("changed"), Done())

    registry, logs = await play(script)

    assert script.times[1] <= 0.1
    assert logs == ["debug"]
    assert total(registry, "requeue") == 1


async def test_an_error_of_the_api_is_a_warning_without_traceback() -> None:
    """A 500 is not our bug."""
    _, logs = await play(Script(ServerError("500")))

    assert logs == ["warning"]


async def test_retry_after_of_the_api_is_honoured() -> None:
    """429 with Retry-After 20 waits 20 seconds."""
    script = Script(TooManyRequests("slow", retry_after=20))

    await play(script)

    assert script.times == [0, 20]


async def test_a_reconciler_that_hangs_is_cancelled_at_the_deadline_and_retried() -> None:
    """The watchdog names the key, frees the worker, and the key comes back."""
    script = Script(lambda: asyncio.sleep(10_000, Done()))

    registry, logs = await play(script, deadline=60)

    assert 60 <= script.times[1] <= 60.1
    assert logs == ["error"]
    assert total(registry, "error") == 1
    assert registry.get_sample_value("controller_runtime_reconcile_timeouts_total", {"controller": "test"}) == 1


async def test_a_time_out_of_the_reconcilers_own_is_an_ordinary_error() -> None:
    """TimeoutError from inside is not mistaken for the watchdog."""
    registry, _ = await play(Script(TimeoutError("BMC")))

    assert total(registry, "error") == 1
    assert registry.get_sample_value("controller_runtime_reconcile_errors_total", {"controller": "test"}) == 1
    assert registry.get_sample_value("controller_runtime_reconcile_timeouts_total", {"controller": "test"}) == 0


async def test_a_cancellation_from_inside_does_not_kill_the_worker() -> None:
    """A library that leaks CancelledError costs one retry, not a worker."""
    script = Script(*[asyncio.CancelledError()] * 10)

    registry, _ = await play(script)

    assert len(script.times) == 11
    assert total(registry, "success") == 1


async def test_stop_lets_the_call_in_progress_end() -> None:
    """A reconcile under way is finished; no further key is begun."""
    script = Script(lambda: asyncio.sleep(5, Done()))
    controller = Controller("test", script, workers=1)
    controller.queue.add(A)
    controller.queue.add(Key("b"))
    task = asyncio.ensure_future(controller.run())
    await settle()

    controller.stop()
    await task

    assert now() == 5
    assert script.times == [0]


async def test_predicate_and_map_choose_the_keys() -> None:
    """Both the old and the new object are mapped, so that a former owner hears of its loss."""
    api = FakeAPI()
    informer = Informer(api, THING, rng=random.Random(1))
    controller = Controller("test", Script())
    controller.watches(
        informer,
        lambda obj: [Key(f"size-{obj.spec.size}")],
        lambda old, new: new is None or new.metadata.name != "ignored",
    )
    await api.create(THING, body("ignored", size=5))
    await api.create(THING, body("a", size=1))
    task = asyncio.ensure_future(informer.run())
    await informer.synced.wait()
    first = await controller.queue.get()
    controller.queue.done(first)
    await api.patch(THING, "a", {"spec": {"size": 2}}, "ns")
    await settle()
    task.cancel()

    assert first == Key("size-1")
    assert {await controller.queue.get(), await controller.queue.get()} == {Key("size-1"), Key("size-2")}
    assert controller.queue.idle is False


async def test_nothing_is_handled_before_the_caches_are_synced() -> None:
    """A reconciler never sees a half-filled cache."""
    api = FakeAPI()
    for name in ("a", "b"):
        await api.create(THING, body(name))
    api.faults.after = lambda verb, plural, name: 30.0 if verb == "list" else 0.0
    informer = Informer(api, THING, rng=random.Random(1))
    script = Script()
    controller = Controller("test", script)
    controller.watches(informer)
    controller.queue.add(A)
    tasks = [asyncio.ensure_future(informer.run()), asyncio.ensure_future(controller.run())]
    await asyncio.sleep(100)
    for task in tasks:
        task.cancel()

    assert script.times == [30, 30]


def owned(kind: str, *, version: str = "test.example/v9", controller: bool = True) -> Thing:
    reference = {"apiVersion": version, "kind": kind, "name": "boss", "uid": "1", "controller": controller}
    return thing("a", ownerReferences=[reference])


def test_owner_keys_follow_the_controlling_owner_of_any_version() -> None:
    """Group and kind must fit; a cluster-scoped owner has no namespace; other references do not count."""
    assert owner_keys(THING)(owned("Thing")) == [Key("boss", "ns")]
    assert owner_keys(WORLD)(owned("World")) == [Key("boss")]
    assert owner_keys(THING)(owned("World")) == []
    assert owner_keys(THING)(owned("Thing", version="other.example/v1")) == []
    assert owner_keys(THING)(owned("Thing", version="v1")) == []
    assert owner_keys(THING)(owned("Thing", controller=False)) == []


FAULTS = st.lists(st.sampled_from(["ok", "error", "conflict", "hang", "requeue", "crash"]), max_size=30)


@given(FAULTS, st.integers(1, 3), st.lists(st.sampled_from("abcde"), min_size=1, max_size=10))
@settings(max_examples=60, deadline=None)
def test_every_object_is_reconciled_in_the_end(faults: list[str], workers: int, writes: list[str]) -> None:
    """Errors, hangs and crashes of the whole process in any order: each object's newest state is reconciled."""
    run(_converge(faults, workers, writes))


async def _converge(faults: list[str], workers: int, writes: list[str]) -> None:
    api = FakeAPI()
    crash = asyncio.Event()
    handled: dict[str, str] = {}

    async def reconcile(key: Key) -> Result:
        match faults.pop() if faults else "ok":
            case "error":
                raise RuntimeError("error")
            case "conflict":
                raise Conflict("conflict")
            case "hang":
                await asyncio.sleep(10_000)
            case "requeue":
                return Requeue(3)
            case "crash":
                crash.set()
                await asyncio.sleep(10_000)
        obj = informer.get(key)
        handled[key.name] = obj.metadata.resource_version if obj else ""
        return Done()

    ended = asyncio.ensure_future(_write_all(api, writes))
    while True:
        informer = Informer(api, THING, rng=random.Random(1))
        controller = Controller("test", reconcile, workers=workers, rng=random.Random(2))
        controller.watches(informer)
        tasks = [asyncio.ensure_future(informer.run()), asyncio.ensure_future(controller.run())]
        try:
            await asyncio.wait_for(crash.wait(), 3000)
        except TimeoutError:
            break
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        crash.clear()
    await ended
    assert handled == api.snapshot(THING)


async def _write_all(api: FakeAPI, names: list[str]) -> None:
    for name in names:
        await asyncio.sleep(2)
        if ("things", "ns", name) in api.objects:
            await api.patch(THING, name, {"spec": {"size": api.version}}, "ns")
        else:
            await api.create(THING, body(name))


@pytest.mark.parametrize(
    ("error", "longest"),
    [
        (ServerError("the answer is lost"), 10.0), (Unavailable("cut"), 10.0), (TooManyRequests("slow down"), 10.0),
        (ValueError("a bug"), 60.0),
    ],
    ids=["500", "cut", "429", "bug"],
)  # fmt: skip
async def test_errors_of_the_api_delay_an_object_for_seconds_and_its_own_for_a_minute(
    error: Exception, longest: float
) -> None:
    """Where some requests fail, some object meets many failures in a row: the next try may well succeed."""
    script = Script(*[error] * 20)
    await play(script)
    pauses = [after - before for before, after in pairwise(script.times)]
    assert longest / 2 <= max(pauses) <= longest
