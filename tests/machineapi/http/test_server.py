"""The HTTP front, over sockets on loopback."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from metal.boot.uki.layout import FilePart, Layout
from metal.kube.client.errors import Unavailable
from metal.listener.server import RunningServer
from metal.machine.boot_window_store import Busy
from metal.machineapi.http.refusals import Refusals
from metal.machineapi.http.response import Content, Response, text
from metal.machineapi.http.server import Limits, Request, Route, make_app, serve
from tests.machineapi.world import Clock

CONTENT = bytes(range(256)) * 8192


@asynccontextmanager
async def listening(
    handler: Callable[[Request], Any], registry: CollectorRegistry | None = None, /, **limits: Any
) -> AsyncIterator[RunningServer]:
    routes = [Route("test", "/x/{part}", ("GET", "POST", "HEAD"), handler)]
    running = await serve(make_app(routes, Refusals(Clock(), registry=registry), Limits(**limits)), "127.0.0.1", 0)
    try:
        yield running
    finally:
        await running.aclose()


async def fetch(running: RunningServer, method: str = "GET", path: str = "/x/1", **more: Any) -> tuple[int, bytes, Any]:
    async with aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{running.port}{path}"
        async with session.request(method, url, **more) as answer:
            return answer.status, await answer.read(), answer.headers


async def echo(request: Request) -> Response:
    return text(200, f"{request.client} {request.path_parameters['part']} {request.query.get('a')}")


async def test_only_the_peers_own_address_counts() -> None:
    """Headers that claim another address are ignored."""
    forged = {"X-Forwarded-For": "10.0.0.7", "Forwarded": "for=10.0.0.7", "X-Real-IP": "10.0.0.7"}
    async with listening(echo) as running:
        assert (await fetch(running, headers=forged))[1] == b"127.0.0.1 1 None\n"


async def test_a_parameter_that_is_there_twice_counts_once() -> None:
    """The first value is used."""
    async with listening(echo) as running:
        assert (await fetch(running, path="/x/1?a=1&a=2"))[1] == b"127.0.0.1 1 1\n"


async def test_a_server_says_little_about_itself() -> None:
    """The Server header has no version, and responses are not cacheable."""
    async with listening(echo) as running:
        _, _, headers = await fetch(running)
    assert headers["Server"] == "metal"
    assert headers["Cache-Control"] == "no-store"


async def test_long_urls_are_refused() -> None:
    """414 from the server, and 400 for what the parser rejects."""
    async with listening(echo, url=100) as running:
        assert (await fetch(running, path="/x/" + "a" * 200))[0] == 414
        assert (await fetch(running, path="/x/" + "a" * 10_000))[0] in (400, 414)


@pytest.mark.parametrize(
    ("problem", "status"),
    [(Unavailable("gone"), 503), (Busy("s1"), 503), (TimeoutError(), 503), (RuntimeError("hunter2"), 500)],
)
async def test_whatever_goes_wrong_is_an_answer_without_details(problem: Exception, status: int) -> None:
    """The client can retry, and gets no internal details."""

    async def fail(request: Request) -> Response:
        raise problem

    async with listening(fail) as running:
        found, body, headers = await fetch(running)
    assert found == status
    assert b"hunter2" not in body
    assert ("Retry-After" in headers) == (status == 503)


async def test_a_handler_that_hangs_is_ended() -> None:
    """503 after the deadline."""

    async def hang(request: Request) -> Response:
        await asyncio.sleep(60)
        return text(200, "never")

    async with listening(hang, handler_seconds=0.1) as running:
        assert (await fetch(running))[0] == 503


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    """A client that announces a body and sends none gets 503, and its connection is closed."""

    async def read(request: Request) -> Response:
        return text(200, str(len(await request.read(100))))

    async with listening(read, body_seconds=0.1) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(b"POST /x/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
        assert b" 503 " in await reader.readline()
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize("limit", ["client_bodies", "all_bodies"])
async def test_what_is_being_received_at_the_same_time_is_bounded(limit: str) -> None:
    """Slow bodies from one address or from many do not fill the memory."""

    async def read(request: Request) -> Response:
        return text(200, str(len(await request.read(1000))))

    async with listening(read, **{limit: 1500}) as running:
        _, first = await asyncio.open_connection("127.0.0.1", running.port)
        first.write(b"POST /x/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" + bytes(999))
        await first.drain()
        async with asyncio.timeout(5):
            while (await fetch(running, "POST", data=bytes(900)))[0] != 503:
                pass  # the slow body is still on its way
        assert (await fetch(running, "POST", data=bytes(400)))[0] == 200
        first.close()
        await first.wait_closed()
        async with asyncio.timeout(5):
            while (await fetch(running, "POST", data=bytes(900)))[0] != 200:
                pass  # that it was given up is still on its way


def part_of(path: Path, offset: int, length: int) -> Content:
    return Content(Layout((FilePart(path, offset, length),)))


class Files:
    """Serves CONTENT from a file and records completed transfers."""

    def __init__(self, folder: Path, offset: int = 0, length: int = len(CONTENT)) -> None:
        self.path = folder / "content"
        self.path.write_bytes(CONTENT)
        self.slice = part_of(self.path, offset, length)
        self.sent = asyncio.Event()

    async def __call__(self, request: Request) -> Response:
        async def sent() -> None:
            self.sent.set()

        return Response(200, content_type="application/octet-stream", content=self.slice, on_sent=sent)


async def test_a_file_arrives_whole_and_its_end_is_noticed(tmp_path: Path) -> None:
    """Content-Length, every byte, then the callback; twice on one connection."""
    files = Files(tmp_path)
    async with listening(files) as running, aiohttp.ClientSession() as session:
        for _ in range(2):
            async with session.get(f"http://127.0.0.1:{running.port}/x/1") as answer:
                assert answer.content_length == len(CONTENT)
                assert await answer.read() == CONTENT
        await asyncio.wait_for(files.sent.wait(), 5)


async def test_a_part_of_a_file_arrives(tmp_path: Path) -> None:
    """Offset and length are respected."""
    async with listening(Files(tmp_path, 1000, 5000)) as running:
        assert (await fetch(running))[1] == CONTENT[1000:6000]


@pytest.mark.parametrize("sendfile", [True, False])
async def test_bytes_and_parts_of_files_arrive_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sendfile: bool
) -> None:
    """As in a UKI: headers, a kernel, and a command line; with and without sendfile."""

    async def missing(*_: Any) -> int:
        raise NotImplementedError

    files = Files(tmp_path)
    kernel = FilePart(files.path, 0, len(CONTENT))
    files.slice = Content(Layout((b"headers", kernel, b"line " * 60_000, kernel, b"signature")))
    async with listening(files) as running:
        if not sendfile:
            monkeypatch.setattr(asyncio.get_running_loop(), "sendfile", missing)
        for _ in range(2):
            assert (await fetch(running))[1] == files.slice.layout.read()
        await asyncio.wait_for(files.sent.wait(), 5)


async def test_head_sends_the_length_and_no_byte(tmp_path: Path) -> None:
    """A HEAD is not a completed transfer."""
    files = Files(tmp_path)
    async with listening(files) as running:
        status, body, headers = await fetch(running, "HEAD")
        assert (status, body, headers["Content-Length"]) == (200, b"", str(len(CONTENT)))
        assert not files.sent.is_set()


async def test_a_client_that_hangs_up_in_the_middle_has_fetched_nothing(tmp_path: Path) -> None:
    """A partial transfer does not complete a boot."""
    files = Files(tmp_path, length=len(CONTENT))
    files.path.write_bytes(CONTENT * 8)
    files.slice = part_of(files.path, 0, len(CONTENT) * 8)
    async with listening(files) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(b"GET /x/1 HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readexactly(1000)
        writer.transport.abort()
        await asyncio.sleep(0.3)
        assert not files.sent.is_set()


async def test_a_client_that_hangs_up_after_the_last_byte_has_fetched_everything(tmp_path: Path) -> None:
    """Firmware closes the connection at once."""
    files = Files(tmp_path)
    async with listening(files) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(b"GET /x/1 HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(len(CONTENT)) == CONTENT
        writer.transport.abort()
        await asyncio.wait_for(files.sent.wait(), 5)


async def test_a_client_that_takes_no_bytes_is_cut_off(tmp_path: Path) -> None:
    """A slow receiver does not hold a stream without limit."""
    files = Files(tmp_path)
    files.path.write_bytes(CONTENT * 16)
    files.slice = part_of(files.path, 0, len(CONTENT) * 16)
    async with listening(files, least_seconds=0.2, least_rate=10**9, streams=1) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port, limit=1024)
        writer.write(b"GET /x/1 HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readexactly(100)
        await asyncio.sleep(0.6)
        files.slice = part_of(files.path, 0, 10)
        assert (await fetch(running))[:2] == (200, CONTENT[:10])
        writer.transport.abort()


async def test_a_loop_without_sendfile_sends_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """uvloop has no sendfile."""

    async def missing(*_: Any) -> int:
        raise NotImplementedError

    files = Files(tmp_path, 1000, len(CONTENT) - 2000)
    async with listening(files) as running:
        monkeypatch.setattr(asyncio.get_running_loop(), "sendfile", missing)
        assert (await fetch(running))[1] == CONTENT[1000:-1000]
        await asyncio.wait_for(files.sent.wait(), 5)


async def test_a_file_that_shrank_breaks_the_connection_off(tmp_path: Path) -> None:
    """The client must not consider the transfer complete."""
    files = Files(tmp_path)
    files.path.write_bytes(CONTENT[:100])
    async with listening(files) as running:
        with pytest.raises(aiohttp.ClientError):
            await fetch(running)
        assert not files.sent.is_set()


async def test_more_transfers_than_allowed_are_told_to_wait(tmp_path: Path) -> None:
    """503 with Retry-After, which iPXE retries."""
    files = Files(tmp_path)
    files.path.write_bytes(CONTENT * 8)
    files.slice = part_of(files.path, 0, len(CONTENT) * 8)
    async with listening(files, streams=1) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(b"GET /x/1 HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readexactly(100)
        status, _, headers = await fetch(running)
        assert (status, "Retry-After" in headers) == (503, True)
        writer.transport.abort()


@pytest.mark.behaviour("Limits", "The holder of one boot token cannot take the image transfers of other machines.")
async def test_one_machine_does_not_hold_all_transfers(tmp_path: Path) -> None:
    """Beyond its part the holder of a token gets 503 from any address, while another machine is sent its image."""
    files = Files(tmp_path)
    files.path.write_bytes(CONTENT * 8)
    files.slice = part_of(files.path, 0, len(CONTENT) * 8)

    async def image(request: Request) -> Response:
        return replace(await files(request), holder=request.path_parameters["part"])

    async with listening(image, streams=8, holder_streams=2, address_streams=3) as running:
        held = [await _stalled(running, f"127.0.0.{number}", "greedy") for number in (3, 4)]
        assert (await fetch(running, path="/x/greedy"))[0] == 503
        assert (await fetch(running, path="/x/honest"))[0] == 200
        held += [await _stalled(running, "127.0.0.5", f"machine-{number}") for number in range(3)]
        assert await _first_line("127.0.0.5", running.port, "another") == b"HTTP/1.1 503 Service Unavailable\r\n"
        assert (await fetch(running, path="/x/another"))[0] == 200
        for writer in held:
            writer.transport.abort()


@pytest.mark.behaviour("Limits", "A hundred machines that boot behind one address are all served.")
async def test_a_hundred_machines_behind_one_address_are_served(tmp_path: Path) -> None:
    """With the default limits: while 32 receive an image slowly, the others get 503, are counted, and served later."""
    files = Files(tmp_path)
    large = tmp_path / "large"
    large.write_bytes(CONTENT * 8)

    async def image(request: Request) -> Response:
        if request.method == "POST":
            return text(200, str(len(await request.read(1 << 20))))
        machine = request.path_parameters["part"]
        first = files.slice if machine.startswith("other") else part_of(large, 0, len(CONTENT) * 8)
        return Response(200, content=first, holder=machine)

    registry = CollectorRegistry()
    others = [f"/x/other-{number}" for number in range(68)]
    async with listening(image, registry) as running:
        held = [await _stalled(running, "127.0.0.1", f"first-{number}") for number in range(32)]
        told = await asyncio.gather(*(fetch(running, path=path) for path in others))
        assert {(status, headers["Retry-After"]) for status, _, headers in told} == {(503, "2")}
        labels = {"endpoint": "test", "reason": "Overloaded"}
        assert registry.get_sample_value("metal_boot_refusals_total", labels) == 68
        for writer in held:
            writer.transport.abort()
        waiting = others
        while waiting:
            answers = await asyncio.gather(*(fetch(running, path=path) for path in waiting))
            waiting = [path for path, (status, *_) in zip(waiting, answers, strict=True) if status == 503]
        reports = [fetch(running, "POST", path, data=bytes(65536)) for path in others + ["/x/m"] * 32]
        assert {status for status, *_ in await asyncio.gather(*reports)} == {200}


async def _stalled(running: RunningServer, source: str, part: str) -> asyncio.StreamWriter:
    """A client that receives the beginning of a file and no more."""
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port, local_addr=(source, 0))
    writer.write(f"GET /x/{part} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    await reader.readexactly(100)
    return writer


async def _first_line(source: str, port: int, part: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
    writer.write(f"GET /x/{part} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    try:
        return await reader.readline()
    finally:
        writer.transport.abort()


async def test_an_address_that_is_taken_is_an_error() -> None:
    """No server is left running."""
    async with listening(echo) as running:
        with pytest.raises(OSError, match="address already in use"):
            await serve(make_app([], Refusals(Clock())), "127.0.0.1", running.port)
