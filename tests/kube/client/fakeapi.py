"""An API in memory that misbehaves on request: the peer of the kube tests, under virtual time."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from metal.kube.client.errors import AlreadyExists, ApiError, Conflict, Expired, NotFound
from metal.kube.client.protocol import EventType, Page, WatchEvent
from metal.kube.client.resources import Resource
from metal.kube.meta import mergepatch, selector_syntax
from metal.kube.meta.objects import Kind, Object

T = TypeVar("T", bound=Object)
Json = dict[str, Any]


@dataclass
class Record:
    """One change in the log from which watches are served."""

    version: int
    type: EventType
    plural: str
    obj: Json


@dataclass
class Faults:
    """What goes wrong. A hook sees (verb, plural, name) and may raise, or return seconds to wait before or after."""

    before: Callable[[str, str, str], float] = lambda verb, plural, name: 0.0
    after: Callable[[str, str, str], float] = lambda verb, plural, name: 0.0
    watch_delay: Callable[[], float] = lambda: 0.0
    queued: dict[str, list[ApiError]] = field(default_factory=dict)

    def next(self, verb: str, *errors: ApiError) -> None:
        """Let the next calls of this verb fail with these errors, in turn."""
        self.queued.setdefault(verb, []).extend(errors)


class FakeAPI:
    """Implements `client.Client` over a dictionary and a log of changes."""

    def __init__(self) -> None:
        self.faults = Faults()
        self.calls: list[tuple[str, str, str]] = []
        self.version = 0
        self.objects: dict[tuple[str, str, str], Json] = {}
        self.log: list[Record] = []
        self.compacted = 0
        self.watches = 0
        self._changed = asyncio.Event()
        self._generation = 0
        self._ending: ApiError | None = None

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        await self._enter("get", kind, name)
        return _struct(kind, self._read(kind, name, namespace))

    async def list(
        self, kind: Kind[T], namespace: str = "", *, labels: str = "", fields: str = "", resource_version: str = ""
    ) -> Page[T]:
        await self._enter("list", kind, "")
        wanted = selector_syntax.parse(labels)
        page = Page(
            tuple(
                _struct(kind, obj)
                for (plural, where, _), obj in self.objects.items()
                if plural == kind.plural
                and namespace in {"", where}
                and wanted.matches(obj["metadata"].get("labels", {}))
            ),
            str(self.version),
        )
        await asyncio.sleep(self.faults.after("list", kind.plural, ""))
        return page

    async def watch(
        self, kind: Kind[T], namespace: str = "", *, resource_version: str, labels: str = "", fields: str = ""
    ) -> AsyncIterator[WatchEvent[T]]:
        await self._enter("watch", kind, "")
        position, generation = int(resource_version), self._generation
        self.watches += 1
        try:
            while True:
                self._check(position, generation)
                if generation != self._generation:
                    return
                changed = self._changed
                for record in [record for record in self.log if record.version > position]:
                    await asyncio.sleep(self.faults.watch_delay())
                    if generation != self._generation:
                        break
                    position = record.version
                    if record.plural == kind.plural and namespace in {"", record.obj["metadata"]["namespace"]}:
                        yield WatchEvent(record.type, _struct(kind, record.obj), str(record.version))
                else:
                    await changed.wait()
                    current = generation == self._generation
                    if current and (not self.log or self.log[-1].version <= position):
                        position = self.version
                        yield WatchEvent(EventType.BOOKMARK, None, str(position))
        finally:
            self.watches -= 1

    async def create(self, kind: Kind[T], obj: Mapping[str, Any]) -> T:
        name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace", "")
        await self._enter("create", kind, name)
        if (kind.plural, namespace, name) in self.objects:
            raise AlreadyExists(f"{name} exists")
        meta = {**obj["metadata"], "namespace": namespace, "uid": f"uid-{self.version + 1}"}
        return await self._write("create", kind, {**obj, "metadata": meta}, EventType.ADDED)

    async def patch(self, kind: Kind[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        await self._enter("patch", kind, name)
        return await self._patch("patch", kind, name, patch, namespace)

    async def patch_status(self, kind: Kind[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        await self._enter("patch_status", kind, name)
        return await self._patch("patch_status", kind, name, patch, namespace)

    async def apply(self, kind: Kind[T], obj: Mapping[str, Any], *, manager: str, force: bool = True) -> T:
        name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace", "")
        if (kind.plural, namespace, name) in self.objects:
            return await self.patch(kind, name, obj, namespace)
        return await self.create(kind, obj)

    async def delete(
        self, kind: Kind[T], name: str, namespace: str = "", *, uid: str = "", resource_version: str = ""
    ) -> None:
        await self._enter("delete", kind, name)
        obj = self._read(kind, name, namespace)
        meta = obj["metadata"]
        if (uid and uid != meta["uid"]) or (resource_version and resource_version != meta["resourceVersion"]):
            raise Conflict(f"{name} is another one")
        if meta.get("finalizers"):
            marked = {**obj, "metadata": {**meta, "deletionTimestamp": "2026-01-01T00:00:00Z"}}
            await self._write("delete", kind, marked, EventType.MODIFIED)
        else:
            await self._write("delete", kind, obj, EventType.DELETED)

    async def resources(self, api_version: str) -> tuple[Resource, ...]:
        raise NotImplementedError

    async def aclose(self) -> None:
        self.drop_watches()

    def drop_watches(self, error: ApiError | None = None) -> None:
        """End every watch that is open now, with an error if given."""
        self._generation += 1
        self._ending = error
        self._wake()

    def compact(self) -> None:
        """Forget history: watches from an older version get 410."""
        self.compacted, self.log = self.version, []

    def bookmark(self) -> None:
        """Let idle watches send a bookmark."""
        self._wake()

    def count(self, verb: str) -> int:
        """How often a verb was called."""
        return sum(1 for called, _, _ in self.calls if called == verb)

    def snapshot(self, kind: Kind[Any]) -> dict[str, str]:
        """name → resourceVersion of everything that exists."""
        return {
            name: obj["metadata"]["resourceVersion"]
            for (plural, _, name), obj in self.objects.items()
            if plural == kind.plural
        }

    async def _enter(self, verb: str, kind: Kind[Any], name: str) -> None:
        self.calls.append((verb, kind.plural, name))
        if queued := self.faults.queued.get(verb):
            raise queued.pop(0)
        await asyncio.sleep(self.faults.before(verb, kind.plural, name))

    def _check(self, position: int, generation: int) -> None:
        if generation != self._generation and self._ending is not None:
            raise self._ending
        if position < self.compacted:
            raise Expired("too old resource version")

    def _read(self, kind: Kind[Any], name: str, namespace: str) -> Json:
        obj = self.objects.get((kind.plural, namespace, name))
        if obj is None:
            raise NotFound(f"{kind.plural} {name} not found")
        return obj

    async def _patch(self, verb: str, kind: Kind[T], name: str, patch: Mapping[str, Any], namespace: str) -> T:
        old = self._read(kind, name, namespace)
        meta = old["metadata"]
        wanted = patch.get("metadata", {}).get("resourceVersion")
        if wanted and wanted != meta["resourceVersion"]:
            raise Conflict(f"{name} has changed")
        new = mergepatch.apply(old, patch)
        gone = "deletionTimestamp" in meta and not new["metadata"].get("finalizers")
        return await self._write(verb, kind, new, EventType.DELETED if gone else EventType.MODIFIED)

    async def _write(self, verb: str, kind: Kind[T], obj: Json, type: EventType) -> T:
        self.version += 1
        meta = {**obj["metadata"], "resourceVersion": str(self.version)}
        obj = {**obj, "metadata": meta}
        identity = (kind.plural, meta["namespace"], meta["name"])
        if type is EventType.DELETED:
            del self.objects[identity]
        else:
            self.objects[identity] = obj
        self.log.append(Record(self.version, type, kind.plural, obj))
        self._wake()
        await asyncio.sleep(self.faults.after(verb, kind.plural, meta["name"]))
        return _struct(kind, obj)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _struct(kind: Kind[T], obj: Json) -> T:
    return msgspec.convert(obj, kind.struct)
