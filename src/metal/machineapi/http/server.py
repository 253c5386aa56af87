"""The HTTP front of boot server, registry and event receiver.

Connections are limited by `metal.listener`. A request passes the checks of URL length and method, then its handler runs
under a deadline; it reads the body within the limits of `listener.request_bodies`. A handler returns a `Response`;
a file is sent by `file_response` at a minimum rate, and a limited number at a time: in all, to one address and to one
machine, so that one boot token cannot hold all of them. A refused request is recorded (`refusals`), and an overload, a
time-out or an error of the API becomes 503, which iPXE and Ignition retry. All limits apply before authentication.
Query strings hold tokens and are never logged.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

import structlog
from aiohttp import web

from metal.kube.client.errors import ApiError
from metal.listener.limits import ConnectionLimits
from metal.listener.metrics import Metrics as ListenerMetrics
from metal.listener.request_bodies import BodyTooLarge, Overloaded, RequestBodies
from metal.listener.server import RunningServer, listen
from metal.listener.shares import Exhausted, Shares
from metal.listener.table import group_of
from metal.machine.boot_window_store import Busy
from metal.machine.directory import plain_ip
from metal.machineapi.http.file_response import FileResponse
from metal.machineapi.http.refusals import Refusals
from metal.machineapi.http.response import Response, text, unavailable

_log = structlog.get_logger(__name__)


MACHINE_IDLE_SECONDS = 15.0
"""Seconds that a machine's connection is kept between requests: firmware and initramfs open few and forget them."""


@dataclass(frozen=True)
class Request:
    """What a handler sees. `client` is the address of the TCP peer, never one from a header."""

    method: str
    client: str
    path_parameters: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    read: Callable[[int], Awaitable[bytes]]
    """Reads the body up to a limit in bytes. Raises BodyTooLarge, Overloaded, TimeoutError."""


Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Route:
    """A path (aiohttp's pattern), its methods and its handler. `name` labels the metrics."""

    name: str
    path: str
    methods: tuple[str, ...]
    handler: Handler


@dataclass(frozen=True)
class Limits:
    """Limits on connections, requests and transfers."""

    url: int = 2048
    """Bytes of path and query."""
    handler_seconds: float = 60.0
    """Seconds until a handler must have returned its response."""
    body_seconds: float = 20.0
    """Seconds until a request's body must have arrived."""
    client_bodies: int = 8 * 1024 * 1024
    """Bytes of bodies in transfer from one address; 503 beyond that."""
    all_bodies: int = 128 * 1024 * 1024
    """Bytes of bodies in transfer from all addresses; enough for many thousand ordinary reports."""
    least_rate: int = 64 * 1024
    """Bytes per second below which the transfer of a file is aborted."""
    least_seconds: float = 30.0
    """Seconds added to the time that the minimum rate allows."""
    streams: int = 256
    """Files sent at the same time; 503 beyond that."""
    address_streams: int = 32
    """Files sent to one address at the same time; 503 beyond that."""
    holder_streams: int = 4
    """Files sent to one machine, which is the holder of a token, at the same time. Firmware fetches one or two."""
    connection: ConnectionLimits = field(default_factory=lambda: ConnectionLimits(idle_seconds=MACHINE_IDLE_SECONDS))
    """Limits on connections."""


def make_app(routes: Iterable[Route], refusals: Refusals, limits: Limits | None = None) -> web.Application:
    """An application with the given routes."""
    limits = limits or Limits()
    app = web.Application(client_max_size=0)
    dispatcher = _Dispatcher(refusals, limits)
    for route in routes:
        app.router.add_route("*", route.path, dispatcher.handler(route))
    app.router.add_route(
        "*", "/{rest:.*}", dispatcher.handler(Route("other", "", ("GET", "HEAD", "POST"), dispatcher.not_found))
    )
    app.on_response_prepare.append(_plain_headers)
    app.on_cleanup.append(dispatcher.finish)
    app[_LIMITS] = limits
    return app


_LIMITS = web.AppKey("limits", Limits)


async def _plain_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers["Server"] = "metal"
    response.headers["Cache-Control"] = "no-store"


