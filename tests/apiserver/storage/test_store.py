"""The store under a journal that is slow or fails."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metal.apiserver.machinery.records import ObjectKey, Record, ResourceKey, encode
from metal.apiserver.machinery.status import StatusError
from metal.apiserver.storage.journal import Change, Done, JournalError, Loaded
from metal.apiserver.storage.store import FIRST, Staged, Store
from tests.apiserver.widgets import running, widget
from tests.kube.virtual import run

THINGS = ResourceKey("", "things")


class HeldJournal:
    """A journal whose disk answers when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[tuple[Change, ...], Done]] = []
        self.closed = False

    async def open(self) -> Loaded:
        return Loaded()

    def append(self, done: Done, *changes: Change) -> None:
        self.waiting.append((changes, done))

    async def check(self) -> None:
        """Always possible."""

    async def close(self) -> None:
        self.closed = True

    def settle(self, error: BaseException | None = None) -> None:
        """Answer all that wait."""
        waiting, self.waiting = self.waiting, []
        for _, done in waiting:
            done(error)


def thing(name: str, **more: object) -> dict[str, object]:
    """An object of no particular kind."""
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, **more}


async def opened() -> tuple[Store, HeldJournal]:
    """A store on a held journal."""
    journal = HeldJournal()
    store = Store(journal)
    await store.open()
    return store, journal


@pytest.mark.looptime
async def test_nothing_is_seen_before_it_is_durable() -> None:
    """Neither reads nor watchers nor the writer hear of a write that the disk has not confirmed."""
    store, journal = await opened()
    cursor = store.hub.open(THINGS, store.version)
    writing = asyncio.ensure_future(store.write(THINGS, thing("a")))
    await asyncio.sleep(1)
    key = ObjectKey(THINGS, "", "a")
    assert store.get(key) is None
    assert cursor.take() == []
    assert not writing.done()
    assert store.newest(key) is not None
    journal.settle()
    assert (await writing).resource_version == store.version == FIRST + 1
    assert store.get(key) is not None
    assert [event.type for event in cursor.take()] == ["ADDED"]


@pytest.mark.looptime
async def test_keys_are_those_that_a_writer_must_reckon_with() -> None:
    """Staged creations count and staged removals do not, so a restore misses no object."""
    store, journal = await opened()
    first = asyncio.ensure_future(store.write(THINGS, thing("a")))
    await asyncio.sleep(0)
    journal.settle()
    await first
    waiting = [asyncio.ensure_future(store.remove(ObjectKey(THINGS, "", "a")))]
    waiting.append(asyncio.ensure_future(store.write(THINGS, thing("b"))))
    await asyncio.sleep(0)
    assert {key.name for key in store.every_key()} == {"b"}
    journal.settle()
    await asyncio.gather(*waiting)
    assert {key.name for key in store.every_key()} == {"b"}


async def replaced(store: Store) -> None:
    """Remove a and write b at once."""
    version, a = store.reserve(0), ObjectKey(THINGS, "", "a")
    old = store.newest(a)
    assert old is not None
    new = Record.parse(THINGS, encode({**thing("b"), "metadata": {"name": "b", "uid": "b", "resourceVersion": "9"}}))
    changes = [Staged(a, version + 1, old, None, old), Staged(new.key, version + 2, None, new, new)]
    newest = {change.key: (change.version, change.after) for change in changes}
    await store.replace(changes, [change.for_journal() for change in changes], newest)


@pytest.mark.looptime
async def test_a_replacement_is_one_append() -> None:
    """All of it is durable or nothing: a disk that fails leaves every object as it was."""
    store, journal = await opened()
    first = asyncio.ensure_future(store.write(THINGS, thing("a")))
    await asyncio.sleep(0)
    journal.settle()
    await first
    replacing = asyncio.ensure_future(replaced(store))
    await asyncio.sleep(0)
    assert len(journal.waiting) == 1
    journal.settle(JournalError("the disk is full"))
    with pytest.raises(StatusError, match="the disk is full") as refused:
        await replacing
    assert refused.value.code == 503
    assert [key.name for key in store.every_key()] == ["a"]


