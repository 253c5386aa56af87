"""The in-process client: the contract of `metal.kube.client.protocol`, straight into the backend."""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest

from metal.api.core import EVENT
from metal.api.meta import Kind, Model, ObjectMeta
from metal.apiserver.client import InProcessClient
from metal.apiserver.machinery.users import User
from metal.apiserver.server import EmbeddedAPI
from metal.kube.client.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Expired,
    Invalid,
    Malformed,
    NotFound,
    ServerError,
)
from metal.kube.client.protocol import Client, EventType
from metal.kube.controller.events import Recorder
from metal.kube.meta.clock import LoopClock
from tests.apiserver.widgets import GADGET, START, WIDGET, Api, Widget, crd, running

pytestmark = pytest.mark.looptime

T = TypeVar("T")

META = {"name": "a", "namespace": "default"}


def of(api: Api) -> Client:
    """A client; the annotation makes mypy check the contract."""
    return InProcessClient(api.backend, User("painter", groups=("system:masters",)))


async def test_objects_come_out_typed() -> None:
    """create, get, list, patch, patch_status and apply return the kind's struct with its newest state."""
    async with running() as api:
        client = of(api)
        made = await client.create(WIDGET, {"metadata": META, "spec": {"size": 1}})
        assert (made.metadata.name, made.spec.size, made.spec.note) == ("a", 1, "plain")
        assert (await client.patch(WIDGET, "a", {"spec": {"size": 2}}, "default")).metadata.generation == 2
        up = await client.patch_status(WIDGET, "a", {"status": {"phase": "Up"}}, "default")
        assert (up.status.phase, up.spec.size) == ("Up", 2)
        applied = await client.apply(WIDGET, {"metadata": META, "spec": {"note": "n"}}, manager="m")
        assert (applied.spec.size, applied.spec.note) == (2, "n")
        assert await client.get(WIDGET, "a", "default") == applied
        page = await client.list(WIDGET)
        assert page.items == (applied,)
        assert page.resource_version == applied.metadata.resource_version


async def test_values_are_taken_as_on_the_wire() -> None:
    """Structs and times may be in the mapping; what the caller changes later does not reach the store."""
    async with running() as api:
        client = of(api)
        notes = {"at": "x"}
        obj: dict[str, Any] = {"metadata": {**META, "annotations": notes}, "spec": {"size": 1}}
        await client.create(WIDGET, obj)
        notes["at"] = "changed"
        obj["spec"]["size"] = 9
        stored = await client.get(WIDGET, "a", "default")
        assert (stored.metadata.annotations["at"], stored.spec.size) == ("x", 1)
        moment = datetime(2030, 5, 6, 7, 8, 9, tzinfo=UTC)
        patched = await client.patch(WIDGET, "a", {"spec": {"note": moment}}, "default")
        assert patched.spec.note == "2030-05-06T07:08:09Z"


async def test_cluster_scoped_kinds_have_no_namespace() -> None:
    """The namespace of a cluster-scoped object is not asked for and not stored."""
    async with running() as api:
        client = of(api)
        made = await client.create(GADGET, {"metadata": {"name": "g"}})
        assert made.metadata.namespace == ""
        await client.delete(GADGET, "g")


async def test_writes_carry_the_name_of_the_user() -> None:
    """managedFields name the client's user, or the manager of an apply."""
    async with running() as api:
        await of(api).create(WIDGET, {"metadata": META, "spec": {"size": 1}})
        assert (await api.get("a"))["metadata"]["managedFields"][0]["manager"] == "painter"


