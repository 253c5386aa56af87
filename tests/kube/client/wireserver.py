"""An HTTP server on loopback that speaks the API's wire for HTTPClient: FakeAPI behind real sockets, or a script."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class Server:
    """A running server: where it listens, what it was asked, what it answers next."""

    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    answers: list[Handler] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        body = msgspec.json.decode(raw) if raw else None
        self.seen.append(
            Seen(request.method, request.raw_path.split("?")[0], dict(request.query), dict(request.headers), body)
        )
        return await self.answers.pop(0)(request)


@asynccontextmanager
async def serving(*answers: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """A server that gives these answers in turn."""
    server = Server(answers=list(answers))
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    server.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    try:
        yield server
    finally:
        await runner.cleanup()


def json(body: Any, status: int = 200, **headers: str) -> Handler:
    """An answer with a JSON body."""

    async def answer(request: web.Request) -> web.StreamResponse:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(
            body=msgspec.json.encode(body), status=status, content_type="application/json", headers=fields
        )

    return answer


def text(body: str, status: int = 200) -> Handler:
    """An answer that is not JSON."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(text=body, status=status)

    return answer


def status(code: int, reason: str, message: str = "no", **headers: str) -> Handler:
    """A metav1.Status."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }
    return json(body, code, **headers)


def stream(*chunks: bytes, then: str = "end") -> Handler:
    """A watch: chunks as they are, then the end, a cut in the middle of nowhere, or silence."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
            await asyncio.sleep(0.005)
        if then == "cut":
            assert request.transport is not None
            request.transport.abort()
        if then == "silence":
            await asyncio.sleep(30)
        return response

    return answer


async def hang(request: web.Request) -> web.StreamResponse:
    """Never an answer."""
    await asyncio.sleep(30)
    return web.Response()


async def cut(request: web.Request) -> web.StreamResponse:
    """The connection is reset instead of answered."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()
