"""Watches: where they begin, what selectors make of changes, how they end, and that nothing is lost."""

import asyncio
import json
from typing import Any

import pytest

from tests.conformance.api import Api, Obj, Watch
from tests.conformance.test_list import fill, labelled, version

INITIAL = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
END = "k8s.io/initial-events-end"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
PARTIAL = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}


def seen(event: Obj) -> tuple[str, str]:
    """Type and name of an event."""
    return event["type"], event["object"]["metadata"].get("name", "")


async def test_a_watch_goes_on_where_a_list_ended(api: Api) -> None:
    """Every change after the list's version comes once, in order, with the object as it was then."""
    then = await fill(api, "a")
    async with api.watch(api.path(), resourceVersion=then) as watch:
        await fill(api, "b")
        changed = (await api.patch(api.path(name="a"), {"spec": {"size": 1}})).ok()
        await api.delete(api.path(name="a"))

        events = await watch.many(3)

    assert [seen(event) for event in events] == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert events[1]["object"] == changed
    gone = events[2]["object"]
    assert gone["spec"] == {"size": 1, "note": "plain"}
    assert int(gone["metadata"]["resourceVersion"]) > int(changed["metadata"]["resourceVersion"])


@pytest.mark.parametrize("query", [{}, {"resourceVersion": "0"}])
async def test_a_watch_from_nowhere_begins_with_what_is(api: Api, query: dict[str, str]) -> None:
    """Without a version, and with 0, what exists comes first as ADDED."""
    await fill(api, "a", "b")
    async with api.watch(api.path(), **query) as watch:
        present = await watch.many(2)
        await fill(api, "c")

        assert seen(await watch.next()) == ("ADDED", "c")
    assert sorted(seen(event) for event in present) == [("ADDED", "a"), ("ADDED", "b")]


