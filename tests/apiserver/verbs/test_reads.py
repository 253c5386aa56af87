"""Get, list and watch on a backend without a disk."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from itertools import count

import pytest

from metal.apiserver.machinery.options import ListOptions
from metal.apiserver.machinery.records import Change, Event, Record, ResourceKey
from metal.apiserver.machinery.results import ItemType, WatchItem
from metal.apiserver.machinery.status import StatusError
from metal.apiserver.storage.continue_tokens import ContinueToken
from metal.apiserver.storage.hub import Log
from metal.apiserver.storage.store import FIRST
from metal.apiserver.verbs.reads import BOOKMARK_SECONDS
from tests.apiserver.widgets import Api, running, seen, widget

pytestmark = pytest.mark.looptime


async def fill(api: Api, count: int) -> None:
    """Widgets w00, w01, …"""
    for number in range(count):
        await api.create(widget(f"w{number:02}", size=number))


async def take(items: AsyncIterator[WatchItem], count: int) -> list[WatchItem]:
    """The next events."""
    return [await anext(items) for _ in range(count)]


async def test_a_missing_object_is_not_found() -> None:
    """404 in kube-apiserver's words."""
    async with running() as api:
        with pytest.raises(StatusError, match=r'widgets.example.org "a" not found') as refused:
            await api.get("a")
        assert refused.value.reason == "NotFound"


async def test_a_list_is_ordered_and_within_its_namespace() -> None:
    """Objects come by namespace and name; a namespaced list holds no others."""
    async with running() as api:
        await api.create({"metadata": {"name": "other"}}, "namespaces")
        await api.create(widget("z"))
        await api.create(widget("b"))
        await api.create(widget("a"), namespace="other")
        assert await api.names() == ["b", "z", "a"]
        assert await api.names(namespace="default") == ["b", "z"]


async def test_selectors_choose() -> None:
    """Labels, metadata fields and the CRD's selectable fields select; any other field is refused by name."""
    async with running() as api:
        labelled = widget("a", note="x")
        labelled["metadata"]["labels"] = {"rack": "r1"}
        await api.create(labelled)
        await api.create(widget("b", note="y"))
        assert await api.names(labels="rack in (r1,r2)") == ["a"]
        assert await api.names(labels="!rack") == ["b"]
        assert await api.names(fields="metadata.name=b") == ["b"]
        assert await api.names(fields="spec.note!=y,metadata.namespace=default") == ["a"]
        with pytest.raises(StatusError, match=r"field label not supported: spec.size"):
            await api.names(fields="spec.size=1")
        for bad in ({"labels": "a in (b"}, {"fields": "metadata.name"}):
            with pytest.raises(StatusError) as refused:
                await api.names(**bad)
            assert refused.value.code == 400


async def test_pages_show_one_moment() -> None:
    """What is created or deleted between two pages changes neither the pages to come nor their resourceVersion."""
    async with running() as api:
        await fill(api, 5)
        ctx = api.ctx()
        first = await api.backend.list(ctx, ListOptions(limit=2))
        assert first.remaining == 3
        await api.delete("w03")
        await api.create(widget("w031"))
        second = await api.backend.list(ctx, ListOptions(limit=2, continue_=first.continue_))
        third = await api.backend.list(ctx, ListOptions(limit=2, continue_=second.continue_))
        names = [record.key.name for page in (first, second, third) for record in page.records]
        assert names == ["w00", "w01", "w02", "w03", "w04"]
        assert first.resource_version == second.resource_version == third.resource_version
        assert third.continue_ == ""


async def test_a_page_that_cannot_be_continued_is_expired() -> None:
    """When history no longer reaches the version, the answer is 410 with a token for the newest one; garbage is 400."""
    async with running(history=4) as api:
        await fill(api, 3)
        token = (await api.backend.list(api.ctx(), ListOptions(limit=1))).continue_
        for number in range(8):
            await api.create(widget(f"x{number}"))
        with pytest.raises(StatusError) as refused:
            await api.backend.list(api.ctx(), ListOptions(limit=1, continue_=token))
        assert (refused.value.code, refused.value.reason) == (410, "Expired")
        following = refused.value.body["metadata"]["continue"]
        rest = await api.backend.list(api.ctx(), ListOptions(limit=3, continue_=following))
        assert [record.key.name for record in rest.records] == ["w01", "w02", "x0"]
        with pytest.raises(StatusError, match="continue key is not valid"):
            await api.backend.list(api.ctx(), ListOptions(limit=1, continue_="garbage"))


