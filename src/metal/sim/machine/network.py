"""The network of simulated machines: in-process routes, or sockets bound to the machine's address."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol
from urllib.parse import parse_qsl, urlsplit

import aiohttp

from metal.kube.client.errors import ApiError
from metal.listener.request_bodies import BodyTooLarge
from metal.machine.boot_window_store import Busy
from metal.machineapi.http.response import Response
from metal.machineapi.http.server import Request, Route

Reply = tuple[int, Mapping[str, str], bytes]
"""Status, headers with names in lower case, body."""


class Unreachable(Exception):
    """No server answered."""


class AnswerLost(Unreachable):
    """The request had its effect; the response, of this status, was lost."""

    def __init__(self, status: int) -> None:
        super().__init__("the answer was lost")
        self.status = status


class Network(Protocol):
    """The network that a machine is connected to."""

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes, source_ip: str, timeout: float = 30.0
    ) -> Reply:
        """Send one request from this address. Raises Unreachable."""
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...


class SocketNetwork:
    """Sockets bound to the machine's loopback address, so that the server sees the leased address."""

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes, source_ip: str, timeout: float = 30.0
    ) -> Reply:
        connector = aiohttp.TCPConnector(local_addr=(source_ip, 0), force_close=True)
        limit = aiohttp.ClientTimeout(total=timeout)
        try:
            async with (
                aiohttp.ClientSession(connector=connector, timeout=limit, auto_decompress=False) as session,
                session.request(method, url, headers=headers, data=body or None, allow_redirects=False) as answer,
            ):
                content = await answer.read()
                return answer.status, {k.lower(): v for k, v in answer.headers.items()}, content
        except (aiohttp.ClientError, OSError, TimeoutError) as exc:
            raise Unreachable(f"{type(exc).__name__} at {urlsplit(url).netloc}") from None

    async def aclose(self) -> None:
        return


class InProcessNetwork:
    """Calls the services' routes in this process, for tests in virtual time. `mount` maps URLs to routes."""

    def __init__(self) -> None:
        self._mounts: list[tuple[str, list[tuple[re.Pattern[str], Route]]]] = []

    def mount(self, base_url: str, routes: Iterable[Route]) -> None:
        """Map URLs that begin with `base_url` to these routes; replaces an earlier mount of the same base."""
        compiled = [(_pattern(route.path), route) for route in routes]
        self._mounts = [(base, table) for base, table in self._mounts if base != base_url]
        self._mounts.append((base_url, compiled))

    def unmount_all(self) -> None:
        """Remove all mounts; requests fail."""
        self._mounts.clear()

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes, source_ip: str, timeout: float = 30.0
    ) -> Reply:
        for base, table in self._mounts:
            if url.startswith(base + "/"):
                return await self._route(table, method, url[len(base) :], headers, body, source_ip)
        raise Unreachable(f"no server listens at {urlsplit(url).netloc}")

    async def aclose(self) -> None:
        return

    async def _route(
        self, table: list[tuple[re.Pattern[str], Route]], method: str, target: str, headers: Mapping[str, str],
        body: bytes, source_ip: str,
    ) -> Reply:  # fmt: skip
        parts = urlsplit(target)
        for pattern, route in table:
            match = pattern.fullmatch(parts.path)
            if match is None:
                continue
            if method not in route.methods:
                return 405, {}, b""
            query = dict(reversed(parse_qsl(parts.query)))
            titled = {name.title(): value for name, value in headers.items()}
            request = Request(method, source_ip, match.groupdict(), query, titled, _reader(body))
            return await _answer(route, request)
        return 404, {}, b""


def _reader(body: bytes) -> Callable[[int], Awaitable[bytes]]:
    async def read(limit: int) -> bytes:
        if len(body) > limit:
            raise BodyTooLarge
        return body

    return read


async def _answer(route: Route, request: Request) -> Reply:
    try:
        answer = await route.handler(request)
    except BodyTooLarge:
        return 413, {}, b""
    except (ApiError, Busy):
        return 503, {"retry-after": "2"}, b""
    content, is_head = _content(answer), request.method == "HEAD"
    if answer.on_sent is not None and not is_head:
        await answer.on_sent()
    sent = {name.lower(): value for name, value in answer.headers.items()}
    headers = {"content-length": str(len(content)), "content-type": answer.content_type, **sent}
    return answer.status, headers, b"" if is_head else content


def _content(answer: Response) -> bytes:
    if answer.content is None:
        return answer.body
    with answer.content.use():
        return answer.content.layout.read()


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(path)))
