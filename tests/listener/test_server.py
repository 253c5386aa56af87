"""Listeners over sockets on loopback: each attack of one client, and what an honest one sees meanwhile."""

import asyncio
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
import uvloop
from aiohttp import web
from prometheus_client import CollectorRegistry

from metal.apiserver.auth import tls
from metal.listener.connection import Connection
from metal.listener.limits import ConnectionLimits, cap_by_descriptors
from metal.listener.metrics import Metrics
from metal.listener.report import Reason
from metal.listener.server import RunningServer, listen

HONEST, ATTACKER = "127.0.0.2", "127.0.0.3"
HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Site:
    """A listener with a plain answer, an endless one, and one that reads a body."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.running: RunningServer
        self.streams: list[asyncio.StreamWriter] = []
        self.tls: ssl.SSLContext | None = None

    def counted(self, reason: Reason) -> int:
        labels = {"listener": "test", "reason": reason.value}
        return int(self.registry.get_sample_value("metal_http_connections_closed_total", labels) or 0)

    @property
    def open(self) -> int:
        return int(self.registry.get_sample_value("metal_http_connections", {"listener": "test"}) or 0)

    async def connect(self, source: str = ATTACKER, sent: bytes = b"", tls: ssl.SSLContext | None = None) -> Stream:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.running.port, local_addr=(source, 0), ssl=tls)
        self.streams.append(writer)
        writer.write(sent)
        return reader, writer

    async def flood(self, count: int, sent: bytes = b"") -> list[Stream]:
        """Those of so many connections that are not reset at once."""
        held = []
        for _ in range(count):
            with suppress(OSError):
                held.append(await self.connect(sent=sent))
        return held

    async def ask(self, source: str = HONEST) -> int:
        connector = aiohttp.TCPConnector(local_addr=(source, 0), ssl=self.tls or False)
        url = f"{'https' if self.tls else 'http'}://127.0.0.1:{self.running.port}/"
        async with aiohttp.ClientSession(connector=connector) as session, session.get(url) as answer:
            return answer.status


async def _plain(_: web.Request) -> web.Response:
    return web.Response(text="ok")


async def _endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(b"event\n")
    await asyncio.Event().wait()
    return response


async def _flood(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(bytes(1 << 16))


async def _body(request: web.Request) -> web.Response:
    return web.Response(text=str(len(await request.read())))


@asynccontextmanager
async def site(
    limits: ConnectionLimits, server_tls: ssl.SSLContext | None = None, client_tls: ssl.SSLContext | None = None
) -> AsyncIterator[Site]:
    made = Site()
    made.tls = client_tls
    app = web.Application()
    app.router.add_get("/", _plain)
    app.router.add_get("/endless", _endless)
    app.router.add_get("/flood", _flood)
    app.router.add_post("/", _body)
    metrics = Metrics(made.registry)
    made.running = await listen(app, "127.0.0.1", 0, limits, name="test", tls=server_tls, metrics=metrics)
    try:
        yield made
    finally:
        for writer in made.streams:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        await made.running.aclose()


async def _ended(stream: Stream) -> bytes:
    """What is received until the server closes the connection."""
    with suppress(ConnectionResetError):
        return await asyncio.wait_for(stream[0].read(), 5)
    return b""


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - what it waits for is told to nobody
            await asyncio.sleep(0)


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Iterator[Callable[[Awaitable[None]], None]]:
    """Runs a coroutine in each of the two event loops that users have."""
    factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:

        async def wait(work: Awaitable[None]) -> None:
            await work

        yield lambda work: runner.run(wait(work))


@pytest.mark.behaviour(
    "Limits",
    "Half-open connections and requests of one address end in time and take no place of another client.",
)
@pytest.mark.parametrize("sent", [b"", HEAD, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"])
def test_half_open_connections_end_and_exclude_nobody(sent: bytes, run: Callable[[Awaitable[None]], None]) -> None:
    """Of 300 connections without a request, with half a head or without a body, an address keeps its part, for its
    time; another client is answered at once."""

    async def story() -> None:
        limits = ConnectionLimits(per_address=20, first_byte_seconds=0.3, head_seconds=0.3, body_seconds=0.3)
        async with site(limits) as s:
            held = await s.flood(300, sent)
            assert await s.ask() == 200
            assert s.open <= 21
            await asyncio.gather(*map(_ended, held))
            await _until(lambda: s.open == 0)
            assert s.counted(Reason.ADDRESS_LIMIT) >= 270

    run(story())


@pytest.mark.behaviour("Limits", "Request line and headers have at most 16 KiB; beyond that the answer is 431.")
def test_unfinished_headers_are_not_stored(run: Callable[[Awaitable[None]], None]) -> None:
    """After 16 KiB of headers without an end the connection gets 431 and is closed, however many bytes follow."""

    async def story() -> None:
        async with site(ConnectionLimits()) as s:
            line = b"X-A: " + b"a" * 8000 + b"\r\n"
            assert (await _ended(await s.connect(sent=HEAD + 3 * line))).startswith(b"HTTP/1.1 431 ")
            await _ended(await s.connect(sent=HEAD + 90 * line))
            assert s.counted(Reason.HEAD_TOO_LARGE) == 2
            await _until(lambda: s.open == 0)

    run(story())


async def test_a_head_of_the_limit_is_answered() -> None:
    """Ordinary headers of some kilobytes, sent byte by byte or at once, are not affected."""
    async with site(ConnectionLimits()) as s:
        head = HEAD + b"X-A: " + b"a" * 8000 + b"\r\nX-B: " + b"b" * 8000 + b"\r\n\r\n"
        stream = await s.connect(sent=head)
        assert await stream[0].readline() == b"HTTP/1.1 200 OK\r\n"
        slow = await s.connect()
        for at in range(0, len(HEAD), 3):
            slow[1].write(HEAD[at : at + 3])
            await asyncio.sleep(0)
        slow[1].write(b"\r\n")
        assert await slow[0].readline() == b"HTTP/1.1 200 OK\r\n"


async def test_a_body_is_not_counted_as_headers() -> None:
    """A body of some megabytes is read, and so is the request after it on the same connection."""
    async with site(ConnectionLimits(head_bytes=1024)) as s:
        url = f"http://127.0.0.1:{s.running.port}/"
        async with aiohttp.ClientSession() as session:
            for size in (900_000, 3, 0, 900_000):
                async with session.post(url, data=bytes(size)) as answer:
                    assert await answer.text() == str(size)
        assert s.counted(Reason.HEAD_TOO_LARGE) == 0


@pytest.mark.behaviour("Limits", "A watch or a transfer is never closed to make room for another connection.")
def test_a_stream_is_busy_and_a_kept_connection_is_idle(run: Callable[[Awaitable[None]], None]) -> None:
    """A watch outlives all deadlines and a flood; a connection kept for the next request ends after its time."""

    async def story() -> None:
        limits = ConnectionLimits(
            connections=16, per_address=16, first_byte_seconds=0.2, head_seconds=0.2, body_seconds=0.2, idle_seconds=0.4
        )
        async with site(limits) as s:
            watch = await s.connect(HONEST, b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
            await watch[0].readuntil(b"event\n")
            kept = await s.connect(HONEST, HEAD + b"\r\n")
            await kept[0].readuntil(b"ok")
            kept[1].write(HEAD + b"\r\n")
            await kept[0].readuntil(b"ok")
            flood = await s.flood(100)
            await _ended(kept)
            await asyncio.gather(*map(_ended, flood))
            assert not watch[0].at_eof()
            assert s.open == 1

    run(story())


async def test_a_client_that_does_not_receive_is_closed() -> None:
    """The response of a client that reads nothing does not stay in memory."""
    async with site(ConnectionLimits(stall_seconds=0.2)) as s:
        stream = await s.connect(sent=b"GET /flood HTTP/1.1\r\nHost: x\r\n\r\n")
        stream[1].transport.pause_reading()  # type: ignore[attr-defined]  # a transport that reads
        await _until(lambda: s.counted(Reason.RESPONSE_STALLED) == 1)


async def test_malformed_requests_are_counted_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Each is answered 400 without a traceback in the log."""
    async with site(ConnectionLimits()) as s:
        for _ in range(3):
            assert b" 400 " in await _ended(await s.connect(sent=b"GET / HTTP/1.1\r\nBad Header\r\n\r\n"))
        assert s.counted(Reason.MALFORMED) == 3
    assert "Traceback" not in caplog.text


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """TLS of a server, and of a client that trusts it."""
    folder: Path = tmp_path_factory.mktemp("tls")
    made = tls.ensure(folder, (), datetime.now(UTC))
    return made.context(), ssl.create_default_context(cafile=str(made.authority))


