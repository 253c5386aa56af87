"""The ways into an API, behind one contract: plain requests with JSON in and out, and watches."""

import asyncio
import copy
import io
import json
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import aiohttp

from metal.apiserver.backend import Backend
from metal.apiserver.machinery.options import PatchType
from metal.apiserver.machinery.resources import RequestContext
from metal.apiserver.machinery.status import StatusError
from metal.apiserver.machinery.users import User
from metal.apiserver.server import EmbeddedAPI
from metal.apiserver.web import options, paths, render
from metal.apiserver.web.negotiate import Form
from metal.kube.client.protocol import Client

Obj = dict[str, Any]
Query = Mapping[str, str]

MERGE = PatchType.MERGE.value
JSON_PATCH = PatchType.JSON.value
STRATEGIC = PatchType.STRATEGIC.value
APPLY = PatchType.APPLY.value
PATIENCE = 15.0
"""Seconds that a test waits for what must come."""


@dataclass(frozen=True)
class Reply:
    """An answer: status code, decoded body, headers (empty in process), and the texts of its warnings."""

    code: int
    body: Obj
    headers: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """`reason` of a Status."""
        return str(self.body.get("reason", ""))

    @property
    def message(self) -> str:
        """`message` of a Status."""
        return str(self.body.get("message", ""))

    @property
    def causes(self) -> list[Obj]:
        """`details.causes` of a Status."""
        return list(self.body.get("details", {}).get("causes", []))

    def ok(self) -> Obj:
        """The body of a success; fails the test otherwise."""
        assert self.code < 300, f"{self.code} {self.body}"
        return self.body


class Watch:
    """A watch under way."""

    def __init__(self, events: AsyncIterator[Obj]) -> None:
        self._events = events

    async def next(self, patience: float = PATIENCE) -> Obj:
        """The next event: {"type": ..., "object": ...}. Raises TimeoutError, or StopAsyncIteration at the end."""
        return await asyncio.wait_for(anext(self._events), patience)

    async def many(self, count: int) -> list[Obj]:
        """The next `count` events."""
        return [await self.next() for _ in range(count)]


class Way(Protocol):
    """One way into one API."""

    name: str

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Query | None = None,
        content: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """One request. body is sent as JSON unless it is bytes."""
        ...

    def watch(self, path: str, query: Query | None = None) -> AbstractAsyncContextManager[Watch]:
        """A watch of a collection. What is refused before it stands comes as one ERROR event."""
        ...

    def client(self) -> Client:
        """The typed client of `metal.kube` for this way, as an administrator."""
        ...

    def acting(self, user: str, groups: tuple[str, ...] = ()) -> "Way":
        """The same way as another user: impersonated over HTTP. Requests and watches only."""
        ...


class InProcess:
    """Straight into the backend, as the in-process client does."""

    name = "inprocess"

    def __init__(self, embedded: EmbeddedAPI, user: User) -> None:
        self._embedded, self._user = embedded, user

    @property
    def _backend(self) -> Backend:
        return self._embedded.backend

    def _context(self, path: str, query: Query, method: str = "GET") -> RequestContext:
        target = paths.target(paths.segments(path))
        assert target is not None, f"{path} is no resource path: such a case is about HTTP"
        resource = self._backend.resource(target.group, target.version, target.plural)
        wanted = options.writing(query, "conformance/1", method)
        return RequestContext(self._user, resource, target.namespace, target.name, target.subresource, wanted)

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Query | None = None,
        content: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        assert not headers, "headers are about HTTP"
        body = json.loads(json.dumps(body))
        try:
            return await self._verb(method, self._context(path, query or {}, method), body, query or {}, content)
        except StatusError as refused:
            return Reply(refused.code, dict(refused.body))

    async def _verb(self, method: str, ctx: RequestContext, body: Any, query: Query, content: str) -> Reply:
        backend, rendered = self._backend, render.Renderer(ctx.resource, Form(), now=self._backend.clock())
        if method == "GET" and not ctx.name:
            page = await backend.list(ctx, options.listing(query))
            return Reply(200, json.loads(rendered.many(page)))
        if method == "DELETE":
            return await self._delete(ctx, body, query, rendered)
        code = 200
        if method == "GET":
            record = await backend.get(ctx)
        elif method == "POST":
            record, code = await backend.create(ctx, body), 201
        elif method == "PUT":
            record = await backend.update(ctx, body)
        else:
            existed = any(r.key == ctx.key for r in backend.store.collection(ctx.resource.key))
            record = await backend.patch(ctx, PatchType(content), body)
            code = 200 if existed else 201
        return Reply(code, json.loads(rendered.one(record)), warnings=tuple(ctx.warnings))

    async def _delete(self, ctx: RequestContext, body: Any, query: Query, rendered: render.Renderer) -> Reply:
        wanted = options.deleting(query, body)
        if not ctx.name:
            records = await self._backend.delete_collection(ctx, options.listing(query), wanted)
            return Reply(200, {"items": [json.loads(rendered.one(record)) for record in records]})
        deletion = await self._backend.delete(ctx, wanted)
        if not deletion.gone:
            return Reply(200, json.loads(rendered.one(deletion.record)))
        return Reply(200, {"kind": "Status", "status": "Success", "details": {"uid": deletion.record.uid}})

    @asynccontextmanager
    async def watch(self, path: str, query: Query | None = None) -> AsyncIterator[Watch]:
        async with aclosing(self._events(path, query or {})) as events:
            yield Watch(events)

    async def _events(self, path: str, query: Query) -> Any:
        try:
            ctx = self._context(path, query)
            rendered = render.Renderer(ctx.resource, Form(), now=self._backend.clock())
            async with aclosing(self._backend.watch(ctx, options.watching(query))) as items:
                async for item in items:
                    if item.record is None:
                        line = rendered.bookmark(item.resource_version, initial_end=item.initial_end)
                    else:
                        line = rendered.event(item.type.value, item.record, first=True)
                    yield json.loads(line)
        except StatusError as refused:
            yield {"type": "ERROR", "object": dict(refused.body)}

    def client(self) -> Client:
        return self._embedded.client(self._user.name)

    def acting(self, user: str, groups: tuple[str, ...] = ()) -> "InProcess":
        known = groups if "system:unauthenticated" in groups else (*groups, "system:authenticated")
        return InProcess(self._embedded, User(user, groups=known))


