"""The client contract over HTTP, for any Kubernetes API."""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeVar

import aiohttp
import yarl

from metal.kube.client import wire
from metal.kube.client.errors import Expired, Unauthorized, Unavailable
from metal.kube.client.kubeconfig import Connection, KubeconfigError
from metal.kube.client.protocol import Page, WatchEvent
from metal.kube.client.resources import Resource
from metal.kube.meta.objects import Kind, Object

T = TypeVar("T", bound=Object)
Observer = Callable[[str, str, str, float], None]
"""Called after each request with method, host, status code (<error> without one) and seconds until the answer began."""

_PAGE = 500
_RESTARTS = 3
_JSON = "application/json"
_MERGE_PATCH = "application/merge-patch+json"
_APPLY_PATCH = "application/apply-patch+yaml"


class HTTPClient:
    """Implements `client.Client` with aiohttp. Close it with `aclose`, or use it as an async context manager.

    All times are seconds: connect and total bound each request, inactivity bounds the silence of a watch. At most
    max_connections requests run at the same time; watches have sockets of their own.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        connect: float = 5.0,
        total: float = 30.0,
        inactivity: float = 300.0,
        max_connections: int = 32,
        user_agent: str = "kube-client",
        rng: random.Random | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._connection = connection
        self._connect, self._total, self._inactivity = connect, total, inactivity
        self._limit, self._user_agent = max_connections, user_agent
        self._rng = rng or random.Random()
        self._observer = observer or (lambda method, host, code, seconds: None)
        self._host = yarl.URL(connection.url).host_port_subcomponent or ""
        self._sessions: dict[str, aiohttp.ClientSession] = {}
        self._codecs: dict[Any, wire.Codec[Any]] = {}

    def __repr__(self) -> str:
        return f"<HTTPClient {self._connection.url}>"

    async def __aenter__(self) -> "HTTPClient":
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        """See `client.Client.get`."""
        body = await self.call("GET", wire.object_path(kind, name, namespace))
        return self._codec(kind).object(body)

    async def list(
        self, kind: Kind[T], namespace: str = "", *, labels: str = "", fields: str = "", resource_version: str = ""
    ) -> Page[T]:
        """See `client.Client.list`. A continue token that expires starts the list again from its beginning."""
        query = {"labelSelector": labels, "fieldSelector": fields, "resourceVersion": resource_version}
        for _ in range(_RESTARTS):
            try:
                return await self._list(kind, namespace, query)
            except Expired as exc:
                expired = exc
        raise expired

    async def watch(
        self, kind: Kind[T], namespace: str = "", *, resource_version: str, labels: str = "", fields: str = ""
    ) -> AsyncIterator[WatchEvent[T]]:
        """See `client.Client.watch`. Raises Unavailable after `inactivity` seconds of silence."""
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(max(1, int(self._inactivity * self._rng.uniform(0.6, 0.9)))),
            "labelSelector": labels,
            "fieldSelector": fields,
        }
        codec = self._codec(kind)
        async with aclosing(self.lines(wire.collection_path(kind, namespace), query)) as lines:
            async for line in lines:
                yield codec.event(line)

    async def create(self, kind: Kind[T], obj: Mapping[str, Any]) -> T:
        """See `client.Client.create`."""
        namespace = obj.get("metadata", {}).get("namespace", "")
        body = await self.call("POST", wire.within(kind, namespace), body=wire.typed(kind, obj))
        return self._codec(kind).object(body)

    async def patch(self, kind: Kind[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        """See `client.Client.patch`."""
        path = wire.object_path(kind, name, namespace)
        return self._codec(kind).object(await self.call("PATCH", path, body=patch, content_type=_MERGE_PATCH))

    async def patch_status(self, kind: Kind[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        """See `client.Client.patch_status`."""
        path = wire.object_path(kind, name, namespace) + "/status"
        return self._codec(kind).object(await self.call("PATCH", path, body=patch, content_type=_MERGE_PATCH))

    async def apply(self, kind: Kind[T], obj: Mapping[str, Any], *, manager: str, force: bool = True) -> T:
        """See `client.Client.apply`."""
        meta = obj.get("metadata", {})
        path = wire.object_path(kind, meta.get("name", ""), meta.get("namespace", ""))
        query = {"fieldManager": manager, "force": "true" if force else "false"}
        body = wire.typed(kind, obj)
        answer = await self.call("PATCH", path, query=query, body=body, content_type=_APPLY_PATCH)
        return self._codec(kind).object(answer)

    async def delete(
        self, kind: Kind[T], name: str, namespace: str = "", *, uid: str = "", resource_version: str = ""
    ) -> None:
        """See `client.Client.delete`."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        conditions = {"uid": uid, "resourceVersion": resource_version}
        if wanted := {field: value for field, value in conditions.items() if value}:
            options["preconditions"] = wanted
        await self.call("DELETE", wire.object_path(kind, name, namespace), body=options)

    async def resources(self, api_version: str) -> tuple[Resource, ...]:
        """See `client.Client.resources`."""
        root = "/apis" if "/" in api_version else "/api"
        return wire.resources(api_version, await self.call("GET", f"{root}/{api_version}"))

    async def lines(self, path: str, query: Mapping[str, str], *, accept: str = _JSON) -> AsyncGenerator[bytes, None]:
        """The lines of an answer that goes on. Raises ApiError, and Unavailable after `inactivity` s of silence."""
        limits = aiohttp.ClientTimeout(
            total=None, connect=self._total, sock_connect=self._connect, sock_read=self._inactivity
        )
        async with self._send("watch", "GET", path, query=query, timeout=limits, accept=accept) as response:
            if response.status != 200:
                raise wire.error(response.status, await response.read(), response.headers)
            lines = wire.Lines()
            async for chunk in response.content.iter_any():
                for line in lines.feed(chunk):
                    yield line

    async def aclose(self) -> None:
        """See `client.Client.aclose`."""
        sessions = list(self._sessions.values())
        self._sessions.clear()
        for session in sessions:
            await session.close()

    async def _list(self, kind: Kind[T], namespace: str, query: Mapping[str, str]) -> Page[T]:
        codec, path = self._codec(kind), wire.collection_path(kind, namespace)
        page = codec.page(await self.call("GET", path, query={**query, "limit": str(_PAGE)}))
        version, items = page.metadata.resource_version, page.items or []
        while page.metadata.continue_:
            more = {**query, "resourceVersion": "", "limit": str(_PAGE), "continue": page.metadata.continue_}
            page = codec.page(await self.call("GET", path, query=more))
            items += page.items or []
        return Page(tuple(items), version)

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = _JSON,
        accept: str = _JSON,
    ) -> bytes:
        """One request and its answer, for what no `Kind` describes: discovery, tables, dry runs. Raises ApiError."""
        data = None if body is None else wire.encode(body)
        limits = aiohttp.ClientTimeout(total=self._total, sock_connect=self._connect)
        send = self._send(
            "request", method, path, query=query or {}, data=data, content_type=content_type, timeout=limits,
            accept=accept,
        )  # fmt: skip
        async with send as response:
            answer = await response.read()
            if 200 <= response.status < 300:
                return answer
            raise wire.error(response.status, answer, response.headers)

    @asynccontextmanager
    async def _send(
        self,
        pool: str,
        method: str,
        path: str,
        *,
        query: Mapping[str, str],
        timeout: aiohttp.ClientTimeout,
        data: bytes | None = None,
        content_type: str = _JSON,
        accept: str = _JSON,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        url = yarl.URL(self._connection.url + path, encoded=True).with_query({k: v for k, v in query.items() if v})
        headers = {"Accept": accept, **({"Content-Type": content_type} if data is not None else {})}
        report = self._reporter(method)
        try:
            if self._connection.token is not None:
                headers["Authorization"] = f"Bearer {self._connection.token()}"
            call = self._session(pool).request(
                method,
                url,
                data=data,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
                server_hostname=self._connection.server_name,
            )
            async with asyncio.timeout(self._total) as until_answered, call as response:
                until_answered.reschedule(None)  # a watch may be silent for longer than its first answer may take
                report(str(response.status))
                yield response
        except KubeconfigError as exc:
            raise Unauthorized(str(exc)) from exc
        except TimeoutError as exc:
            raise Unavailable(f"{method} {path}: no answer in time from {self._connection.url}") from exc
        except (aiohttp.ClientError, OSError) as exc:
            raise Unavailable(f"{method} {path}: {exc or type(exc).__name__}") from exc
        finally:
            report("<error>")

    def _reporter(self, method: str) -> Callable[[str], None]:
        """Calls the observer with the first code that it gets; the later ones of the same request do not count."""
        loop = asyncio.get_running_loop()
        began, codes = loop.time(), list[str]()

        def report(code: str) -> None:
            if not codes:
                self._observer(method, self._host, code, loop.time() - began)
            codes.append(code)

        return report

    def _session(self, pool: str) -> aiohttp.ClientSession:
        session = self._sessions.get(pool)
        if session is None:
            limit = self._limit if pool == "request" else 0
            connector = aiohttp.TCPConnector(limit=limit, ssl=self._connection.tls or True)
            headers = {"Accept-Encoding": "identity", "User-Agent": self._user_agent}
            session = aiohttp.ClientSession(
                connector=connector, headers=headers, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=True
            )
            self._sessions[pool] = session
        return session

    def _codec(self, kind: Kind[T]) -> wire.Codec[T]:
        codec = self._codecs.get((kind.kind, kind.struct))
        if codec is None:
            codec = self._codecs[kind.kind, kind.struct] = wire.Codec(kind)
        return codec
