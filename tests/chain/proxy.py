"""A reverse proxy between a manager and its API: it counts, refuses, loses answers, is slow, and cuts watches."""

import asyncio
import random
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

import aiohttp
from aiohttp import web

_HOP = frozenset({"connection", "host", "content-length", "transfer-encoding", "keep-alive", "content-encoding"})
Fate = Literal["", "refused", "lost"]


@dataclass(frozen=True)
class Trouble:
    """What the proxy does to requests; nothing by default."""

    share: float = 0.0
    """Of requests that fail: half get 429 with Retry-After or 500, half have their effect and lose the answer."""
    delay: float = 0.0
    """Seconds that each request takes longer."""
    watch_life: float = 0.0
    """Seconds after which a watch is cut; 0 leaves them alone."""


@dataclass
class Counts:
    """Requests by kind of resource (election apart), and how many of them met a fate."""

    requests: Counter[str] = field(default_factory=Counter)
    troubled: int = 0
    watches_cut: int = 0

    @property
    def total(self) -> int:
        """All but those of the election, whose rate does not depend on the work."""
        return sum(count for what, count in self.requests.items() if not what.endswith(" leases"))


class Proxy:
    """Listens on loopback over plain http. `trouble` may be changed at any time."""

    def __init__(self, upstream: str, tls: ssl.SSLContext | None, rng: random.Random) -> None:
        self._trouble = Trouble()
        self._streams: set[asyncio.Timeout] = set()
        self.counts = Counts()
        self.url = ""
        self._upstream, self._tls, self._rng = upstream, tls, rng
        self._session: aiohttp.ClientSession | None = None

    @property
    def trouble(self) -> Trouble:
        """What is done to requests, and to watches that are open already."""
        return self._trouble

    @trouble.setter
    def trouble(self, trouble: Trouble) -> None:
        self._trouble = trouble
        for stream in self._streams:
            stream.reschedule(self._end())

    def _end(self) -> float | None:
        life = self._trouble.watch_life
        return asyncio.get_running_loop().time() + life * self._rng.uniform(0.8, 1.0) if life else None

    def count_anew(self) -> Counts:
        """The counts so far; new ones begin."""
        counts, self.counts = self.counts, Counts()
        return counts

    @asynccontextmanager
    async def run(self) -> AsyncIterator["Proxy"]:
        """Listen while the context is open."""
        connector = aiohttp.TCPConnector(limit=0, ssl=self._tls or True)
        runner = web.ServerRunner(web.Server(self._handle, handler_cancellation=True), shutdown_timeout=0.1)
        await runner.setup()
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as self._session:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            try:
                yield self
            finally:
                await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        watch = request.query.get("watch") == "true"
        self.counts.requests[_what(request, watch)] += 1
        if self.trouble.delay:
            await asyncio.sleep(self.trouble.delay)
        fate = self._fate()
        if fate == "refused":
            return self._refusal()
        try:
            return await (self._stream(request) if watch else self._pass(request, fate))
        except aiohttp.ClientError:
            return _cut(request)

    def _fate(self) -> Fate:
        if self._rng.random() >= self.trouble.share:
            return ""
        self.counts.troubled += 1
        return self._rng.choice(("refused", "lost"))

    def _refusal(self) -> web.Response:
        if self._rng.random() < 0.5:
            return web.Response(status=429, headers={"Retry-After": "1"}, text="slow down")
        return web.Response(status=500, text="something broke")

    async def _pass(self, request: web.BaseRequest, fate: Fate) -> web.StreamResponse:
        async with self._send(request) as answer:
            body = await answer.read()
        if fate != "lost":
            return web.Response(status=answer.status, headers=_headers(answer.headers), body=body)
        return _cut(request) if self._rng.random() < 0.5 else web.Response(status=500, text="the answer is lost")

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        async with self._send(request) as answer:
            out = web.StreamResponse(status=answer.status, headers=_headers(answer.headers))
            await out.prepare(request)
            try:
                async with asyncio.timeout_at(self._end()) as limit:
                    self._streams.add(limit)
                    async for chunk in answer.content.iter_any():
                        await out.write(chunk)
            except TimeoutError:
                self.counts.watches_cut += 1
            finally:
                self._streams.discard(limit)
            return out

    @asynccontextmanager
    async def _send(self, request: web.BaseRequest) -> AsyncIterator[aiohttp.ClientResponse]:
        assert self._session is not None
        call = self._session.request(
            request.method, self._upstream + request.raw_path, headers=_headers(request.headers),
            data=await request.read() or None, timeout=aiohttp.ClientTimeout(total=None),
        )  # fmt: skip
        async with call as answer:
            yield answer


def _what(request: web.BaseRequest, watch: bool) -> str:
    """Method and resource, such as `PATCH servers/status`."""
    parts = request.path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        parts = parts[2:]
    verb = "WATCH" if watch else "LIST" if request.method == "GET" and len(parts) == 1 else request.method
    return " ".join((verb, "/".join(parts[:1] + parts[2:3])))


def _headers(headers: "aiohttp.typedefs.LooseHeaders") -> dict[str, str]:
    return {name: value for name, value in dict(headers).items() if name.lower() not in _HOP}


def _cut(request: web.BaseRequest) -> web.StreamResponse:
    """The connection ends without an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=502)
