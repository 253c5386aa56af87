"""Garbage collector: dependents of deleted owners, contents of namespaces, objects of CRDs, old Events.

It is level-triggered, like a controller. At the start it queues every object that is being deleted or has an owner that
cannot be found; afterwards it listens to the store, and an event only determines which keys are queued: the object
itself, its dependents or owners, its namespace, its CRD. The queue is a set of keys, so many events about an object are
one item. A single task takes keys in batches and reconciles each from the newest state:

- an object whose owners are all gone is deleted; references to missing owners are removed from one that has others;
- an object with the finalizer `orphan` or `foregroundDeletion` loses it when its dependents are released or deleted;
- a deleted Namespace or CRD is removed when everything in it is deleted;
- an Event older than EVENT_LIFE is deleted, every SWEEP_SECONDS.

A reconciliation that fails, for example because another client changed the object, is queued again after
RETRY_SECONDS. Nothing is stored outside of the objects, so a restart continues where it was.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import structlog

from metal.apiserver.crd.crds import CLEANUP
from metal.apiserver.gc import namespace_conditions
from metal.apiserver.machinery.options import DeleteOptions, Propagation
from metal.apiserver.machinery.records import CRDS, NAMESPACES, Change, Event, ObjectKey, Owner, Record, ResourceKey
from metal.apiserver.machinery.registry import Registry
from metal.apiserver.machinery.resources import RequestContext
from metal.apiserver.machinery.status import StatusError
from metal.apiserver.machinery.users import SYSTEM
from metal.apiserver.storage.store import Store
from metal.apiserver.verbs.deletes import FOREGROUND, ORPHAN, Deleter
from metal.kube.meta.clock import Clock, timestamp

Obj = dict[str, Any]

EVENTS = ResourceKey("", "events")
EVENT_LIFE = timedelta(hours=1)
SWEEP_SECONDS = 300.0
BATCH = 64
CONTENTS = 1_024
"""Objects of a deleted namespace or CRD that one reconciliation deletes; then other keys have their turn."""
RETRY_SECONDS = 1.0

log = structlog.get_logger("metal.apiserver")


class Collector:
    """`start` follows the store, `run` does the work in one task."""

    def __init__(self, store: Store, registry: Registry, deleter: Deleter, clock: Clock) -> None:
        self._store = store
        self._registry = registry
        self._deleter = deleter
        self._clock = clock
        self._queue: dict[ObjectKey, None] = {}
        self._wake = asyncio.Event()

    def start(self) -> None:
        """Queue every object that needs work, then follow the events of the store."""
        self._store.listen(self._on_event)
        for record in self._store.records():
            self._enqueue_if_needed(record)

    def _on_event(self, event: Event) -> None:
        record = event.record
        if event.type is not Change.DELETED:
            self._enqueue_if_needed(record)
            return
        if record.key.resource == CRDS:
            # A name may have become available for another CRD.
            for other in self._store.collection(CRDS):
                self._enqueue(other.key)
        for dependent in self._store.dependents(record.uid):
            self._enqueue(dependent)
        for owner in record.owners:
            if key := self._store.by_uid(owner):
                self._enqueue(key)
        for holder in (
            ObjectKey(NAMESPACES, "", record.key.namespace),
            ObjectKey(CRDS, "", str(record.key.resource)),
        ):
            if (found := self._store.get(holder)) and found.deleting:
                self._enqueue(holder)

    def _enqueue_if_needed(self, record: Record) -> None:
        if record.deleting or not all(self._owner_exists(record, owner) for owner in record.references):
            self._enqueue(record.key)

    def _owner_exists(self, record: Record, owner: Owner) -> bool:
        key = self._store.by_uid(owner.uid)
        return key is not None and key.name == owner.name and key.namespace in ("", record.key.namespace)

    def _enqueue(self, key: ObjectKey) -> None:
        self._queue[key] = None
        self._wake.set()

    async def run(self) -> None:
        """Reconcile what is queued, until cancelled."""
        loop = asyncio.get_running_loop()
        sweep = loop.time() + SWEEP_SECONDS
        while True:
            try:
                async with asyncio.timeout_at(sweep):
                    await self._wake.wait()
            except TimeoutError:
                sweep = loop.time() + SWEEP_SECONDS
                self._enqueue_old_events()
            self._wake.clear()
            while self._queue:
                batch = [self._queue.popitem()[0] for _ in range(min(BATCH, len(self._queue)))]
                await asyncio.gather(*(self._process(key) for key in batch))

    async def _process(self, key: ObjectKey) -> None:
        try:
            await self._reconcile(key)
        except StatusError as refused:
            # Another client changed or deleted the object; the next reconciliation sees what is left to do.
            log.debug("collector.refused", key=str(key), reason=refused.reason)
            self._requeue(key, unless=refused.code == 404)
        except Exception:
            log.exception("collector.failed", key=str(key))
            self._requeue(key)

    def _requeue(self, key: ObjectKey, *, unless: bool = False) -> None:
        if not unless:
            asyncio.get_running_loop().call_later(RETRY_SECONDS, self._enqueue, key)

    async def _reconcile(self, key: ObjectKey) -> None:
        record = self._store.newest(key)
        if record is None:
            return
        if key.resource == EVENTS and not record.owners:
            await self._delete_old_event(record)
        if key.resource == CRDS and not record.deleting:
            await self._accept_names(record)
        if record.deleting:
            await self._finish(record)
        elif record.owners:
            await self._check_owners(record)

    async def _finish(self, record: Record) -> None:
        if record.key.resource == NAMESPACES:
            await self._delete_contents(record, self._within(record.key.name), _release_namespace)
            await self._report_remaining_content(record.key)
        elif CLEANUP in record.finalizers:
            definition = record.decode()["spec"]
            collection = ResourceKey(definition["group"], definition["names"]["plural"])
            held = [] if self._registry.owns(collection.group) else self._store.collection(collection)
            await self._delete_contents(record, held, lambda obj: _drop_finalizer(obj, CLEANUP))
        if ORPHAN in record.finalizers:
            await self._orphan(record)
        elif FOREGROUND in record.finalizers:
            await self._foreground(record)

    async def _accept_names(self, record: Record) -> None:
        definitions = self._registry.any_version(CRDS)
        obj, before = record.decode(), record.decode()
        if definitions is None:
            return
        definitions.strategy.prepare(obj, before)
        if obj["status"]["acceptedNames"] != before.get("status", {}).get("acceptedNames"):
            await self._change(record.key, lambda obj: definitions.strategy.prepare(obj, before))

    async def _report_remaining_content(self, key: ObjectKey) -> None:
        space = self._store.newest(key)
        if space is None or not (left := [r for r in self._within(key.name) if self._store.newest(r.key)]):
            return
        conditions = namespace_conditions.conditions(
            left, space.decode().get("status", {}).get("conditions", ()), self._clock()
        )
        if conditions != space.decode()["status"].get("conditions"):
            await self._change(key, lambda obj: obj["status"].update(conditions=conditions))

    def _within(self, namespace: str) -> list[Record]:
        return [record for key in self._store.resources() for record in self._store.collection(key, namespace)]

    async def _delete_contents(self, holder: Record, held: list[Record], release: Callable[[Obj], None]) -> None:
        left = [record for record in held if not record.deleting]
        for begin in range(0, min(len(left), CONTENTS), BATCH):
            # Each batch is one transaction of the journal and a short turn of the event loop.
            some = left[begin : min(begin + BATCH, CONTENTS)]
            await asyncio.gather(*(self._delete(record, Propagation.BACKGROUND) for record in some))
        if len(left) > CONTENTS:
            self._enqueue(holder.key)
        if not held:
            await self._change(holder.key, release)

    async def _orphan(self, owner: Record) -> None:
        for key in self._store.dependents(owner.uid):
            await self._change(key, lambda obj: _drop_owners(obj, {owner.uid}))
        await self._change(owner.key, lambda obj: _drop_finalizer(obj, ORPHAN))

    async def _foreground(self, owner: Record) -> None:
        dependents = self._store.dependents(owner.uid)
        if not any(self._blocks(key, owner.uid) for key in dependents):
            await self._change(owner.key, lambda obj: _drop_finalizer(obj, FOREGROUND))
        for key in dependents:
            self._enqueue_if_living(key)

    def _enqueue_if_living(self, key: ObjectKey) -> None:
        record = self._store.newest(key)
        if record is not None and not record.deleting:
            self._enqueue(key)

    def _blocks(self, key: ObjectKey, uid: str) -> bool:
        record = self._store.newest(key)
        if record is None:
            return False
        return any(owner.uid == uid and owner.block_owner_deletion for owner in record.references)

    async def _check_owners(self, record: Record) -> None:
        found = {owner.uid: self._owner(record, owner) for owner in record.references}
        waiting = {uid for uid, owner in found.items() if owner and owner.deleting and FOREGROUND in owner.finalizers}
        missing = {uid for uid, owner in found.items() if owner is None}
        if len(waiting) + len(missing) == len(found):
            await self._delete(record, Propagation.FOREGROUND if waiting else None)
        elif waiting or missing:
            await self._change(record.key, lambda obj: _drop_owners(obj, waiting | missing))

    def _owner(self, record: Record, owner: Owner) -> Record | None:
        """The owner of a reference, looked up as Kubernetes does: by kind and name, in the dependent's namespace."""
        resource = self._registry.kind(owner.api_version, owner.kind)
        if resource is None or (resource.namespaced and not record.key.namespace):
            # It is unknown whether such an owner exists, so the dependent stays.
            return record
        space = record.key.namespace if resource.namespaced else ""
        found = self._store.newest(ObjectKey(resource.key, space, owner.name))
        return found if found is not None and found.uid == owner.uid else None

    async def _delete(self, record: Record, propagation: Propagation | None) -> None:
        resource = self._registry.any_version(record.key.resource)
        if resource is None:
            await self._store.remove(record.key)
            return
        ctx = RequestContext(SYSTEM, resource, record.key.namespace, record.key.name)
        try:
            await self._deleter.delete(ctx, DeleteOptions(propagation=propagation, uid=record.uid))
        except StatusError as refused:
            if refused.code != 404:
                raise

    async def _change(self, key: ObjectKey, change: Callable[[Obj], None]) -> None:
        record = self._store.newest(key)
        if record is None:
            return
        obj = record.decode()
        change(obj)
        resource = self._registry.any_version(key.resource)
        held = resource is not None and resource.strategy.held(obj)
        meta = obj["metadata"]
        if "deletionTimestamp" in meta and not meta.get("finalizers") and not held:
            await self._store.remove(key)
        else:
            await self._store.write(key.resource, obj)

    def _enqueue_old_events(self) -> None:
        for record in self._store.collection(EVENTS):
            self._enqueue(record.key)

    async def _delete_old_event(self, record: Record) -> None:
        obj = record.decode()
        seen = obj.get("lastTimestamp") or obj.get("eventTime") or obj["metadata"]["creationTimestamp"]
        if str(seen) < timestamp(self._clock() - EVENT_LIFE):
            await self._delete(record, None)


def _drop_finalizer(obj: Obj, name: str) -> None:
    meta = obj["metadata"]
    meta["finalizers"] = [held for held in meta.get("finalizers", ()) if held != name]
    if not meta["finalizers"]:
        del meta["finalizers"]


def _drop_owners(obj: Obj, uids: set[str]) -> None:
    meta = obj["metadata"]
    meta["ownerReferences"] = [owner for owner in meta.get("ownerReferences", ()) if owner["uid"] not in uids]
    if not meta["ownerReferences"]:
        del meta["ownerReferences"]


def _release_namespace(obj: Obj) -> None:
    obj["spec"] = {name: value for name, value in obj.get("spec", {}).items() if name != "finalizers"}
