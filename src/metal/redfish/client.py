"""One BMC's resources as JSON: authenticated, bounded in time, number and size.

A request passes these steps: during a pause that the BMC asked for (`pause`) it fails at once; its deadline starts;
`Session` adds a token or basic credentials; a semaphore limits requests in flight; `permit` may forbid a change; the
transport sends it. A 401 leads to one new login and one repetition, a dropped connection repeats a GET once, and a
stale ETag repeats a PATCH once. Redirects are followed within the BMC only. The answer becomes a `Resource` or a
`Reply`, and any failure a BMCError whose text is a sentence with the BMC's own message. Each request is counted through
`observer`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from metal.redfish import messages
from metal.redfish.decode import decode
from metal.redfish.errors import (
    BMCBadRequest,
    BMCBusy,
    BMCConflict,
    BMCError,
    BMCProtocolError,
    BMCServerError,
    BMCTimeout,
    BMCUnreachable,
)
from metal.redfish.messages import Classify
from metal.redfish.paths import ROOT, SESSIONS, redirect_path
from metal.redfish.pause import Pause
from metal.redfish.redaction import Redaction
from metal.redfish.resources import ServiceRoot
from metal.redfish.session import Grant, Session
from metal.redfish.tasks import Task, parse_task, path_in
from metal.redfish.transport import ConnectionDropped, Response, Transport

T = TypeVar("T", bound=msgspec.Struct)
JSON = dict[str, Any]
Observer = Callable[[str, str, float], None]
Permit = Callable[[], None]
"""Raises when nothing may be changed now."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS = 4


@dataclass(frozen=True)
class Limits:
    """Limits of the requests to one BMC."""

    deadline: float = 30.0
    """Seconds for one request, including the wait for a free slot, the login and the one repetition."""
    reads: int = 2
    """GETs in flight; management controllers are slow and some fall over at five."""
    writes: int = 1
    """Changes in flight; concurrent changes fail on each other's locks."""
    cooldown: float = 900.0
    """Seconds for which a refused password is not tried again; one try in 15 minutes triggers no known lock-out."""
    logout_deadline: float = 1.5
    """Seconds a logout may take; a process that receives SIGTERM has about two."""
    pages: int = 64
    """Pages of one collection."""
    members: int = 2048
    """Members of one collection."""


@dataclass(frozen=True)
class Resource:
    """The result of a GET: the JSON object, and its ETag where the BMC sends one."""

    path: str
    data: JSON = field(repr=False)
    etag: str = ""

    def decode(self, kind: type[T]) -> T:
        """A typed view of the object."""
        return decode(self.data, kind)


@dataclass(frozen=True)
class Reply:
    """The answer to a change. `task` is set for 202 Accepted; `location` is the path of what was created."""

    status: int
    data: JSON = field(default_factory=dict, repr=False)
    task: Task | None = None
    location: str = ""