async def test_through_a_selector_objects_come_and_go(api: Api) -> None:
    """An object that stops matching is DELETED with its last matching state; one that begins to match is ADDED."""
    then = await fill(api, "a")
    async with api.watch(api.path(), resourceVersion=then, labelSelector="on=yes") as watch:
        await api.patch(api.path(name="a"), {"metadata": {"labels": {"on": "yes"}}})
        await api.patch(api.path(name="a"), {"spec": {"size": 4}})
        left = (await api.patch(api.path(name="a"), {"metadata": {"labels": {"on": "no"}}, "spec": {"size": 5}})).ok()
        await api.delete(api.path(name="a"))
        (await api.create(api.path(), labelled("b", on="yes"))).ok()

        events = await watch.many(4)

    assert [seen(e) for e in events] == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "b")]
    gone = events[2]["object"]
    assert gone["metadata"]["labels"] == {"on": "yes"}
    assert gone["spec"]["size"] == 4
    assert gone["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]


async def test_one_object_is_watched_by_its_name(api: Api) -> None:
    """The field selector metadata.name hears of that object alone."""
    then = await fill(api, "a")
    async with api.watch(api.path(), resourceVersion=then, fieldSelector="metadata.name=b") as watch:
        await fill(api, "b")
        await api.delete(api.path(name="a"))
        await api.delete(api.path(name="b"))

        assert [seen(event) for event in await watch.many(2)] == [("ADDED", "b"), ("DELETED", "b")]


async def test_a_watch_ends_at_its_timeout(api: Api) -> None:
    """timeoutSeconds ends the stream without an error."""
    then = await fill(api)
    async with asyncio.timeout(10), api.watch(api.path(), resourceVersion=then, timeoutSeconds="1") as watch:
        with pytest.raises(StopAsyncIteration):
            await watch.next()


NEEDS_ETCD = (
    "kube-apiserver streams lists only on etcd 3.5.13 or newer (3.4.31), and refuses with 500 on Debian's 3.4.23"
)


async def begun(api: Api, watch: Watch) -> Obj | None:
    """The first event of a streamed list, or None where this etcd makes kube-apiserver refuse it."""
    first = await watch.next()
    if first["type"] == "ERROR" and api.is_kube:
        assert "RequestWatchProgress is disabled" in first["object"]["message"]
        return None
    return first


@pytest.mark.differs(NEEDS_ETCD)
@pytest.mark.parametrize("query", [{}, {"resourceVersion": "0"}])
async def test_a_list_is_streamed(api: Api, query: dict[str, str]) -> None:
    """sendInitialEvents sends what is, then a bookmark that says so, then what changes."""
    then = await fill(api, "a", "b")
    async with api.watch(api.path(), **INITIAL, **query) as watch:
        first = await begun(api, watch)
        if first is None:
            return
        second, end = await watch.many(2)
        await fill(api, "c")
        after = await watch.next()

    assert sorted(seen(event) for event in (first, second)) == [("ADDED", "a"), ("ADDED", "b")]
    assert end["type"] == "BOOKMARK"
    assert end["object"]["metadata"]["annotations"] == {END: "true"}
    assert int(end["object"]["metadata"]["resourceVersion"]) >= int(then)
    assert seen(after) == ("ADDED", "c")


async def test_no_initial_events_when_they_are_declined(api: Api) -> None:
    """With sendInitialEvents=false a watch starts after the version."""
    then = await fill(api, "a")
    query = {**INITIAL, "sendInitialEvents": "false", "resourceVersion": then}
    async with api.watch(api.path(), **query) as watch:
        await fill(api, "b")

        assert seen(await watch.next()) == ("ADDED", "b")


NEWER = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"sendInitialEvents": "true"}, [f"Forbidden: {NEWER}"]),
        ({"sendInitialEvents": "false", "resourceVersion": "1"}, [f"Forbidden: {NEWER}"]),
        (
            {"sendInitialEvents": "true", "resourceVersionMatch": "Exact", "resourceVersion": "1"},
            [f"Forbidden: {NEWER}", 'Unsupported value: "Exact": supported values: "NotOlderThan"'],
        ),
        (
            {"resourceVersionMatch": "NotOlderThan", "resourceVersion": "1"},
            ["Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"],
        ),
        ({"continue": "abc"}, ["Forbidden: resourceVersionMatch is forbidden when continue is provided"]),
    ],
)
async def test_options_that_make_no_sense(api: Api, query: dict[str, str], told: list[str]) -> None:
    """A watch with options that contradict each other is Invalid before it begins."""
    async with api.watch(api.path(), **query) as watch:
        refused = (await watch.next())["object"]

    assert (refused["code"], refused["reason"]) == (422, "Invalid")
    assert [cause["message"] for cause in refused["details"]["causes"]] == told
    assert {cause["field"] for cause in refused["details"]["causes"]} == {"resourceVersionMatch"}


@pytest.mark.parametrize(
    ("query", "code", "told"),
    [
        ({"labelSelector": "a in"}, 400, "unable to parse requirement: found '' expected: '('"),
        ({"fieldSelector": "spec.size=1"}, 400, "field label not supported: spec.size"),
        ({"timeoutSeconds": "abc"}, 400, 'strconv.ParseInt: parsing "abc": invalid syntax'),
        (
            {"resourceVersion": "abc"}, 500,
            'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax',
        ),
    ],
)  # fmt: skip
async def test_a_watch_that_cannot_begin(api: Api, query: dict[str, str], code: int, told: str) -> None:
    """What cannot be read is refused, not watched."""
    async with api.watch(api.path(), **query) as watch:
        refused = (await watch.next())["object"]

    assert (refused["code"], refused["message"]) == (code, told)


@pytest.mark.differs(
    "after a restore of an older data folder the embedded API refuses the watch; kube-apiserver does not answer it"
)
async def test_a_watch_from_the_future(api: Api) -> None:
    """A version that is still to come is refused, so that a client which knows more than the server lists again."""
    async with api.watch(api.path(), resourceVersion="999999999", timeoutSeconds="1") as watch:
        if api.is_kube:
            with pytest.raises(StopAsyncIteration):
                await watch.next()
            return
        refused = (await watch.next())["object"]

    assert (refused["code"], refused["reason"]) == (504, "Timeout")


