"""The committed objects in memory, found by collection, namespace and name, by uid, and by the uid of an owner."""

import asyncio
from collections.abc import Iterator

from metal.apiserver.machinery.records import ObjectKey, Record, ResourceKey

STEP = 64
"""Objects that are changed in memory before the event loop runs other tasks."""

Bucket = dict[str, dict[str, Record]]


class Index:
    """Holds each object once."""

    def __init__(self) -> None:
        self.buckets: dict[ResourceKey, Bucket] = {}
        self._by_uid: dict[str, ObjectKey] = {}
        self._dependents: dict[str, set[ObjectKey]] = {}

    async def copied(self) -> "Index":
        """Another index with the same objects. Other tasks run meanwhile; none of them may change this one."""
        other = Index()
        for resource, bucket in self.buckets.items():
            other.buckets[resource] = {space: dict(objects) for space, objects in bucket.items()}
            await asyncio.sleep(0)
        other._by_uid = dict(self._by_uid)
        for number, (uid, keys) in enumerate(self._dependents.items()):
            if number % (STEP * 16) == 0:
                await asyncio.sleep(0)
            other._dependents[uid] = set(keys)
        return other

    def get(self, key: ObjectKey) -> Record | None:
        """The object, or None."""
        return self.buckets.get(key.resource, {}).get(key.namespace, {}).get(key.name)

    def by_uid(self, uid: str) -> ObjectKey | None:
        """The key of the object with this uid, or None."""
        return self._by_uid.get(uid)

    def dependents(self, uid: str) -> list[ObjectKey]:
        """Keys of the objects with this uid in their ownerReferences."""
        return sorted(self._dependents.get(uid, ()))

    def records(self) -> Iterator[Record]:
        """Every object."""
        for bucket in list(self.buckets.values()):
            for objects in list(bucket.values()):
                yield from list(objects.values())

    def put(self, record: Record) -> None:
        """Add an object that is not there."""
        key = record.key
        self.buckets.setdefault(key.resource, {}).setdefault(key.namespace, {})[key.name] = record
        self._by_uid[record.uid] = key
        for owner in record.owners:
            self._dependents.setdefault(owner, set()).add(key)

    def remove(self, record: Record) -> None:
        """Remove an object."""
        key = record.key
        space = self.buckets[key.resource][key.namespace]
        del space[key.name]
        if not space:
            del self.buckets[key.resource][key.namespace]
        self._by_uid.pop(record.uid, None)
        for owner in record.owners:
            holders = self._dependents.get(owner)
            if holders is not None:
                holders.discard(key)
                if not holders:
                    del self._dependents[owner]