class RedfishClient:
    """Requests to one BMC. Shared by all callers; safe for concurrent use in one event loop.

    Args: origin is scheme://host:port; observer is called with each request's method, outcome (2xx, …, timeout) and
    seconds; permit is called right before each change except logins and logouts, and its exception is passed on;
    classify knows the errors that messages of BMCs mean.
    Raises, from every method: a subclass of BMCError, within `limits.deadline` seconds of each request.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        origin: str,
        username: str = "",
        password: str = "",
        limits: Limits | None = None,
        observer: Observer | None = None,
        permit: Permit = lambda: None,
        classify: Classify = messages.by_status,
    ) -> None:
        self.limits = limits or Limits()
        self.name = origin.rpartition("//")[2]
        self.requests = 0
        self._transport = transport
        self._origin = origin
        self.redact = Redaction(password)
        self._observer = observer or (lambda method, outcome, seconds: None)
        self._permit, self._classify = permit, classify
        self._reads = asyncio.Semaphore(self.limits.reads)
        self._writes = asyncio.Semaphore(self.limits.writes)
        self._root: ServiceRoot | None = None
        self._root_lock = asyncio.Lock()
        self._closed = False
        self._pause = Pause()
        self.session = Session(
            self._send,
            self._find_sessions,
            name=self.name,
            username=username,
            password=password,
            cooldown=self.limits.cooldown,
            classify=classify,
        )

    def __repr__(self) -> str:
        return f"<RedfishClient {self._origin} {self.requests} requests{' closed' if self._closed else ''}>"

    async def root(self) -> ServiceRoot:
        """The service root, read once, with credentials only if the BMC requires them."""
        async with self._deadline("GET", ROOT):
            return self._root or await self._public_root() or self._keep_root(await self._read(ROOT))

    async def get(self, path: str) -> Resource:
        """The resource at this path; a redirect within the BMC is followed."""
        async with self._deadline("GET", path):
            return self._resource(path, await self._read(path))

    async def patch(self, path: str, body: JSON, *, etag: str = "") -> Reply:
        """Change properties; with If-Match where an ETag is given.

        After 412 or 428 the request is repeated once with the current ETag, or without one if the ETag is unchanged.
        Raises: BMCConflict when the repetition fails as well.
        """
        async with self._deadline("PATCH", path):
            response = await self._write("PATCH", path, body, etag)
            if response.status in (412, 428):
                fresh = self._resource(path, await self._read(path)).etag
                response = await self._write("PATCH", path, body, "" if fresh == etag else fresh)
            return self._reply("PATCH", path, response)

    async def post(self, path: str, body: JSON) -> Reply:
        """Run an action or create a member. Never with If-Match: some BMCs answer 412 to it on actions."""
        async with self._deadline("POST", path):
            return self._reply("POST", path, await self._write("POST", path, body))

    async def delete(self, path: str) -> Reply:
        """Delete a resource."""
        async with self._deadline("DELETE", path):
            return self._reply("DELETE", path, await self._write("DELETE", path, None))

    async def aclose(self) -> None:
        """Log out, within `limits.logout_deadline`, and close the connections. Later requests fail."""
        self._closed = True
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.limits.logout_deadline):
                    await self.session.close()
        finally:
            await self._transport.aclose()

    @property
    def paused(self) -> bool:
        """Whether requests fail at once, during a pause that the BMC asked for."""
        return self._pause.left > 0

    @asynccontextmanager
    async def _deadline(self, method: str, path: str) -> AsyncIterator[None]:
        if self._closed:
            raise BMCUnreachable(f"The connection to {self.name} was closed on our side.")
        self._pause.check()
        try:
            async with asyncio.timeout(self.limits.deadline):
                yield
        except BMCBusy as error:
            self._pause.begin(error)
            raise
        except TimeoutError:
            text = f"{self.name} did not answer {method} {path} within {self.limits.deadline:g} s."
            raise BMCTimeout(text) from None

    async def _find_sessions(self) -> str:
        root = await self._public_root()
        if root is None:
            return SESSIONS
        service = root.session_service.odata_id
        return root.links.sessions.odata_id or (f"{service.rstrip('/')}/Sessions" if service else "")

    async def _public_root(self) -> ServiceRoot | None:
        """The root read without credentials; None where the BMC, against the standard, requires them."""
        async with self._root_lock:
            if self._root is None:
                response = await self._follow(ROOT, {})
                if response.status in (401, 403):
                    return None
                self._keep_root(response)
            return self._root

    def _keep_root(self, response: Response) -> ServiceRoot:
        nothing = BMCProtocolError(f"{self.name} has no Redfish service root at {ROOT}: is this address a BMC?")
        if response.status == 404:
            raise nothing
        root = self._resource(ROOT, response).decode(ServiceRoot)
        if not (root.redfish_version or root.systems.odata_id or "ServiceRoot" in root.odata_type):
            raise nothing
        self._root = root
        return root

    async def _read(self, path: str) -> Response:
        return await self._authenticated(lambda grant: self._follow(path, grant.headers))

    async def _write(self, method: str, path: str, body: JSON | None, etag: str = "") -> Response:
        content = None if body is None else msgspec.json.encode(body)
        match = {"if-match": etag} if etag else {}
        return await self._authenticated(
            lambda grant: self._send(method, path, {**grant.headers, **match}, content, permit=self._permit)
        )

    async def _authenticated(self, exchange: Callable[[Grant], Awaitable[Response]]) -> Response:
        """One exchange, repeated once with a new login after 401."""
        async with self.session.admission() as grant:
            response = await exchange(grant)
            if response.status == 401:
                grant = await self.session.renew(grant)
                response = await exchange(grant)
            if response.status == 401:
                raise self.session.reject(grant)
            if response.status < 500:
                self.session.prove(grant)
            return response

    async def _follow(self, path: str, headers: Mapping[str, str]) -> Response:
        for _ in range(_MOST_REDIRECTS + 1):
            response = await self._send("GET", path, headers, None)
            if response.status not in _REDIRECTS or "location" not in response.headers:
                return response
            path = redirect_path(response.headers["location"], self._origin)
        raise BMCProtocolError(f"{self.name} redirects too often; the last redirect was to {path}.")

    async def _send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None,
        *,
        permit: Permit = lambda: None,
    ) -> Response:
        """One request within the limit of requests in flight; a GET is repeated once after a dropped connection."""
        own = {"accept": "application/json", "odata-version": "4.0"}
        own |= {"content-type": "application/json"} if body is not None else {}
        path = path.partition("#")[0]
        async with self._reads if method == "GET" else self._writes:
            permit()
            try:
                return await self._observed(method, path, own | dict(headers), body)
            except ConnectionDropped:
                if method != "GET":
                    raise
                return await self._observed(method, path, own | dict(headers), body)

    async def _observed(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Response:
        self.requests += 1
        outcome, loop = "cancelled", asyncio.get_running_loop()
        began = loop.time()
        try:
            response = await self._transport.request(
                method, path, headers=headers, body=body, timeout=self.limits.deadline
            )
            outcome = f"{response.status // 100}xx"
            return response
        except BMCError as error:
            outcome = error.reason
            raise
        finally:
            self._observer(method, outcome, loop.time() - began)

    def _resource(self, path: str, response: Response) -> Resource:
        data = self._object("GET", path, response)
        if "error" in data and "@odata.id" not in data:
            words = messages.sentence(data, self.redact) or "no message."
            raise BMCServerError(f"{self.name} answered GET {path} with an error: {words}")
        etag = response.headers.get("etag") or data.get("@odata.etag")
        return Resource(path, data, etag if isinstance(etag, str) else "")

    def _reply(self, method: str, path: str, response: Response) -> Reply:
        self._raise_for_status(method, path, response)
        body = messages.parse(response.body)
        data: JSON = body if isinstance(body, dict) else {}
        if messages.failed_inside(data):
            kind = self._classify(messages.full_message_ids(data)) or BMCBadRequest
            raise kind(f"{self.name} did not carry out {method} {path}: {messages.sentence(data, self.redact)}")
        task = parse_task(response.headers, data) if response.status == 202 else None
        return Reply(response.status, data, task, path_in(response.headers.get("location") or data.get("@odata.id")))

    def _object(self, method: str, path: str, response: Response) -> JSON:
        self._raise_for_status(method, path, response)
        data = messages.parse(response.body)
        if not isinstance(data, dict):
            raise BMCProtocolError(f"{self.name} answered {method} {path} with a body that is not a JSON object.")
        return data

    def _raise_for_status(self, method: str, path: str, response: Response) -> None:
        if response.status in (412, 428):
            raise BMCConflict(f"{self.name} refused {method} {path} as outdated twice; something else changes it too.")
        if response.status >= 300:
            raise messages.error_for(response, f"{method} {path} on {self.name}", self._classify, self.redact)