class OverHTTP:
    """Over the wire: the embedded API's TLS front, or a kube-apiserver."""

    def __init__(self, name: str, url: str, token: str, tls: ssl.SSLContext, typed: Client) -> None:
        self.name, self.url, self.token, self.tls = name, url, token, tls
        self._typed = typed
        self._as: tuple[tuple[str, str], ...] = ()
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls, limit=0))

    def acting(self, user: str, groups: tuple[str, ...] = ()) -> "OverHTTP":
        other = copy.copy(self)
        other._as = (("Impersonate-User", user), *(("Impersonate-Group", group) for group in groups))
        return other

    def holding(self, token: str) -> "OverHTTP":
        """The same way for whoever holds another token."""
        other = copy.copy(self)
        other.token = token
        return other

    async def aclose(self) -> None:
        """Release the sockets."""
        await self._session.close()
        await self._typed.aclose()

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Query | None = None,
        content: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        sent = {"Authorization": f"Bearer {self.token}", "Accept": "application/json", "User-Agent": "conformance/1"}
        if body is not None:
            sent["Content-Type"] = content
        raw_body = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        # aiohttp warns of large bodies that are no stream.
        data = raw_body if raw_body is None or len(raw_body) < 1 << 20 else io.BytesIO(raw_body)
        async with self._session.request(
            method, self.url + path, params=query, data=data, headers=[*(sent | dict(headers or {})).items(), *self._as]
        ) as answer:
            raw = await answer.read()
            try:
                decoded = json.loads(raw)
            except ValueError:
                decoded = {"raw": raw.decode(errors="replace")}
            told = tuple(_warning(line) for line in answer.headers.getall("Warning", []))
            return Reply(answer.status, decoded, answer.headers, told)

    @asynccontextmanager
    async def watch(self, path: str, query: Query | None = None) -> AsyncIterator[Watch]:
        sent = {"Authorization": f"Bearer {self.token}", "Accept": "application/json", "User-Agent": "conformance/1"}
        async with (
            self._session.get(
                self.url + path,
                params={"watch": "1", **(query or {})},
                headers=[*sent.items(), *self._as],
                timeout=aiohttp.ClientTimeout(total=None),
            ) as answer,
            aclosing(_lines(answer)) as events,
        ):
            yield Watch(events)

    def client(self) -> Client:
        return self._typed


def _warning(header: str) -> str:
    """The text of `299 - "text"` (RFC 7234), where quotes and backslashes are escaped."""
    return re.sub(r"\\(.)", r"\1", header.partition('"')[2].rpartition('"')[0])


async def _lines(answer: aiohttp.ClientResponse) -> Any:
    if answer.status != 200:
        yield {"type": "ERROR", "object": await answer.json()}
        return
    rest = b""
    async for chunk in answer.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield json.loads(line)


def administrator() -> User:
    """The user of the in-process way."""
    return User("admin", "admin", ("system:masters", "system:authenticated"))