async def test_a_page_of_the_future_is_too_early() -> None:
    """A continue token from before the restore of an older data folder is refused with 504."""
    async with running() as api:
        with pytest.raises(StatusError, match="Too large resource version"):
            await api.backend.list(api.ctx(), ListOptions(continue_=str(ContinueToken(9_999, "a"))))


async def test_versions_of_a_list() -> None:
    """A known version is fine, a future one is too early, an exact old one is looked up, a word is refused."""
    async with running() as api:
        await fill(api, 2)
        now = api.backend.store.version
        assert len(await api.names(resource_version="0")) == 2
        assert len(await api.names(resource_version=str(now - 1), match="NotOlderThan")) == 2
        with pytest.raises(StatusError, match="Too large resource version") as late:
            await api.names(resource_version=str(now + 5))
        assert (late.value.code, late.value.details["retryAfterSeconds"]) == (504, 1)
        assert len(await api.names(resource_version=str(now - 1), match="Exact")) == 1
        with pytest.raises(StatusError, match="invalid syntax"):
            await api.names(resource_version="x")


async def test_a_watch_continues_a_list_without_a_gap() -> None:
    """Every change after the list's version arrives once, in order, with its version."""
    async with running() as api:
        await fill(api, 1)
        version = str(api.backend.store.version)
        await api.patch("w00", {"spec": {"size": 7}})
        async with aclosing(api.watch(resource_version=version)) as items:
            await api.create(widget("b"))
            await api.delete("w00")
            got = await take(items, 3)
        assert [seen(item) for item in got] == [("MODIFIED", "w00"), ("ADDED", "b"), ("DELETED", "w00")]
        versions = [item.resource_version for item in got]
        assert versions == sorted(set(versions))
        deleted = got[2].record
        assert deleted is not None
        assert deleted.decode()["metadata"]["resourceVersion"] == str(versions[2])
        assert deleted.decode()["spec"]["size"] == 7


async def test_a_watch_from_nowhere_begins_with_what_is() -> None:
    """Without a version, or with 0, a watch first shows the present objects."""
    async with running() as api:
        await fill(api, 2)
        for version in ("", "0"):
            items = api.watch(resource_version=version)
            assert [seen(item) for item in await take(items, 2)] == [("ADDED", "w00"), ("ADDED", "w01")]


async def test_initial_events_end_with_a_bookmark() -> None:
    """sendInitialEvents streams the present and then says that it is complete (KEP-3157)."""
    async with running() as api:
        await fill(api, 1)
        items = api.watch(initial_events=True, bookmarks=True)
        first, end = await take(items, 2)
        assert seen(first) == ("ADDED", "w00")
        assert (end.type, end.initial_end, end.resource_version) == (ItemType.BOOKMARK, True, api.backend.store.version)


async def test_through_a_selector_objects_come_and_go() -> None:
    """What starts to match is ADDED, what stops is DELETED in its last matching state, the rest is not seen."""
    async with running() as api:
        await fill(api, 1)
        items = api.watch(resource_version=str(api.backend.store.version), labels="hot=yes")
        await api.create(widget("cold"))
        await api.patch("w00", {"metadata": {"labels": {"hot": "yes"}}})
        await api.patch("w00", {"spec": {"size": 4}})
        await api.patch("w00", {"metadata": {"labels": None}})
        await api.delete("w00")
        await api.patch("cold", {"metadata": {"labels": {"hot": "yes"}}})
        got = await take(items, 4)
        assert [seen(item) for item in got] == [
            ("ADDED", "w00"),
            ("MODIFIED", "w00"),
            ("DELETED", "w00"),
            ("ADDED", "cold"),
        ]
        gone = got[2].record
        assert gone is not None
        assert gone.labels == {"hot": "yes"}
        assert gone.resource_version == got[2].resource_version


async def test_an_idle_watch_tells_how_far_it_has_come() -> None:
    """Bookmarks carry the newest version even if only other kinds changed, so that a reconnect expires late."""
    async with running() as api:
        items = api.watch(resource_version=str(api.backend.store.version), bookmarks=True)
        waiting = asyncio.ensure_future(anext(items))
        await asyncio.sleep(1)
        await api.create({"metadata": {"name": "c"}}, "configmaps")
        first = await waiting
        second = await anext(items)
        assert first.type is second.type is ItemType.BOOKMARK
        assert second.resource_version == api.backend.store.version
        assert asyncio.get_running_loop().time() >= 2 * BOOKMARK_SECONDS