@pytest.mark.behaviour("Limits", "A TLS handshake that does not end is closed after its deadline.")
def test_handshakes_end_in_time(
    identity: tuple[ssl.SSLContext, ssl.SSLContext], run: Callable[[Awaitable[None]], None]
) -> None:
    """Connections that never begin TLS, and such that send no TLS, are closed; an honest client is answered."""

    async def story() -> None:
        async with site(ConnectionLimits(per_address=30, handshake_seconds=0.3), *identity) as s:
            held = await s.flood(60)
            assert await s.ask() == 200
            assert s.open <= 31
            wrong = await s.connect(HONEST, HEAD + b"\r\n")
            await asyncio.gather(*map(_ended, [*held, wrong]))
            await _until(lambda: s.open == 0)
            assert s.counted(Reason.ADDRESS_LIMIT) >= 30
            assert s.counted(Reason.HANDSHAKE_FAILED) + s.counted(Reason.HANDSHAKE_TIMEOUT) >= 30

    run(story())


async def test_a_refused_connection_is_reset() -> None:
    """An address whose connections are all busy gets a reset, which its client reports at once."""
    async with site(ConnectionLimits(per_address=1)) as s:
        stream = await s.connect(sent=b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
        await stream[0].readuntil(b"event\n")
        with pytest.raises(aiohttp.ClientConnectionError):
            await s.ask(ATTACKER)
        assert s.counted(Reason.ADDRESS_LIMIT) == 1
        assert await s.ask(HONEST) == 200


async def test_without_descriptors_the_listener_waits_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accepting fails with EMFILE; an idle connection is given up, and the next client is answered."""
    async with site(ConnectionLimits()) as s:
        idle = await s.connect()
        await _until(lambda: s.open == 1)
        failures = iter([OSError(24, "too many open files")])
        accept = socket.socket.accept

        def fail_once(listening: socket.socket) -> tuple[socket.socket, object]:
            for failure in failures:
                raise failure
            return accept(listening)

        monkeypatch.setattr(socket.socket, "accept", fail_once)
        assert await s.ask() == 200
        await _ended(idle)
        assert s.counted(Reason.NO_DESCRIPTORS) == 1


async def test_a_stopped_listener_has_no_connection() -> None:
    """Half-open connections, streams and handshakes end with it, and the port is free."""
    async with site(ConnectionLimits()) as s:
        held = [await s.connect(), await s.connect(sent=HEAD)]
        watch = await s.connect(HONEST, b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
        await watch[0].readuntil(b"event\n")
        await s.running.aclose()
        await asyncio.gather(*map(_ended, [*held, watch]))
        assert s.open == 0
        again = socket.create_server(("127.0.0.1", s.running.port))
        again.close()


UNFINISHED = (b"", b"GET /", b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /flood HTTP/1.1\r\nHost: x\r\n\r\n")


@pytest.mark.parametrize("encrypted", [False, True])
def test_no_transport_is_left_when_a_listener_has_closed(
    identity: tuple[ssl.SSLContext, ssl.SSLContext], run: Callable[[Awaitable[None]], None],
    monkeypatch: pytest.MonkeyPatch, encrypted: bool,
) -> None:  # fmt: skip
    """Connections that are idle, sent half a request, stream or are stalled have ended when `aclose` returns."""
    held: set[Connection] = set()
    made, lost = Connection.connection_made, Connection.connection_lost

    def connection_made(self: Connection, transport: asyncio.BaseTransport) -> None:
        held.add(self)
        made(self, transport)

    def connection_lost(self: Connection, exc: BaseException | None) -> None:
        held.discard(self)
        lost(self, exc)

    monkeypatch.setattr(Connection, "connection_made", connection_made)
    monkeypatch.setattr(Connection, "connection_lost", connection_lost)

    async def story() -> None:
        async with site(ConnectionLimits(), *(identity if encrypted else ())) as s:
            for sent in UNFINISHED:
                await s.connect(sent=sent, tls=s.tls)
            await _until(lambda: len(held) == len(UNFINISHED))
            await asyncio.sleep(0.1)  # the flood fills the socket of its client
            await s.running.aclose()
            assert held == set()

    run(story())


def test_the_process_keeps_files_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most an eighth of the file descriptors, and never fewer than a minimum."""
    for soft, expected in ((1024, 128), (10, 16), (1_000_000, 8192), (resource.RLIM_INFINITY, 8192)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, soft=soft: (soft, soft))
        assert cap_by_descriptors(8192) == expected