async def test_a_version_that_is_forgotten_has_expired(api: Api) -> None:
    """A watch from before everything that is remembered gets 410 and is told the oldest version that would do."""
    # The CRD of the widgets is younger than version 1, and nothing of before is kept for them.
    async with api.watch(api.path(), resourceVersion="1") as watch:
        refused = (await watch.next())["object"]

    assert (refused["code"], refused["reason"]) == (410, "Expired")
    assert refused["message"].startswith("too old resource version: 1 (")


async def test_fifty_watchers_hear_everything_in_order(api: Api) -> None:
    """Each of many watchers gets every change, in the order of the versions."""
    then = await fill(api)
    expected = [("ADDED", f"w{number}") for number in range(8)]

    async def follow(started: asyncio.Semaphore) -> list[tuple[str, str]]:
        async with api.watch(api.path(), resourceVersion=then) as watch:
            started.release()
            return [seen(event) for event in await watch.many(len(expected))]

    started = asyncio.Semaphore(0)
    async with asyncio.TaskGroup() as group:
        watchers = [group.create_task(follow(started)) for _ in range(50)]
        for _ in watchers:
            await started.acquire()
        await fill(api, *(name for _, name in expected))

    assert all(watcher.result() == expected for watcher in watchers)


async def test_a_slow_watcher_loses_nothing(api: Api) -> None:
    """A slow watcher receives all events, in order."""
    then = await fill(api, "a")
    async with api.watch(api.path(), resourceVersion=then) as watch:
        for size in range(60):
            (await api.patch(api.path(name="a"), {"spec": {"size": size + 1, "labels": {"x": "y" * 2000}}})).ok()

        events = await watch.many(60)

    assert [event["object"]["spec"]["size"] for event in events] == list(range(1, 61))


async def streamed(http: Api, headers: dict[str, str], **query: str) -> list[Obj]:
    """Events of a short watch in another form."""
    answer = await http.way.request(
        "GET", http.path(), query={"watch": "1", "timeoutSeconds": "1", **query}, headers=headers
    )
    assert answer.code == 200, answer.body
    return _objects(answer.body)


def _objects(body: Any) -> list[Obj]:
    return [json.loads(line) for line in body["raw"].splitlines()] if "raw" in body else [body]


async def test_a_watch_as_a_table(http: Api) -> None:
    """Each event is a table of one row; only the first names the columns."""
    then = await fill(http)
    await fill(http, "a", "b")

    first, second = await streamed(http, TABLE, resourceVersion=then)

    assert (first["type"], first["object"]["kind"]) == ("ADDED", "Table")
    assert [column["name"] for column in first["object"]["columnDefinitions"]] == ["Name", "Age"]
    assert second["object"]["columnDefinitions"] is None
    assert [event["object"]["rows"][0]["cells"][0] for event in (first, second)] == ["a", "b"]
    assert first["object"]["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


async def test_a_watch_of_metadata_alone(http: Api) -> None:
    """PartialObjectMetadata brings names and labels, and no spec."""
    then = await fill(http)
    await fill(http, "a", "b")

    events = await streamed(http, PARTIAL, resourceVersion=then)

    assert [event["object"]["metadata"]["name"] for event in events] == ["a", "b"]
    assert {event["object"]["kind"] for event in events} == {"PartialObjectMetadata"}
    assert all("spec" not in event["object"] for event in events)


async def test_versions_of_lists_and_watches_are_one_order(api: Api) -> None:
    """A watch from a list's version neither repeats nor misses what the list showed, under steady writing."""
    await fill(api, "a")

    async def write() -> None:
        for size in range(25):
            (await api.patch(api.path(name="a"), {"spec": {"size": size + 1}})).ok()

    writing = asyncio.create_task(write())
    await asyncio.sleep(0)
    listed = await api.get(api.path())
    seen_then = listed.body["items"][0]["spec"].get("size", 0)
    sizes: list[int] = []
    async with api.watch(api.path(), resourceVersion=version(listed)) as watch:
        while not sizes or sizes[-1] < 25:
            if not sizes and seen_then == 25:
                break
            sizes.append((await watch.next())["object"]["spec"]["size"])
    await writing

    assert sizes == list(range(seen_then + 1, 26))