NOWHERE: Kind[Widget] = type(WIDGET)("nobody.org", "v1", "Widget", "widgets", Widget)


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda c: c.get(WIDGET, "zz", "default"), NotFound),
        (lambda c: c.get(NOWHERE, "a"), NotFound),
        (lambda c: c.create(WIDGET, {"metadata": META}), AlreadyExists),
        (lambda c: c.create(WIDGET, {"metadata": {"name": "b"}}), BadRequest),
        (lambda c: c.create(WIDGET, {"metadata": {**META, "name": "b"}, "spec": {"size": -1}}), Invalid),
        (lambda c: c.patch(WIDGET, "a", {"metadata": {"resourceVersion": "1"}}, "default"), Conflict),
        (lambda c: c.patch_status(WIDGET, "zz", {}, "default"), NotFound),
        (lambda c: c.apply(WIDGET, {"metadata": META, "spec": {"colour": 1}}, manager="m"), ServerError),
        (lambda c: c.apply(WIDGET, {"metadata": META, "spec": {"size": 5}}, manager="m", force=False), Conflict),
        (lambda c: c.delete(WIDGET, "a", "default", uid="other"), Conflict),
        (lambda c: c.delete(WIDGET, "zz", "default"), NotFound),
        (lambda c: c.list(WIDGET, labels="a in ("), BadRequest),
        (lambda c: anext(c.watch(WIDGET, resource_version="1")), Expired),
    ],
)
async def test_refusals_are_the_errors_of_the_contract(act: Callable[[Client], Any], error: type[ApiError]) -> None:
    """Every Status is raised as its class, with code, reason and message."""
    async with running() as api:
        client = of(api)
        await client.create(WIDGET, {"metadata": META, "spec": {"size": 1}})
        api.backend.store.hub.log(api.ctx().resource.key).floor = 2
        with pytest.raises(error) as refused:
            await act(client)
        assert type(refused.value) is error
        assert refused.value.code >= 400
        assert refused.value.message


def _generator(events: AsyncIterator[T]) -> AsyncGenerator[T, None]:
    assert isinstance(events, AsyncGenerator)
    return events


async def test_a_watch_continues_a_page() -> None:
    """Changes after the page's version come typed, then bookmarks while nothing happens."""
    async with running() as api:
        client = of(api)
        page = await client.list(WIDGET)
        async with aclosing(_generator(client.watch(WIDGET, resource_version=page.resource_version))) as events:
            await client.create(WIDGET, {"metadata": META, "spec": {"size": 1}})
            await client.delete(WIDGET, "a", "default")
            added, deleted, bookmark = [await anext(events) for _ in range(3)]
        assert [added.type, deleted.type, bookmark.type] == [EventType.ADDED, EventType.DELETED, EventType.BOOKMARK]
        assert added.object is not None
        assert added.object.spec.size == 1
        assert bookmark.object is None
        assert bookmark.resource_version == deleted.resource_version


async def test_an_embedded_api_without_a_folder_keeps_nothing() -> None:
    """Started without a data folder it runs in virtual time, without threads, files or sockets."""
    api = EmbeddedAPI(None, LoopClock(START), rng=random.Random(1))
    await api.start()
    await api.install_crds([crd()])
    made = await api.client().create(WIDGET, {"metadata": META})
    await asyncio.sleep(3600)
    later = await api.client().create(WIDGET, {"metadata": {**META, "name": "b"}})
    born, then = made.metadata.creation_timestamp, later.metadata.creation_timestamp
    assert born is not None
    assert then is not None
    assert (then - born).total_seconds() == 3600
    await api.stop()


async def test_the_same_seed_gives_the_same_history() -> None:
    """uids and generated names come from the injected randomness, so that a run can be replayed."""
    histories = []
    for _ in range(2):
        async with running(seed=7) as api:
            made = await of(api).create(WIDGET, {"metadata": {"generateName": "w-", "namespace": "default"}})
            histories.append((made.metadata.name, made.metadata.uid))
    assert histories[0] == histories[1]


async def test_a_thousand_objects_reach_many_informers() -> None:
    """Ten watchers see every one of 1,000 creations, in order."""
    async with running() as api:
        client = of(api)
        version = (await client.list(WIDGET)).resource_version

        async def follow() -> list[str]:
            names = []
            async for event in client.watch(WIDGET, resource_version=version):
                if event.object is not None:
                    names.append(event.object.metadata.name)
                if len(names) == 1000:
                    break
            return names

        followers = [asyncio.ensure_future(follow()) for _ in range(10)]
        wanted = [f"w{number:04}" for number in range(1000)]
        for name in wanted:
            await client.create(WIDGET, {"metadata": {"name": name, "namespace": "default"}})
        assert await asyncio.gather(*followers) == [wanted] * 10


async def test_kinds_are_found_by_group_and_version() -> None:
    """Discovery gives the same as over HTTP; a group that is not served is NotFound."""
    async with running() as api:
        client = of(api)
        found = {resource.kind: resource for resource in await client.resources(WIDGET.api_version)}
        core = {resource.kind for resource in await client.resources("v1")}
        with pytest.raises(NotFound):
            await client.resources("nobody.example/v1")
    widget = found["Widget"]
    assert (widget.plural, widget.namespaced) == (WIDGET.plural, WIDGET.namespaced)
    assert {"Secret", "ConfigMap"} <= core


