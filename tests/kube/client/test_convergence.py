"""Informer under random faults: in the end the cache is what the API holds, and handlers saw every step of it."""

import asyncio
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from metal.kube.cache.informer import Informer
from metal.kube.client.errors import ApiError, Conflict, Expired, ServerError, Unavailable
from metal.kube.client.protocol import EventType
from metal.kube.meta.objects import Key, key_of
from tests.kube.client.fakeapi import FakeAPI
from tests.kube.things import THING, Thing, body
from tests.kube.virtual import run, settle

STEP = st.sampled_from(
    [
        "write",
        "write",
        "write",
        "delete",
        "drop",
        "cut",
        "fail",
        "compact",
        "sleep",
        "restart",
        "slow",
        "relist",
        "race",
    ]
)
STEPS = st.lists(st.tuples(STEP, st.sampled_from("abc"), st.sampled_from([0.0, 0.3, 7.0])), max_size=50)


class Mirror:
    """A cache made of nothing but what the handler is told; it refuses what contradicts it."""

    def __init__(self) -> None:
        self.held: dict[Key, Thing] = {}
        self.newest: dict[Key, int] = {}
        self.lies: list[AssertionError] = []

    def handle(self, old: Thing | None, new: Thing | None) -> None:
        try:
            self.take(old, new)
        except AssertionError as exc:  # the informer logs what a handler raises; the test must see it
            self.lies.append(exc)

    def take(self, old: Thing | None, new: Thing | None) -> None:
        present = new or old
        assert present is not None
        key = key_of(present)
        assert self.held.get(key) == old
        if new is None:
            del self.held[key]
            return
        version = int(new.metadata.resource_version)
        assert version > self.newest.get(key, 0), "went back in time"
        self.newest[key] = version
        self.held[key] = new


class Scene:
    """An API, an informer that can be restarted, and a writer that observes its own writes."""

    def __init__(self, seed: int) -> None:
        self.api = FakeAPI()
        self.rng = random.Random(seed)
        self.writes: list[asyncio.Future[None]] = []
        self.start()

    def start(self) -> None:
        self.mirror = Mirror()
        self.informer = Informer(self.api, THING, rng=random.Random(self.rng.random()))
        self.informer.add_index("size", lambda obj: [str(obj.spec.size)])
        self.informer.add_handler(self.mirror.handle)
        self.task = asyncio.ensure_future(self.informer.run())

    async def step(self, step: str, name: str, number: float) -> None:
        match step:
            case "write":
                self.writes.append(asyncio.ensure_future(self.write(name)))
                await settle()
            case "delete" if ("things", "ns", name) in self.api.objects:
                await self.api.delete(THING, name, "ns")
            case "sleep":
                await asyncio.sleep(number)
            case "restart":
                self.task.cancel()
                await asyncio.gather(self.task, return_exceptions=True)
                self.start()
            case "relist":
                self.delay("list", 5.0)
                self.api.drop_watches(ServerError("list again"))
                await asyncio.sleep(1)
            case "race":
                self.delay("patch", 3.0)
                await self.step("write", name, number)
                await self.step("delete", name, number)
            case _:
                self.disturb(step, number)

    def disturb(self, step: str, number: float) -> None:
        match step:
            case "drop":
                self.api.drop_watches()
            case "cut":
                self.api.drop_watches(self.error())
            case "fail":
                self.api.faults.next(self.rng.choice(["list", "watch"]), self.error(), self.error())
            case "compact":
                self.api.compact()
            case "slow":
                self.api.faults.watch_delay = lambda: number
                self.delay(self.rng.choice(["list", "patch", "create"]), number)

    def delay(self, verb: str, seconds: float) -> None:
        self.api.faults.after = lambda called, plural, name: seconds if called == verb else 0.0

    async def write(self, name: str) -> None:
        if ("things", "ns", name) in self.api.objects:
            written = await self.api.patch(THING, name, {"spec": {"size": self.rng.randrange(9)}}, "ns")
        else:
            written = await self.api.create(THING, body(name, size=self.rng.randrange(9)))
        if self.rng.random() < 0.5:
            self.informer.observe(written)
            held = self.informer.get(key_of(written))
            if held is None:
                assert self.api.snapshot(THING).get(name) != written.metadata.resource_version
            else:
                assert _version(held) >= _version(written)

    def error(self) -> ApiError:
        return self.rng.choice([Unavailable("cut"), Expired("old"), ServerError("500"), Conflict("odd")])


def _version(obj: Thing) -> int:
    return int(obj.metadata.resource_version)


async def check(steps: list[tuple[str, str, float]], seed: int) -> None:
    scene = Scene(seed)
    for step in steps:
        await scene.step(*step)
        assert {key_of(obj): obj for obj in scene.informer.items()} == scene.mirror.held
    await asyncio.gather(*scene.writes)
    await asyncio.sleep(500)
    informer, api = scene.informer, scene.api
    assert {obj.metadata.name: obj.metadata.resource_version for obj in informer.items()} == api.snapshot(THING)
    for obj in informer.items():
        assert obj in informer.by_index("size", str(obj.spec.size))
    assert scene.mirror.lies == []
    assert not scene.task.done()


@given(STEPS, st.integers(0, 1000))
@settings(max_examples=100, deadline=None)
def test_the_cache_converges_to_the_api(steps: list[tuple[str, str, float]], seed: int) -> None:
    """Drops, errors, 410, slow answers, restarts and own writes in any order: nothing is lost, kept or turned back."""
    run(check(steps, seed))


def test_the_mirror_notices_lies() -> None:
    """The check itself fails when a handler is told something out of order."""
    api = FakeAPI()

    async def tell() -> None:
        older = await api.create(THING, body("a"))
        newer = await api.patch(THING, "a", {"spec": {"size": 1}}, "ns")
        mirror = Mirror()
        mirror.handle(None, newer)
        mirror.handle(newer, older)
        assert [str(lie).splitlines()[0] for lie in mirror.lies] == ["went back in time"]

    run(tell())
    assert [record.type for record in api.log] == [EventType.ADDED, EventType.MODIFIED]
