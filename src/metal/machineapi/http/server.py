"""The HTTP side of whatever a machine can reach: routes, limits, deadlines. Query strings are never logged."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

import structlog
from aiohttp import web

from metal.kube.client.errors import ApiError
from metal.machine.boot_window_store import Busy
from metal.machine.directory import plain_ip
from metal.machineapi.http.answer import Answer, not_yet, text
from metal.machineapi.http.bodies import Bodies, BodyTooLarge, Crowded
from metal.machineapi.http.connection_limit import ConnectionLimit, room
from metal.machineapi.http.refusals import Refusals
from metal.machineapi.http.sending import FileAnswer

_log = structlog.get_logger(__name__)


_BACKLOG = 1024
"""Connections that wait to be accepted: a rack that comes back from a power cut asks all at once."""


@dataclass(frozen=True)
class Request:
    """What a handler sees: the peer's own address, never one that a header claims."""

    method: str
    client: str
    parts: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    read: Callable[[int], Awaitable[bytes]]
    """Reads the body up to a limit in bytes. Raises BodyTooLarge, Crowded, TimeoutError."""


Handler = Callable[[Request], Awaitable[Answer]]


@dataclass(frozen=True)
class Route:
    """A path (aiohttp's pattern), the methods it takes, and who answers. `name` labels the metrics."""

    name: str
    path: str
    methods: tuple[str, ...]
    handler: Handler


@dataclass(frozen=True)
class Limits:
    """What one client may cost."""

    url: int = 2048
    """Bytes of path and query."""
    handler_seconds: float = 60.0
    """Until a handler must have decided on its answer."""
    body_seconds: float = 20.0
    """Until a request's body must have arrived."""
    client_bodies: int = 8 * 1024 * 1024
    """Bytes of bodies that one address may be sending at the same time; more get 503."""
    all_bodies: int = 128 * 1024 * 1024
    """The same for all addresses together: many thousand ordinary reports."""
    least_rate: int = 64 * 1024
    """Bytes per second below which a file's receiver is cut off."""
    least_seconds: float = 30.0
    """What every receiver of a file gets on top of that."""
    streams: int = 256
    """Files that are sent at the same time; more get 503."""
    idle_seconds: float = 15.0
    """Until a connection must have sent its (next) request."""
    connections: int = 8192
    """Connections at the same time; a quarter of the files that the process may open where that is less."""


def make_app(routes: Iterable[Route], refusals: Refusals, limits: Limits | None = None) -> web.Application:
    """One application of the routes of boot server, registry, or both."""
    limits = limits or Limits()
    app = web.Application(client_max_size=0)
    door = _Door(refusals, limits)
    for route in routes:
        app.router.add_route("*", route.path, door.handler(route))
    app.router.add_route("*", "/{rest:.*}", door.handler(Route("other", "", ("GET", "HEAD", "POST"), door.nothing)))
    app.on_response_prepare.append(_plain_headers)
    app.on_cleanup.append(door.finish)
    app[_LIMITS] = limits
    return app


_LIMITS = web.AppKey("limits", Limits)


async def _plain_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers["Server"] = "metal"
    response.headers["Cache-Control"] = "no-store"