class Strict(Model, frozen=True, kw_only=True):
    """A struct that cannot hold any Event."""

    metadata: ObjectMeta = ObjectMeta()
    reason: int = 0


STRICT = Kind("", "v1", "Event", "events", Strict)


def event(**fields: Any) -> dict[str, Any]:
    """An Event about a widget."""
    return {"metadata": META, "involvedObject": {"kind": "Widget", "name": "a", "namespace": "default"}, **fields}


async def first_of_watch(client: Client) -> Any:
    """The first event of a watch."""
    return await anext(aiter(client.watch(STRICT, "default", resource_version="0")))


@pytest.mark.behaviour(
    "Embedded API and assembly",
    "An object that a client in process cannot read is an error of the API that names the object.",
)
@pytest.mark.parametrize(
    "act",
    [
        lambda client: client.get(STRICT, "a", "default"),
        lambda client: client.list(STRICT),
        first_of_watch,
        lambda client: client.patch(STRICT, "a", {"type": "Normal"}, "default"),
    ],
)
async def test_an_object_that_the_struct_cannot_hold_is_malformed(act: Callable[[Client], Any]) -> None:
    """The error is one of the contract, as over HTTP, and names the object."""
    async with running() as api:
        await of(api).create(EVENT, event(reason="Other"))
        with pytest.raises(Malformed, match=r"cannot read a Event: .*object default/a"):
            await act(of(api))


@pytest.mark.parametrize("value", ["\ud800", object()])
async def test_a_body_that_json_cannot_hold_is_a_bad_request(value: Any) -> None:
    """Nothing is written, and the error is one of the contract."""
    async with running() as api:
        with pytest.raises(BadRequest, match="cannot be encoded"):
            await of(api).create(WIDGET, {"metadata": META, "spec": {"note": value}})
        assert await api.names() == []


async def test_the_zero_time_of_go_can_be_read_back() -> None:
    """0001-01-01T00:00:00Z is stored with four digits; a time out of Python's range is refused as a bad value."""
    async with running() as api:
        made = await of(api).create(EVENT, event(firstTimestamp="0001-01-01T00:00:00Z"))
        assert made.first_timestamp == datetime(1, 1, 1, tzinfo=UTC)
        with pytest.raises(BadRequest, match="day out of range"):
            await of(api).create(EVENT, event(firstTimestamp="0001-01-01T00:00:00+05:00"))


@pytest.mark.behaviour(
    "Embedded API and assembly", "One Event that cannot be written does not end the others; dropped Events are counted."
)
async def test_one_event_that_cannot_be_read_back_does_not_end_the_others() -> None:
    """The Recorder drops and counts an Event whose series it cannot continue, and writes the next one."""
    async with running() as api:
        client = of(api)
        recorder = Recorder(client, STRICT, component="t", clock=LoopClock(START))
        task = asyncio.ensure_future(recorder.run())
        about = await client.create(WIDGET, {"metadata": META})
        recorder.event(about, WIDGET, "Normal", "Once", "text")
        recorder.event(about, WIDGET, "Normal", "Next", "text")
        async with asyncio.timeout(60):
            await recorder.flush()
        assert recorder.dropped == 2
        assert {event.reason for event in (await client.list(EVENT)).items} == {"Once", "Next"}
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_caller_that_retries_conflicts_at_once_lets_the_conflicting_write_become_durable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Reads show what is durable: a loop that reads and writes again must not keep the journal from answering."""
    async with running() as api:
        client = of(api)
        held: list[Callable[[BaseException | None], None]] = []
        await client.create(WIDGET, {"metadata": META})
        monkeypatch.setattr(api.backend.store._journal, "append", lambda done, *changes: held.append(done))
        other = asyncio.ensure_future(client.patch(WIDGET, "a", {"spec": {"size": 2}}, "default"))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(lambda: asyncio.get_running_loop().call_soon(held[0], None))
        conflicts = 0
        monkeypatch.undo()
        while True:
            seen = await client.get(WIDGET, "a", "default")
            body = {"metadata": {"resourceVersion": seen.metadata.resource_version}, "spec": {"size": 3}}
            try:
                await client.patch(WIDGET, "a", body, "default")
                break
            except Conflict:
                conflicts += 1
                assert conflicts < 10
        assert (await other).spec.size == 2
        assert (await client.get(WIDGET, "a", "default")).spec.size == 3
        assert conflicts > 0