async def changing(api: Api, every: float) -> None:
    """Change an object that no selector of these tests matches, for ever."""
    for number in count():
        await asyncio.sleep(every)
        await api.patch("w00", {"spec": {"size": number}})


@pytest.mark.behaviour(
    "Embedded API and assembly",
    "A filtered watch gets a bookmark about every 45 seconds, also while other objects change.",
)
@pytest.mark.parametrize(("every", "timeout"), [(0.05, 100), (1.0, 700), (40.0, 700)])
async def test_a_filtered_watch_gets_bookmarks_although_other_objects_change(every: float, timeout: int) -> None:
    """In 700 seconds it gets fifteen, each as new as the last change that it has passed; it ends at its timeout."""
    async with running(history=100) as api:
        await fill(api, 1)
        other = asyncio.ensure_future(changing(api, every))
        begun, start = asyncio.get_running_loop().time(), api.backend.store.version
        items = api.watch(fields="metadata.name=w99", resource_version=str(start), bookmarks=True, timeout=timeout)
        got = [(item.type, item.resource_version) async for item in items]
        other.cancel()
        assert {kind for kind, _ in got} == {ItemType.BOOKMARK}
        assert len(got) == timeout // BOOKMARK_SECONDS
        versions = [version for _, version in got]
        assert versions == sorted(versions)
        passed = (asyncio.get_running_loop().time() - begun - 2 * BOOKMARK_SECONDS) / every
        assert versions[-1] >= start + int(passed)


async def test_a_watch_ends_at_its_timeout_and_with_the_server() -> None:
    """timeoutSeconds ends a watch; so does stopping, at once."""
    async with running() as api:
        begun = asyncio.get_running_loop().time()
        assert [
            item async for item in api.watch(resource_version=str(FIRST), timeout=7) if item.type is ItemType.DELETED
        ] == []
        assert asyncio.get_running_loop().time() - begun == pytest.approx(7)
        waiting = asyncio.ensure_future(anext(api.watch(resource_version=str(api.backend.store.version)), None))
        await asyncio.sleep(0.1)
        api.backend.store.hub.close()
        assert await asyncio.wait_for(waiting, 0.1) is None


async def test_versions_before_the_start_are_expired() -> None:
    """A watch from before what the log holds, or from the future, is refused."""
    async with running(history=4) as api:
        old = str(api.backend.store.version)
        await fill(api, 10)
        with pytest.raises(StatusError, match="too old resource version") as refused:
            await anext(api.watch(resource_version=old))
        assert refused.value.code == 410
        with pytest.raises(StatusError) as late:
            await anext(api.watch(resource_version="9999"))
        assert late.value.code == 504


async def test_a_slow_watcher_is_told_to_list_again() -> None:
    """A watcher that falls behind the log gets 410; it neither delays other watchers nor costs memory."""
    async with running(history=4) as api:
        items = api.watch(resource_version=str(api.backend.store.version))
        await api.create(widget("first"))
        assert seen(await anext(items)) == ("ADDED", "first")
        await fill(api, 20)
        with pytest.raises(StatusError) as refused:
            await take(items, 21)
        assert refused.value.code == 410


async def test_an_ended_watch_leaves_nothing_behind() -> None:
    """Closing the iterator releases its cursor."""
    async with running() as api:
        async with aclosing(api.watch()) as items:
            await api.create(widget("a"))
            await anext(items)
            assert "watchers=1" in repr(api.backend.store.hub.log(api.ctx().resource.key))
        assert "watchers=0" in repr(api.backend.store.hub.log(api.ctx().resource.key))


def test_a_log_keeps_the_newest_events() -> None:
    """The floor rises as events fall out; a cursor at the floor misses nothing."""
    log = Log(limit=8, floor=100)
    body = b'{"metadata":{"name":"a"}}'
    record = Record.parse(ResourceKey("", "things"), body)
    for version in range(101, 160):
        log.publish(Event(Change.MODIFIED, record, record, version))
    assert log.floor >= 100 + 59 - 10
    assert log.open(log.floor).take()[0].resource_version == log.floor + 1
    with pytest.raises(StatusError):
        log.open(log.floor - 1)