@pytest.mark.looptime
async def test_a_failed_disk_undoes_everything_staged() -> None:
    """Every waiting write fails, and the next one builds on what is really there."""
    store, journal = await opened()
    first = asyncio.ensure_future(store.write(THINGS, thing("a", n=1)))
    await asyncio.sleep(0)
    journal.settle()
    await first
    lost = [asyncio.ensure_future(store.write(THINGS, thing("a", n=n))) for n in (2, 3)]
    await asyncio.sleep(0)
    journal.settle(OSError("disk full"))
    results = await asyncio.gather(*lost, return_exceptions=True)
    assert [str(result) for result in results] == ["disk full", "disk full"]
    newest = store.newest(ObjectKey(THINGS, "", "a"))
    assert newest is not None
    assert newest.decode()["n"] == 1
    again = asyncio.ensure_future(store.write(THINGS, thing("a", n=4)))
    await asyncio.sleep(0)
    journal.settle()
    assert (await again).resource_version == FIRST + 2


@pytest.mark.looptime
async def test_a_writer_that_gave_up_does_not_undo_its_write() -> None:
    """A cancelled request may have happened; the store stays in step with the journal."""
    store, journal = await opened()
    writing = asyncio.ensure_future(store.write(THINGS, thing("a")))
    await asyncio.sleep(0)
    writing.cancel()
    await asyncio.sleep(0)
    journal.settle()
    assert store.get(ObjectKey(THINGS, "", "a")) is not None


@pytest.mark.looptime
async def test_writers_build_on_what_was_staged_before_them() -> None:
    """Two patches of one object in one disk write both count; a stale version conflicts with the staged one."""
    journal = HeldJournal()
    opening = asyncio.ensure_future(_settling(journal))
    async with running(journal) as api:
        await api.create(widget(size=1))
        opening.cancel()
        await asyncio.sleep(1)
        both = [
            asyncio.ensure_future(api.patch("a", {"metadata": {"labels": {"x": "1"}}})),
            asyncio.ensure_future(api.patch("a", {"metadata": {"labels": {"y": "2"}}})),
        ]
        await asyncio.sleep(0)
        assert len(journal.waiting) == 2
        journal.settle()
        await asyncio.gather(*both)
        assert (await api.get("a"))["metadata"]["labels"] == {"x": "1", "y": "2"}


async def _settling(journal: HeldJournal) -> None:
    while True:
        journal.settle()
        await asyncio.sleep(0.01)


NAMES = st.sampled_from(["a", "b", "c"])
STEPS = st.lists(st.tuples(st.sampled_from(["put", "drop", "settle", "fail"]), NAMES), max_size=40)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_watchers_and_readers_agree(steps: list[tuple[str, str]]) -> None:
    """Replaying the events of any history of writes, losses and removals gives exactly what a read gives."""
    run(_replay(steps))


async def _replay(steps: list[tuple[str, str]]) -> None:
    store, journal = await opened()
    cursor = store.hub.open(THINGS, store.version)
    tasks = []
    for step, name in steps:
        key = ObjectKey(THINGS, "", name)
        if step == "put":
            tasks.append(asyncio.ensure_future(store.write(THINGS, thing(name))))
        elif step == "drop" and store.newest(key) is not None:
            tasks.append(asyncio.ensure_future(store.remove(key)))
        elif step == "settle":
            journal.settle()
        elif step == "fail":
            journal.settle(OSError("no"))
        await asyncio.sleep(0)
    journal.settle()
    await asyncio.gather(*tasks, return_exceptions=True)
    seen: dict[str, int] = {}
    versions = []
    for event in cursor.take():
        versions.append(event.resource_version)
        if event.type == "DELETED":
            del seen[event.record.key.name]
        else:
            assert (event.type == "ADDED") is (event.record.key.name not in seen)
            seen[event.record.key.name] = event.record.resource_version
    assert versions == list(range(FIRST + 1, FIRST + 1 + len(versions)))
    assert seen == {r.key.name: r.resource_version for r in store.collection(THINGS)}
    assert {r.uid for r in store.records()} == {uid for uid in ("uid-a", "uid-b", "uid-c") if store.by_uid(uid)}