class _Door:
    """Wraps handlers: checks, deadline, and a refusal or 503 for whatever goes wrong inside."""

    def __init__(self, refusals: Refusals, limits: Limits) -> None:
        self._refusals, self._limits = refusals, limits
        self._bodies = Bodies(limits.client_bodies, limits.all_bodies, limits.body_seconds)
        self._streams = 0
        self._after: set[asyncio.Task[None]] = set()

    def handler(self, route: Route) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            answer = await self._answer(route, request)
            if answer.file is not None:
                return await self._send(request, answer)
            headers = dict(answer.headers)
            return web.Response(status=answer.status, body=answer.body, headers=_typed(headers, answer))

        return handle

    async def nothing(self, request: Request) -> Answer:
        """Paths that do not exist."""
        return text(404, "not found")

    async def finish(self, _: web.Application) -> None:
        """Let what follows a finished transfer end."""
        if self._after:
            await asyncio.wait(self._after, timeout=2.0)

    async def _answer(self, route: Route, request: web.Request) -> Answer:
        client = plain_ip(request.remote or "::")
        if len(request.raw_path) > self._limits.url:
            self._refusals.refuse(route.name, "URLTooLong", client, "the URL is too long")
            return text(414, "URI too long")
        if request.method not in route.methods:
            self._refusals.refuse(route.name, "MethodNotAllowed", client, "this method is not offered")
            return text(405, "method not allowed", Allow=", ".join(route.methods))
        return await self._guarded(route, request, client)

    async def _guarded(self, route: Route, request: web.Request, client: str) -> Answer:
        try:
            async with asyncio.timeout(self._limits.handler_seconds):
                return await route.handler(self._plain(request, client))
        except BodyTooLarge:
            return self._refusals.refuse(route.name, "TooLarge", client, "the body is too large")
        except TimeoutError:
            return self._later(route, "TimedOut", client, "no body or no answer in time")
        except Crowded:
            return self._later(route, "Crowded", client, "too much is being received at the moment")
        except (ApiError, Busy) as exc:
            return self._later(route, "Busy", client, f"cannot decide now: {exc}")
        except Exception:  # a machine must get an answer it can retry, whatever broke
            _log.exception("request failed", endpoint=route.name, client=client)
            return text(500, "internal error")

    def _later(self, route: Route, reason: str, client: str, why: str) -> Answer:
        self._refusals.note(route.name, reason, client, why)
        return not_yet("try again later")

    def _plain(self, request: web.Request, client: str) -> Request:
        async def read(limit: int) -> bytes:
            return await self._bodies.read(request, client, limit)

        query = dict(reversed(list(request.query.items())))
        return Request(request.method, client, dict(request.match_info), query, request.headers, read)

    async def _send(self, request: web.Request, answer: Answer) -> web.StreamResponse:
        if self._streams >= self._limits.streams:
            return web.Response(status=503, text="busy\n", headers={"Retry-After": "2"})
        response = FileAnswer(answer, self._limits.least_seconds, self._limits.least_rate)
        self._streams += 1
        try:
            await response.transfer(request)
        except (OSError, TimeoutError) as exc:
            _log.info("transfer broke off", client=request.remote, error=str(exc))
            if request.transport is not None:
                request.transport.abort()
        finally:
            self._streams -= 1
            if answer.sent is not None and response.complete:
                self._follow_up(answer.sent)
        return response

    def _follow_up(self, sent: Callable[[], Awaitable[None]]) -> None:
        """Apart from the request, which is cancelled when the client hangs up after the last byte."""

        async def run() -> None:
            try:
                await sent()
            except Exception:  # nobody is left to tell but the log
                _log.exception("could not record a finished transfer")

        task = asyncio.get_running_loop().create_task(run())
        self._after.add(task)
        task.add_done_callback(self._after.discard)


def _typed(headers: dict[str, str], answer: Answer) -> dict[str, str]:
    return headers | {"Content-Type": answer.content_type}


class Listening:
    """A running server. `port` is the real one when 0 was asked for."""

    def __init__(self, runner: web.AppRunner, port: int) -> None:
        self._runner, self.port = runner, port

    async def aclose(self) -> None:
        """Stop listening; transfers in progress are cut off after a second."""
        await self._runner.cleanup()


async def serve(app: web.Application, host: str, port: int) -> Listening:
    """Listen. Raises OSError when the address cannot be had."""
    limits = app[_LIMITS]
    runner = web.AppRunner(
        app,
        handler_cancellation=True,
        access_log=None,  # it would show tokens
        shutdown_timeout=1.0,
        keepalive_timeout=limits.idle_seconds,
        lingering_time=2.0,
    )
    await runner.setup()
    if (server := runner.server) is not None:
        crowd = ConnectionLimit(server, room(limits.connections))
        server.connection_made = crowd.admit  # type: ignore[method-assign]  # aiohttp has no limit of its own, nor a hook
    site = web.TCPSite(runner, host, port, backlog=_BACKLOG)
    try:
        await site.start()
    except BaseException:
        await runner.cleanup()
        raise
    return Listening(runner, runner.addresses[0][1])
