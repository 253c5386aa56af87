"""Every object, in memory and in the journal, under one increasing resourceVersion."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import structlog

from metal.apiserver.hub import Hub
from metal.apiserver.journal import Change as JournalChange
from metal.apiserver.journal import Journal
from metal.apiserver.records import Change, Event, ObjectKey, Record, ResourceKey, encode

log = structlog.get_logger("metal.apiserver")

Listener = Callable[[Event], None]
Bucket = dict[str, dict[str, Record]]


class Store:
    """Reads see what is committed; writers see what was staged before them, so that none is lost between.

    A write returns only after the journal made it durable, and watchers hear of it at the same moment. When the
    journal fails, everything staged fails and is forgotten.
    """

    def __init__(self, journal: Journal, *, history: int = 5_000) -> None:
        self.hub = Hub(history)
        self._journal = journal
        self._buckets: dict[ResourceKey, Bucket] = {}
        self._staged: dict[ObjectKey, tuple[int, Record | None]] = {}
        self._by_uid: dict[str, ObjectKey] = {}
        self._dependents: dict[str, set[ObjectKey]] = {}
        self._listeners: list[Listener] = []
        self._version = self._next = 1

    async def open(self) -> None:
        """Load what the journal remembers. Raises JournalError."""
        loaded = await self._journal.open()
        for change in loaded.objects:
            if change.body is not None:
                self._index(Record.parse(ResourceKey(change.group, change.plural), change.body))
        self._version = self._next = max(1, loaded.resource_version)
        self.hub.start(self._version)

    async def close(self) -> None:
        """End every watch and finish the journal."""
        self.hub.close()
        await self._journal.close()

    @property
    def version(self) -> int:
        """The newest committed resourceVersion."""
        return self._version

    def listen(self, listener: Listener) -> None:
        """Call `listener` with every committed event, in order."""
        self._listeners.append(listener)

    # --- reading what is committed -----------------------------------------------------------------------------

    def get(self, key: ObjectKey) -> Record | None:
        """The committed object, or None."""
        return self._buckets.get(key.resource, {}).get(key.namespace, {}).get(key.name)

    def collection(self, resource: ResourceKey, namespace: str = "") -> list[Record]:
        """Committed objects of a collection, ordered by namespace and name."""
        bucket = self._buckets.get(resource, {})
        spaces = [namespace] if namespace else sorted(bucket)
        return [objects[name] for space in spaces if (objects := bucket.get(space)) for name in sorted(objects)]

    def resources(self) -> list[ResourceKey]:
        """Collections that hold at least one object."""
        return [key for key, bucket in self._buckets.items() if any(bucket.values())]

    def by_uid(self, uid: str) -> ObjectKey | None:
        """Where the object with this uid lives, or None."""
        return self._by_uid.get(uid)

    def dependents(self, uid: str) -> list[ObjectKey]:
        """Objects that name this uid as their owner."""
        return sorted(self._dependents.get(uid, ()))

    def records(self) -> Iterator[Record]:
        """Every committed object."""
        for bucket in list(self._buckets.values()):
            for objects in list(bucket.values()):
                yield from list(objects.values())

    # --- writing -----------------------------------------------------------------------------------------------

    def newest(self, key: ObjectKey) -> Record | None:
        """What a writer must build upon: the staged version if there is one, else the committed one."""
        staged = self._staged.get(key)
        return staged[1] if staged is not None else self.get(key)

    async def write(self, resource: ResourceKey, obj: dict[str, Any]) -> Record:
        """Store a new version of an object. Stages before the first await."""
        version = self._next + 1
        obj["metadata"]["resourceVersion"] = str(version)
        record = Record.parse(resource, encode(obj))
        return await self._stage(record.key, version, record, record)

    async def remove(self, key: ObjectKey) -> Record:
        """Remove an object; returns its last state, stamped with the version of the removal."""
        current = self.newest(key)
        if current is None:
            raise KeyError(key)
        version = self._next + 1
        return await self._stage(key, version, None, current.at_version(version))

    async def _stage(self, key: ObjectKey, version: int, after: Record | None, shown: Record) -> Record:
        before = self.newest(key)
        self._next = version
        self._staged[key] = (version, after)
        done = asyncio.get_running_loop().create_future()

        def settle(error: BaseException | None) -> None:
            if error is None:
                self._commit(key, version, after, shown, before)
            else:
                self._forget()
            if done.done():
                return
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

        body = None if after is None else after.body
        self._journal.append(
            JournalChange(key.resource.group, key.resource.plural, key.namespace, key.name, version, body), settle
        )
        await done
        return shown

    def _commit(self, key: ObjectKey, version: int, after: Record | None, shown: Record, before: Record | None) -> None:
        if self._staged.get(key, (0, None))[0] == version:
            del self._staged[key]
        if before is not None:
            self._unindex(before)
        if after is not None:
            self._index(after)
        self._version = version
        kind = Change.DELETED if after is None else Change.ADDED if before is None else Change.MODIFIED
        event = Event(kind, shown, before, version)
        self.hub.publish(key.resource, event)
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:
                # The write is done; whoever cannot follow it must not keep others from hearing of it.
                log.exception("store.listener_failed", key=str(key))

    def _forget(self) -> None:
        self._staged.clear()
        self._next = self._version

    def _index(self, record: Record) -> None:
        key = record.key
        self._buckets.setdefault(key.resource, {}).setdefault(key.namespace, {})[key.name] = record
        self._by_uid[record.uid] = key
        for owner in record.owners:
            self._dependents.setdefault(owner, set()).add(key)

    def _unindex(self, record: Record) -> None:
        key = record.key
        space = self._buckets[key.resource][key.namespace]
        del space[key.name]
        if not space:
            del self._buckets[key.resource][key.namespace]
        self._by_uid.pop(record.uid, None)
        for owner in record.owners:
            holders = self._dependents.get(owner)
            if holders is not None:
                holders.discard(key)
                if not holders:
                    del self._dependents[owner]