class _Dispatcher:
    """Wraps handlers: checks, deadline, and a refusal, 503 or 500 for each failure."""

    def __init__(self, refusals: Refusals, limits: Limits) -> None:
        self._refusals, self._limits = refusals, limits
        self._bodies = RequestBodies(limits.client_bodies, limits.all_bodies, limits.body_seconds)
        each = {"address": limits.address_streams, "holder": limits.holder_streams}
        self._streams = Shares(limits.streams, each)
        self._callbacks: set[asyncio.Task[None]] = set()

    def handler(self, route: Route) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            answer = await self._answer(route, request)
            if answer.content is not None:
                return await self._send(route, request, answer)
            headers = dict(answer.headers)
            return web.Response(status=answer.status, body=answer.body, headers=_typed(headers, answer))

        return handle

    async def not_found(self, request: Request) -> Response:
        """404 for paths without a route."""
        return text(404, "not found")

    async def finish(self, _: web.Application) -> None:
        """Wait for the callbacks of finished transfers."""
        if self._callbacks:
            await asyncio.wait(self._callbacks, timeout=2.0)

    async def _answer(self, route: Route, request: web.Request) -> Response:
        client = plain_ip(request.remote or "::")
        if len(request.raw_path) > self._limits.url:
            self._refusals.refuse(route.name, "URLTooLong", client, "the URL is too long")
            return text(414, "URI too long")
        if request.method not in route.methods:
            self._refusals.refuse(route.name, "MethodNotAllowed", client, "this method is not offered")
            return text(405, "method not allowed", Allow=", ".join(route.methods))
        return await self._guarded(route, request, client)

    async def _guarded(self, route: Route, request: web.Request, client: str) -> Response:
        try:
            async with asyncio.timeout(self._limits.handler_seconds):
                return await route.handler(self._plain(request, client))
        except BodyTooLarge:
            return self._refusals.refuse(route.name, "TooLarge", client, "the body is too large")
        except TimeoutError:
            return self._later(route, "TimedOut", client, "no body or no response in time")
        except Overloaded:
            return self._later(route, "Overloaded", client, "the limit on request bodies in transfer is reached")
        except (ApiError, Busy) as exc:
            return self._later(route, "Busy", client, f"the API is unavailable: {exc}")
        except Exception:  # any failure must become a response that the machine retries
            _log.exception("request failed", endpoint=route.name, client=client)
            return text(500, "internal error")

    def _later(self, route: Route, reason: str, client: str, why: str) -> Response:
        self._refusals.note(route.name, reason, client, why)
        return unavailable("try again later")

    def _plain(self, request: web.Request, client: str) -> Request:
        async def read(limit: int) -> bytes:
            return await self._bodies.read(request, client, limit)

        query = dict(reversed(list(request.query.items())))
        return Request(request.method, client, dict(request.match_info), query, request.headers, read)

    async def _send(self, route: Route, request: web.Request, answer: Response) -> web.StreamResponse:
        client = plain_ip(request.remote or "::")
        try:
            with self._streams.take(address=group_of(client), holder=answer.holder):
                return await self._transfer(request, answer)
        except Exhausted as exc:
            self._refusals.note(route.name, "Overloaded", client, f"transfers: {exc}")
            return web.Response(status=503, text="busy\n", headers={"Retry-After": "2"})

    async def _transfer(self, request: web.Request, answer: Response) -> web.StreamResponse:
        response = FileResponse(answer, self._limits.least_seconds, self._limits.least_rate)
        try:
            await response.transfer(request)
        except (OSError, TimeoutError) as exc:
            _log.info("transfer aborted", client=request.remote, error=str(exc))
            if request.transport is not None:
                request.transport.abort()
        finally:
            if answer.on_sent is not None and response.complete:
                self._follow_up(answer.on_sent)
        return response

    def _follow_up(self, on_sent: Callable[[], Awaitable[None]]) -> None:
        """Runs outside the request, which is cancelled when the client closes the connection after the last byte."""

        async def run() -> None:
            try:
                await on_sent()
            except Exception:  # the response is sent already, so the failure can only be logged
                _log.exception("could not record a finished transfer")

        task = asyncio.get_running_loop().create_task(run())
        self._callbacks.add(task)
        task.add_done_callback(self._callbacks.discard)


def _typed(headers: dict[str, str], answer: Response) -> dict[str, str]:
    return headers | {"Content-Type": answer.content_type}


async def serve(
    app: web.Application, host: str, port: int, *, name: str = "machines", metrics: ListenerMetrics | None = None
) -> RunningServer:
    """Listen. `name` labels metrics. Raises OSError when the address is in use or not available."""
    return await listen(app, host, port, app[_LIMITS].connection, name=name, metrics=metrics)
