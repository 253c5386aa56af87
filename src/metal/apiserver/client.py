"""The Kubernetes client of `metal.kube` for a backend in the same process, without sockets."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import Any, TypeVar

import msgspec

from metal.apiserver.backend import Backend
from metal.apiserver.machinery.options import (
    DeleteOptions,
    FieldValidation,
    ListOptions,
    PatchType,
    Propagation,
    WatchOptions,
    WriteOptions,
)
from metal.apiserver.machinery.records import Record, encode
from metal.apiserver.machinery.resources import RequestContext
from metal.apiserver.machinery.status import StatusError
from metal.apiserver.machinery.users import User
from metal.apiserver.verbs.shaping import at_version
from metal.kube.client import wire
from metal.kube.client.errors import ApiError, Conflict, NotFound, from_status
from metal.kube.client.http import Observer
from metal.kube.client.protocol import EventType, Page, WatchEvent
from metal.kube.client.resources import Resource, split_api_version
from metal.kube.meta.objects import Kind, Object

T = TypeVar("T", bound=Object)

HOST = "in-process"
"""Host of the requests in metrics."""
STEP = 200
"""Objects of a list that are decoded before other tasks run."""
_plain = msgspec.json.Decoder().decode


class InProcessClient:
    """Implements `metal.kube.client.protocol.Client`. user: of all requests; its name is also the field manager."""

    def __init__(self, backend: Backend, user: User, *, observer: Observer | None = None) -> None:
        self._backend = backend
        self._user = user
        self._observer = observer or (lambda method, host, code, seconds: None)
        self._codecs: dict[type, wire.Codec[Any]] = {}

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        """Read one object, always the newest version."""
        with self._request("GET"):
            return self._decode(kind, await self._backend.get(self._context(kind, namespace, name)))

    async def list(
        self, kind: Kind[T], namespace: str = "", *, labels: str = "", fields: str = "", resource_version: str = ""
    ) -> Page[T]:
        """Read all objects of a kind, of one namespace when given."""
        options = ListOptions(labels=labels, fields=fields, resource_version=resource_version)
        with self._request("GET"):
            listing = await self._backend.list(self._context(kind, namespace), options)
        items = []
        for number, record in enumerate(listing.records):
            if number and number % STEP == 0:
                await asyncio.sleep(0)
            items.append(self._decode(kind, record))
        return Page(tuple(items), str(listing.resource_version))

    async def watch(
        self, kind: Kind[T], namespace: str = "", *, resource_version: str, labels: str = "", fields: str = ""
    ) -> AsyncIterator[WatchEvent[T]]:
        """Changes after resource_version, with bookmarks. Ends when the backend stops; raises Expired."""
        options = WatchOptions(labels=labels, fields=fields, resource_version=resource_version, bookmarks=True)
        with self._request("GET"):
            watch = self._backend.watch(self._context(kind, namespace), options)
        try:
            async with aclosing(watch) as items:
                async for item in items:
                    obj = None if item.record is None else self._decode(kind, item.record)
                    yield WatchEvent(EventType(item.type.value), obj, str(item.resource_version))
        except StatusError as refused:
            raise _error(refused) from None

    async def create(self, kind: Kind[T], obj: Mapping[str, Any]) -> T:
        """Create. apiVersion and kind are filled in; metadata.name or generateName is needed."""
        body = _body(kind, obj)
        async with self._write("POST"):
            ctx = self._context(kind, _namespace(kind, body), options=self._options())
            return self._decode(kind, await self._backend.create(ctx, body))

    async def patch(self, kind: Kind[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        """JSON merge patch of everything except status."""
        async with self._write("PATCH"):
            ctx = self._context(kind, namespace, name, options=self._options())
            return self._decode(kind, await self._backend.patch(ctx, PatchType.MERGE, _copy(patch)))

    async def patch_status(self, kind: Kind[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        """JSON merge patch of the status subresource."""
        async with self._write("PATCH"):
            ctx = self._context(kind, namespace, name, "status", self._options())
            return self._decode(kind, await self._backend.patch(ctx, PatchType.MERGE, _copy(patch)))

    async def apply(self, kind: Kind[T], obj: Mapping[str, Any], *, manager: str, force: bool = True) -> T:
        """Server-side apply of the fields in obj, owned by `manager`."""
        body = _body(kind, obj)
        options = WriteOptions(manager=manager, force=force, field_validation=FieldValidation.STRICT)
        async with self._write("PATCH"):
            ctx = self._context(kind, _namespace(kind, body), str(body["metadata"].get("name", "")), options=options)
            return self._decode(kind, await self._backend.apply(ctx, body))

    async def delete(
        self, kind: Kind[T], name: str, namespace: str = "", *, uid: str = "", resource_version: str = ""
    ) -> None:
        """Delete in the background; uid and resource_version are preconditions when given."""
        options = DeleteOptions(propagation=Propagation.BACKGROUND, uid=uid, resource_version=resource_version)
        async with self._write("DELETE"):
            await self._backend.delete(self._context(kind, namespace, name), options)

    async def resources(self, api_version: str) -> tuple[Resource, ...]:
        """The kinds of one group and version. Raises NotFound when there is no such group or version."""
        found = self._backend.registry.of(*split_api_version(api_version))
        if not found:
            raise NotFound(f"the API has no {api_version}")
        return tuple(
            Resource(r.group, r.version, r.kind, r.plural, r.singular, r.namespaced, tuple(r.short_names),
                     tuple(r.categories), tuple(r.verbs))
            for r in found
        )  # fmt: skip

    async def aclose(self) -> None:
        """Nothing to release."""

    def _options(self) -> WriteOptions:
        return WriteOptions(manager=self._user.name, field_validation=FieldValidation.IGNORE)

    def _context(
        self,
        kind: Kind[T],
        namespace: str,
        name: str = "",
        subresource: str = "",
        options: WriteOptions = WriteOptions(),  # noqa: B008 - frozen
    ) -> RequestContext:
        resource = self._backend.resource(kind.group, kind.version, kind.plural)
        return RequestContext(self._user, resource, namespace, name, subresource, options)

    @asynccontextmanager
    async def _write(self, method: str) -> AsyncIterator[None]:
        """Like `_request`; after a Conflict, other tasks run first.

        What conflicts may not be durable yet, and reads show what is. A caller that reads again and retries would
        otherwise never let the journal answer.
        """
        try:
            with self._request(method):
                yield
        except Conflict:
            await asyncio.sleep(0)
            raise

    @contextmanager
    def _request(self, method: str) -> Iterator[None]:
        """Report one request to the observer. Raises ApiError for StatusError."""
        loop = asyncio.get_running_loop()
        began, code = loop.time(), "<error>"
        try:
            yield
            code = "201" if method == "POST" else "200"
        except StatusError as refused:
            code = str(refused.code)
            raise _error(refused) from None
        finally:
            self._observer(method, HOST, code, loop.time() - began)

    def _decode(self, kind: Kind[T], record: Record) -> T:
        codec = self._codecs.get(kind.struct)
        if codec is None:
            codec = self._codecs[kind.struct] = wire.Codec(kind)
        body = record.body
        if kind.group == "events.k8s.io" and kind.api_version != record.api_version:
            resource = self._backend.resource(kind.group, kind.version, kind.plural)
            body = encode(at_version(resource, record.decode()))
        decoded: T = codec.object(body)
        return decoded


def _copy(obj: Mapping[str, Any]) -> dict[str, Any]:
    """A copy for the backend, with times and structs in their JSON form. Raises BadRequest."""
    copied: dict[str, Any] = _plain(wire.encode(obj))
    return copied


def _body(kind: Kind[T], obj: Mapping[str, Any]) -> dict[str, Any]:
    body = _copy(obj)
    return {**body, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": body.get("metadata") or {}}


def _namespace(kind: Kind[T], body: Mapping[str, Any]) -> str:
    return str(body["metadata"].get("namespace") or "") if kind.namespaced else ""


def _error(refused: StatusError) -> ApiError:
    return from_status(refused.body)
