"""Informer: the cache becomes equal to the API and stays so under every fault."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import structlog

from metal.kube.cache.informer import Informer
from metal.kube.client.errors import Expired, Forbidden, ServerError, TooManyRequests, Unavailable
from metal.kube.meta.objects import Key
from tests.kube.client.fakeapi import FakeAPI
from tests.kube.things import THING, Thing, body, thing
from tests.kube.virtual import settle

pytestmark = pytest.mark.looptime

Seen = list[tuple[str | None, str | None]]


@asynccontextmanager
async def following(api: FakeAPI) -> AsyncIterator[tuple[Informer[Thing], Seen]]:
    """A running, synced informer and the names that its handler was told (old, new)."""
    informer = Informer(api, THING, rng=random.Random(1))
    seen: Seen = []
    informer.add_handler(lambda old, new: seen.append((name_of(old), name_of(new))))
    task = asyncio.ensure_future(informer.run())
    try:
        await informer.synced.wait()
        await settle()
        yield informer, seen
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def name_of(obj: Thing | None) -> str | None:
    return obj.metadata.name if obj is not None else None


def held(informer: Informer[Thing]) -> dict[str, str]:
    return {obj.metadata.name: obj.metadata.resource_version for obj in informer.items()}


async def test_it_begins_with_what_is_there_and_follows_changes() -> None:
    """Objects from before and after the start are told as added, changed and deleted, and are in the cache."""
    api = FakeAPI()
    await api.create(THING, body("a"))

    async with following(api) as (informer, seen):
        await api.create(THING, body("b"))
        await api.patch(THING, "b", {"spec": {"size": 2}}, "ns")
        await api.delete(THING, "a", "ns")
        await settle()

        assert seen == [(None, "a"), (None, "b"), ("b", "b"), ("a", None)]
        assert held(informer) == api.snapshot(THING)
        assert informer.get(Key("a", "ns")) is None
        assert repr(informer) == "<Informer Thing synced objects=1 version=4>"


async def test_a_late_handler_is_told_what_is_here() -> None:
    """A handler added after the sync first sees every object as added."""
    api = FakeAPI()
    await api.create(THING, body("a"))

    async with following(api) as (informer, _):
        names: list[str] = []
        informer.add_handler(lambda old, new: names.append(new.metadata.name if new else ""))

        assert names == ["a"]


async def test_a_failing_handler_blinds_nobody() -> None:
    """The error is logged with the key; other handlers and the cache go on."""
    api = FakeAPI()

    def broken(old: Thing | None, new: Thing | None) -> None:
        raise RuntimeError("oops")

    async with following(api) as (informer, _):
        names: list[str] = []
        informer.add_handler(broken)
        informer.add_handler(lambda old, new: names.append(new.metadata.name if new else ""))
        with structlog.testing.capture_logs() as logs:
            await api.create(THING, body("a"))
            await settle()

        assert names == ["a"]
        assert [(entry["event"], entry["key"]) for entry in logs] == [("informer handler failed", "ns/a")]


async def test_indexes_are_current_when_handlers_run() -> None:
    """A handler can rely on the index containing the change it is told about."""
    api = FakeAPI()
    async with following(api) as (informer, _):
        informer.add_index("size", lambda obj: [str(obj.spec.size)])
        found: list[int] = []
        informer.add_handler(lambda old, new: found.append(len(informer.by_index("size", "7"))))
        await api.create(THING, body("a", size=7))
        await settle()

        assert found == [1]


async def test_a_closed_watch_continues_where_it_was() -> None:
    """After a regular end nothing is listed again, and nothing is missed or told twice."""
    api = FakeAPI()
    async with following(api) as (informer, seen):
        await api.create(THING, body("a"))
        await settle()
        api.drop_watches()
        await api.create(THING, body("b"))
        await asyncio.sleep(1)

        assert seen == [(None, "a"), (None, "b")]
        assert api.count("list") == 1
        assert held(informer) == api.snapshot(THING)


async def test_a_cut_connection_continues_where_it_was() -> None:
    """A transport error does not cost a list."""
    api = FakeAPI()
    async with following(api) as (_, seen):
        await api.create(THING, body("a"))
        await settle()
        api.drop_watches(Unavailable("cut"))
        await api.create(THING, body("b"))
        await asyncio.sleep(1)

        assert seen == [(None, "a"), (None, "b")]
        assert api.count("list") == 1


async def test_410_lists_again_and_tells_only_real_changes() -> None:
    """What was deleted meanwhile is told as deleted; what stayed is not told at all."""
    api = FakeAPI()
    for name in ("stays", "changes", "goes"):
        await api.create(THING, body(name))
    async with following(api) as (informer, seen):
        seen.clear()
        api.drop_watches()
        await api.delete(THING, "goes", "ns")
        await api.patch(THING, "changes", {"spec": {"size": 3}}, "ns")
        await api.create(THING, body("comes"))
        api.compact()
        await asyncio.sleep(2)

        assert sorted(seen, key=str) == [("changes", "changes"), ("goes", None), (None, "comes")]
        assert held(informer) == api.snapshot(THING)
        assert api.count("list") == 2


async def test_bookmarks_spare_a_list() -> None:
    """A watch that saw only bookmarks resumes after them, beyond what was compacted."""
    api = FakeAPI()
    async with following(api) as (informer, _):
        api.version = 50
        api.bookmark()
        await settle()
        api.compact()
        api.drop_watches()
        await asyncio.sleep(2)
        await api.create(THING, body("a"))
        await settle()

        assert api.count("list") == 1
        assert held(informer) == {"a": "51"}


@pytest.mark.parametrize("error", [Unavailable("down"), ServerError("500"), Forbidden("no"), ValueError("lies")])
async def test_an_api_that_only_fails_is_not_hammered(error: Exception) -> None:
    """In an hour of errors there are few attempts, one warning, and the informer syncs when the API is back."""
    api = FakeAPI()
    broken = True

    def fail(verb: str, plural: str, name: str) -> float:
        if broken:
            raise error
        return 0.0

    api.faults.before = fail
    informer = Informer(api, THING, rng=random.Random(1))
    task = asyncio.ensure_future(informer.run())
    with structlog.testing.capture_logs() as logs:
        await asyncio.sleep(3600)
        calls = len(api.calls)
        broken = False
        await asyncio.wait_for(informer.synced.wait(), 31)
        await settle()
    task.cancel()

    assert 100 < calls < 300
    assert [entry["log_level"] for entry in logs] == ["warning", "info"]


async def test_a_list_that_works_with_a_watch_that_never_does_is_not_hammered() -> None:
    """An API that answers every watch with 410 is listed at growing intervals."""
    api = FakeAPI()

    def fail(verb: str, plural: str, name: str) -> float:
        if verb == "watch":
            raise Expired("always")
        return 0.0

    api.faults.before = fail
    async with following(api):
        await asyncio.sleep(3600)

        assert api.count("list") < 300


async def test_a_watch_that_ends_at_once_is_not_hammered() -> None:
    """A proxy that closes every watch immediately meets growing pauses."""
    api = FakeAPI()
    async with following(api):
        for _ in range(3600):
            api.drop_watches()
            await asyncio.sleep(1)

        assert api.count("watch") < 600


async def test_quiet_watches_that_something_cuts_leave_no_gaps() -> None:
    """Every watch is cut after 5 s and brings nothing: the next one follows at once, not half a minute later."""
    api = FakeAPI()
    async with following(api):
        for _ in range(20):
            await asyncio.sleep(5)
            api.drop_watches(Unavailable("the connection was cut"))

        assert api.count("watch") == 20


async def test_after_progress_the_pauses_are_short_again() -> None:
    """A change seen through the watch resets the backoff."""
    api = FakeAPI()
    api.faults.next("list", *[Unavailable("down")] * 10)
    async with following(api) as (_, seen):
        await api.create(THING, body("a"))
        await settle()
        api.drop_watches()
        await api.create(THING, body("b"))
        await asyncio.sleep(0.5)

        assert seen[-1] == (None, "b")


async def test_retry_after_is_honoured() -> None:
    """429 with Retry-After 20 means at least 20 seconds of silence."""
    api = FakeAPI()
    api.faults.next("list", TooManyRequests("slow", retry_after=20))
    informer = Informer(api, THING, rng=random.Random(1))
    task = asyncio.ensure_future(informer.run())

    await asyncio.sleep(19.9)
    early = api.count("list")
    await asyncio.sleep(0.2)
    task.cancel()

    assert (early, api.count("list")) == (1, 2)


async def test_a_retry_ends_the_wait_for_an_api_that_could_not_be_reached() -> None:
    """Who hears that the API is back follows it at once, not half a minute later."""
    api = FakeAPI()
    async with following(api) as (informer, seen):
        api.faults.next("watch", *[Unavailable("down")] * 12)
        api.drop_watches()
        await asyncio.sleep(60)
        api.faults.queued["watch"].clear()
        await api.create(THING, body("a"))
        before = list(seen)
        informer.retry()
        await asyncio.sleep(0.1)

        assert (before, seen) == ([], [(None, "a")])


async def test_a_retry_spares_no_pause_that_an_api_wants() -> None:
    """The Retry-After of a 429 counts, also when another client reaches the API."""
    api = FakeAPI()
    api.faults.next("list", TooManyRequests("slow", retry_after=20))
    informer = Informer(api, THING, rng=random.Random(1))
    task = asyncio.ensure_future(informer.run())
    await asyncio.sleep(1)
    informer.retry()
    await asyncio.sleep(18)
    task.cancel()

    assert api.count("list") == 1


async def test_one_reads_ones_own_write() -> None:
    """What is observed is in the cache at once, is told once, and the watch does not repeat or overtake it."""
    api = FakeAPI()
    await api.create(THING, body("a"))
    async with following(api) as (informer, seen):
        api.faults.watch_delay = lambda: 1.0
        await api.patch(THING, "a", {"spec": {"size": 1}}, "ns")
        written = await api.patch(THING, "a", {"spec": {"size": 2}}, "ns")
        informer.observe(written)

        assert informer.get(Key("a", "ns")) is written
        await asyncio.sleep(5)
        assert informer.get(Key("a", "ns")) is written
        assert seen == [(None, "a"), ("a", "a")]


async def test_a_late_observation_does_not_raise_the_dead() -> None:
    """A write whose answer arrives after the deletion on the watch does not bring the object back."""
    api = FakeAPI()
    await api.create(THING, body("a"))
    async with following(api) as (informer, _):
        written = await api.patch(THING, "a", {"spec": {"size": 1}}, "ns")
        await api.delete(THING, "a", "ns")
        await settle()
        informer.observe(written)

        assert informer.get(Key("a", "ns")) is None


async def test_a_write_during_a_list_survives_the_list() -> None:
    """A list that was made before the write does not take it back; one made after it decides."""
    api = FakeAPI()
    await api.create(THING, body("a"))
    async with following(api) as (informer, _):
        api.faults.after = lambda verb, plural, name: 5.0 if verb == "list" else 0.0
        api.drop_watches(ServerError("list again"))
        await asyncio.sleep(1)
        assert api.count("list") == 2
        written = await api.patch(THING, "a", {"spec": {"size": 1}}, "ns")
        created = await api.create(THING, body("b"))
        informer.observe(written)
        informer.observe(created)
        api.faults.watch_delay = lambda: 100.0
        await asyncio.sleep(10)

        assert held(informer) == {"a": "2", "b": "3"}


async def test_versions_that_are_not_numbers_are_left_to_the_watch() -> None:
    """Opaque versions cannot be compared, so observing does nothing."""
    api = FakeAPI()
    async with following(api) as (informer, _):
        informer.observe(thing("a", version="abc"))

        assert informer.items() == []


async def test_an_api_restored_from_a_backup_is_believed() -> None:
    """A new list replaces objects even when their versions went back."""
    api = FakeAPI()
    await api.create(THING, body("a"))
    await api.patch(THING, "a", {"spec": {"size": 2}}, "ns")
    async with following(api) as (informer, _):
        obj = api.objects["things", "ns", "a"]
        api.objects["things", "ns", "a"] = {**obj, "metadata": {**obj["metadata"], "resourceVersion": "1"}}
        api.version, api.log = 1, []
        api.drop_watches(Expired("history is gone"))
        await asyncio.sleep(1)

        assert held(informer) == {"a": "1"}


async def test_cancelling_closes_the_watch() -> None:
    """No watch is left open behind an informer that was stopped."""
    api = FakeAPI()
    async with following(api):
        assert api.watches == 1

    assert api.watches == 0
