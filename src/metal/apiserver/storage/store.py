"""Every object, in memory and in the journal, under one increasing resourceVersion.

A write has three steps. It is staged: it gets the next resourceVersion, and writers that come later see it as the
newest state of the object (`newest`). It is appended to the journal, which makes it durable, many writes in one
transaction. It is committed: the indexes are updated, readers see it (`get`, `collection`), the hub sends it to
watchers, and listeners (garbage collector, authorizer, registry of CRDs) are called, all without an await in between.
The journal confirms writes in the order of their versions, so events are published in that order too.

Reads never wait and see committed objects only. A caller that reads `newest` and writes without an await in between
cannot lose an update of another one. When the journal fails, all staged writes fail and are dropped, because later ones
may build on the lost ones.

Memory holds each object once, as JSON bytes (`Record`), with indexes by collection, namespace and name, by uid, and by
the uid of owners. Older states of a collection are not stored: `collection_at` undoes the events of the hub after a
version.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import structlog

from metal.apiserver.machinery.records import Change, Event, ObjectKey, Record, ResourceKey, encode, order
from metal.apiserver.machinery.status import unavailable
from metal.apiserver.storage.hub import Hub
from metal.apiserver.storage.index import STEP, Index
from metal.apiserver.storage.journal import Change as JournalChange
from metal.apiserver.storage.journal import Journal, JournalError

log = structlog.get_logger("metal.apiserver")

FIRST = 2
"""Version of an empty store. Version 1 is already out of the history, as in a cluster whose cache starts later."""

GAP = 1_000_000_000
"""Versions that a restore leaves out: more than a store writes between a backup and its restore, so that no version
that a client has seen is given a second time. It is what etcd recommends (--bump-revision)."""

Listener = Callable[[Event], None]
Newest = tuple[int, Record | None]
"""Version of a staged change, and the object after it."""


class Staged(NamedTuple):
    """One change that waits for the journal. shown: the record that watchers receive."""

    key: ObjectKey
    version: int
    before: Record | None
    after: Record | None
    shown: Record

    def for_journal(self) -> JournalChange:
        """The change as the journal writes it."""
        resource, namespace, name = self.key
        body = None if self.after is None else self.after.body
        return JournalChange(resource.group, resource.plural, namespace, name, self.version, body)


class Store:
    """Reads see committed objects; writers see what was staged before them, so that no update is lost.

    A write returns after the journal has made it durable; watchers receive it at the same time.
    """

    def __init__(self, journal: Journal, *, history: int = 5_000) -> None:
        self.hub = Hub(history)
        self._journal = journal
        self._index = Index()
        self._bulk = asyncio.Lock()
        self._touched: set[ObjectKey] = set()
        self._staged: dict[ObjectKey, Newest] = {}
        self._listeners: list[Listener] = []
        self._version = self._next = FIRST
        self.failure = ""
        """Why the last write could not be made durable; empty when it was."""
        self.was_empty = True
        """Whether nothing was stored at the start."""

    async def open(self) -> None:
        """Load the content of the journal. Raises JournalError."""
        loaded = await self._journal.open()
        self.was_empty = not loaded.resource_version
        for number, change in enumerate(loaded.objects):
            if number % STEP == 0:
                await asyncio.sleep(0)
            if change.body is not None:
                self._index.put(Record.parse(ResourceKey(change.group, change.plural), change.body))
        self._version = self._next = max(FIRST, loaded.resource_version)
        self.hub.start(self._version)

    async def check(self) -> None:
        """Find out whether writes can be made durable now; `failure` says so."""
        try:
            await self._journal.check()
        except JournalError as error:
            self._note(str(error))
        else:
            self._note("")

    def _note(self, failure: str) -> None:
        if failure and not self.failure:
            log.error("store.not_writable", error=failure)
        elif self.failure and not failure:
            log.info("store.writable_again")
        self.failure = failure

    async def close(self) -> None:
        """End every watch and close the journal."""
        self.hub.close()
        await self._journal.close()

    @property
    def version(self) -> int:
        """The newest committed resourceVersion."""
        return self._version

    def listen(self, listener: Listener) -> None:
        """Call `listener` with every committed event, in order."""
        self._listeners.append(listener)

    # --- committed objects -------------------------------------------------------------------------------------

    def get(self, key: ObjectKey) -> Record | None:
        """The committed object, or None."""
        return self._index.get(key)

    def collection(self, resource: ResourceKey, namespace: str = "") -> list[Record]:
        """Committed objects of a collection, in the order of `records.order`."""
        bucket = self._index.buckets.get(resource, {})
        spaces = [namespace] if namespace else sorted(bucket, key=lambda space: f"{space}/")
        return [objects[name] for space in spaces if (objects := bucket.get(space)) for name in sorted(objects)]

    def collection_at(self, resource: ResourceKey, namespace: str, version: int) -> list[Record]:
        """The collection at a version. Raises StatusError 410 when the history does not reach back to it."""
        changed: dict[tuple[str, str], Record | None] = {}
        for event in self.hub.log(resource).since(version):
            # The state before the first change after the version is the state at the version.
            changed.setdefault((event.record.key.namespace, event.record.key.name), event.previous)
        now = self.collection(resource, namespace)
        if not changed:
            return now
        stayed = [r for r in now if (r.key.namespace, r.key.name) not in changed]
        undone = [r for r in changed.values() if r is not None and (not namespace or r.key.namespace == namespace)]
        return sorted(stayed + undone, key=order)

    def resources(self) -> list[ResourceKey]:
        """Collections that hold at least one object."""
        return [key for key, bucket in self._index.buckets.items() if any(bucket.values())]

    def by_uid(self, uid: str) -> ObjectKey | None:
        """The key of the object with this uid, or None."""
        return self._index.by_uid(uid)

    def dependents(self, uid: str) -> list[ObjectKey]:
        """Keys of the objects with this uid in their ownerReferences."""
        return self._index.dependents(uid)

    def records(self) -> Iterator[Record]:
        """Every committed object."""
        return self._index.records()

    def every_key(self) -> set[ObjectKey]:
        """Keys of every object that a writer must consider: committed, or staged before it."""
        staged = {key for key, (_, after) in self._staged.items() if after is not None}
        return {key for record in self.records() if self.newest(key := record.key) is not None} | staged

    async def refresh(self, resource: ResourceKey, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Replace every object of a collection by `change(object)` in memory: no write, no event, the same versions.

        The next write of an object makes its change durable. Other tasks run after every STEP objects; an object that
        is written meanwhile is left as its writer made it.
        """
        async with self._bulk:
            for number, record in enumerate(self.collection(resource)):
                if number and number % STEP == 0:
                    await asyncio.sleep(0)
                if self.get(record.key) is not record:
                    continue
                obj = record.decode()
                changed = change(obj)
                if changed != obj:
                    key = record.key
                    self._index.buckets[resource][key.namespace][key.name] = replace(record, body=encode(changed))

    # --- writing -----------------------------------------------------------------------------------------------

    def newest(self, key: ObjectKey) -> Record | None:
        """The version that a write must be based on: the staged one if there is one, else the committed one."""
        staged = self._staged.get(key)
        return staged[1] if staged is not None else self.get(key)

    async def write(self, resource: ResourceKey, obj: dict[str, Any]) -> Record:
        """Store a new version of an object. Stages before the first await. Raises StatusError 503."""
        change = self._stage_write(resource, obj)
        await self._append([change])
        return change.shown

    async def remove(self, key: ObjectKey) -> Record:
        """Remove an object; returns its last state, stamped with the version of the removal. Raises StatusError 503."""
        change = self._stage_removal(key)
        await self._append([change])
        return change.shown

    async def present(self) -> dict[ObjectKey, Record]:
        """The newest version of every object that a writer must consider; other tasks may change it meanwhile."""
        found: dict[ObjectKey, Record] = {}
        for number, key in enumerate([*(record.key for record in self.records()), *self._staged]):
            if number % (STEP * 16) == 0:
                await asyncio.sleep(0)
            if (record := self.newest(key)) is not None:
                found[key] = record
        return found

    def reserve(self, beyond: int) -> int:
        """The version before the first one of a replacement: GAP after every version that any client may know."""
        return max(self._next, beyond) + GAP

    def track(self) -> set[ObjectKey]:
        """A set that gets the key of every object that is written from now on, until the next call."""
        self._touched = set()
        return self._touched

    async def replace(
        self, changes: Sequence[Staged], journal: Sequence[JournalChange], newest: Mapping[ObjectKey, Newest]
    ) -> None:
        """Write and remove many objects at once, all of them or none. Stages before the first await.

        The history begins behind them, so every watch is expired. changes: in the order of their versions, which begin
        after `reserve`, each based on the newest version; journal, newest: the same changes. Raises StatusError 503.
        """
        if changes:
            self._next = changes[-1].version
            self._staged.update(newest)
            await self._append(changes, journal, bulk=True)

    def _stage_write(self, resource: ResourceKey, obj: dict[str, Any]) -> Staged:
        version = self._next + 1
        obj["metadata"]["resourceVersion"] = str(version)
        record = Record.parse(resource, encode(obj))
        return self._stage(Staged(record.key, version, self.newest(record.key), record, record))

    def _stage_removal(self, key: ObjectKey) -> Staged:
        current = self.newest(key)
        if current is None:
            raise KeyError(key)
        version = self._next + 1
        return self._stage(Staged(key, version, current, None, current.at_version(version)))

    def _stage(self, change: Staged) -> Staged:
        self._touched.add(change.key)
        self._next = change.version
        self._staged[change.key] = (change.version, change.after)
        return change

    async def _append(
        self, changes: Sequence[Staged], journal: Sequence[JournalChange] | None = None, *, bulk: bool = False
    ) -> None:
        done = asyncio.get_running_loop().create_future()

        def settle(error: BaseException | None) -> Coroutine[Any, Any, None] | None:
            if error is not None:
                self._forget()
                if not done.done():
                    done.set_exception(error)
                return None
            if bulk:
                return self._commit_all(changes, done)
            for change in changes:
                self._commit(change)
            if not done.done():
                done.set_result(None)
            return None

        self._journal.append(settle, *(journal or [change.for_journal() for change in changes]))
        try:
            await done
        except JournalError as lost:
            self._note(str(lost))
            raise unavailable(str(lost)) from lost
        self._note("")

    def _commit(self, change: Staged) -> None:
        if self._staged.get(change.key, (0, None))[0] == change.version:
            del self._staged[change.key]
        if change.before is not None:
            self._index.remove(change.before)
        if change.after is not None:
            self._index.put(change.after)
        self._version = change.version
        kind = Change.DELETED if change.after is None else Change.ADDED if change.before is None else Change.MODIFIED
        event = Event(kind, change.shown, change.before, change.version)
        self.hub.publish(change.key.resource, event)
        self._tell(event)

    def _tell(self, event: Event) -> None:
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:
                # The write is durable; a listener that fails must not prevent the others from being called.
                log.exception("store.listener_failed", key=str(event.record.key))

    async def _commit_all(self, changes: Sequence[Staged], done: "asyncio.Future[None]") -> None:
        """Apply changes to a copy of the index, and exchange it at once: no read sees a part of them."""
        async with self._bulk:
            index = await self._index.copied()
            for number, change in enumerate(changes):
                if number and number % STEP == 0:
                    await asyncio.sleep(0)
                if change.before is not None:
                    index.remove(change.before)
                if change.after is not None:
                    index.put(change.after)
            self._index = index
            self._version = changes[-1].version
            history = self.hub.restart(self._version)
        for number, change in enumerate(changes):
            if number and number % STEP == 0:
                del history[-STEP:]  # in steps too: freeing thousands of objects takes its time
                await asyncio.sleep(0)
            if self._staged.get(change.key, (0, None))[0] == change.version:
                del self._staged[change.key]
            kind = Change.MODIFIED if change.after is not None else Change.DELETED
            self._tell(Event(kind, change.shown, change.before, change.version))
        if not done.done():
            done.set_result(None)

    def _forget(self) -> None:
        self._touched.update(self._staged)
        self._staged.clear()
        self._next = self._version
