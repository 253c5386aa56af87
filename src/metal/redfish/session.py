"""Authentication at one BMC: Redfish sessions, else basic authentication, and no retry of a refused password.

A request asks for a `Grant`: the headers that authenticate it. The first caller logs in, concurrent callers wait for
that one login and share its session. Where the BMC has no sessions, or none free, the grant holds basic credentials;
until one request with them succeeded, others wait, because each failure counts towards an account lock-out. A refused
login is remembered with its error for a cooldown, and callers get that error without a request. A grant that a request
found expired (401) is renewed once. `close` deletes the session, so that sessions do not pile up on the BMC.
"""

import asyncio
import base64
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import msgspec

from metal.redfish import messages
from metal.redfish.errors import BMCAuthError, BMCBusy, BMCError
from metal.redfish.paths import local_path
from metal.redfish.transport import Response

STOPGAP = 300.0
"""Seconds for which basic authentication is used after all of the BMC's sessions were in use."""
SUSPICION = 60.0
"""Seconds without a login after a fresh login was followed by 401; shorter than for a refused password."""
_FULL = frozenset({"SessionLimitExceeded", "CreateLimitReachedForResource", "RAC0218"})

Send = Callable[[str, str, Mapping[str, str], bytes | None], Awaitable[Response]]
FindCollection = Callable[[], Awaitable[str]]


@dataclass(frozen=True, eq=False)
class Grant:
    """The headers that authenticate a request."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    location: str = field(default="", repr=False)
    basic: bool = False
    expires: float = math.inf
    stopgap: bool = False


@dataclass(frozen=True)
class _Refusal:
    error: type[BMCError]
    text: str
    until: float


NO_GRANT = Grant()


class Session:
    """Logs in once for all concurrent callers, remembers a refusal, logs out on close (DSP0266, Redfish session login).

    Args: find_collection returns the path of the session collection, or nothing where the BMC has none;
    cooldown is the number of seconds for which a refused password is not tried again, to avoid account lock-outs;
    classify knows the messages that refuse a login, whatever the status.
    """

    def __init__(
        self,
        send: Send,
        find_collection: FindCollection,
        *,
        name: str,
        username: str = "",
        password: str = "",
        cooldown: float = 900.0,
        classify: messages.Classify = messages.by_status,
    ) -> None:
        self._send = send
        self._find_collection = find_collection
        self._name = name
        self._username = username
        self._password = password
        self._cooldown = cooldown
        self._classify = classify
        self._grant: Grant | None = None
        self._refusal: _Refusal | None = None
        self._proven: Grant | None = None
        self._lock = asyncio.Lock()
        self._proof = asyncio.Lock()

    def __repr__(self) -> str:
        state = "none" if self._grant is None else "basic" if self._grant.basic else "session"
        return f"<Session {self._name} {state}{' refused' if self.refused else ''}>"

    @property
    def refused(self) -> bool:
        """True while the credentials are known to be wrong and are not tried."""
        return self._refusal is not None and asyncio.get_running_loop().time() < self._refusal.until

    @property
    def is_open(self) -> bool:
        """True while the BMC keeps a session for us."""
        return self._grant is not None and bool(self._grant.location)

    def forget_refusal(self) -> None:
        """Allow one more try of the same credentials now."""
        self._refusal = None

    async def grant(self) -> Grant:
        """The grant for the next request, after a login if necessary.

        Raises: BMCAuthError, without a request while a refusal is remembered; any BMCError of the login.
        """
        if not self._username:
            return NO_GRANT
        self._raise_refusal()
        if (grant := self._live()) is not None:
            return grant
        async with self._lock:
            self._raise_refusal()
            if (grant := self._live()) is None:
                grant = self._grant = await self._login()
            return grant

    @asynccontextmanager
    async def admission(self) -> AsyncIterator[Grant]:
        """A grant to use inside. Basic credentials that have not yet succeeded are used by one request at a time.

        Otherwise concurrent requests would each send a wrong password, and lock the account.
        """
        grant = await self.grant()
        if not grant.basic or grant is self._proven:
            yield grant
            return
        async with self._proof:
            yield await self.grant()

    def prove(self, grant: Grant) -> None:
        """The BMC accepted this grant."""
        self._proven = grant

    async def renew(self, stale: Grant) -> Grant:
        """A new grant after 401 with `stale`; another caller's, when one is there already.

        Raises: BMCAuthError where a new login cannot help, because basic authentication was refused.
        """
        if stale is NO_GRANT:
            raise BMCAuthError(f"{self._name} wants a user name and password, and none was given.")
        if stale.basic:
            raise self.reject(stale)
        if self._grant is stale:
            self._grant = None
        return await self.grant()

    def reject(self, grant: Grant) -> BMCError:
        """The error for a grant that the BMC refuses; remembered, so that requests do not repeat it."""
        if self._grant is grant:
            self._grant = None
        if grant.stopgap:
            text = f"{self._name} has no free session and does not accept basic authentication."
            return self._remember(BMCBusy, text, SUSPICION)
        if grant.basic:
            return self._remember(BMCAuthError, f"{self._name} refused the user name or password.", self._cooldown)
        text = f"{self._name} lets the account log in and then answers 401 all the same."
        return self._remember(BMCAuthError, text, min(SUSPICION, self._cooldown))

    async def close(self) -> None:
        """Log out, after a login in progress; a session that cannot be deleted ends by the BMC's own timeout."""
        async with self._lock:
            grant, self._grant = self._grant, None
            if grant is not None and grant.location:
                with suppress(BMCError):
                    await self._send("DELETE", grant.location, grant.headers, None)

    def _live(self) -> Grant | None:
        if self._grant is not None and asyncio.get_running_loop().time() >= self._grant.expires:
            self._grant = None
        return self._grant

    def _raise_refusal(self) -> None:
        if self._refusal is not None and self.refused:
            raise self._refusal.error(self._refusal.text)

    def _remember(self, kind: type[BMCError], text: str, seconds: float) -> BMCError:
        # The text is constant: it becomes a condition, and remaining seconds would change that at each reconcile.
        often = f"Tried no more often than every {seconds:.0f} s." if seconds < math.inf else "Not tried again."
        self._refusal = _Refusal(kind, f"{text} {often}", asyncio.get_running_loop().time() + seconds)
        return kind(self._refusal.text)

    async def _login(self) -> Grant:
        path = await self._find_collection()
        if not path:
            return self._basic()
        body = msgspec.json.encode({"UserName": self._username, "Password": self._password})
        response = await self._send("POST", path, {}, body)
        if 200 <= response.status < 300 and response.headers.get("x-auth-token"):
            return _session(response)
        return self._without_session(response)

    def _without_session(self, response: Response) -> Grant:
        """Basic authentication after a login that created no session, or the error."""
        status, body = response.status, messages.parse(response.body)
        if status in (401, 403) or self._classify(messages.full_message_ids(body)) is BMCAuthError:
            words = messages.sentence(body).replace(self._password or "\0", "***")
            text = f"{self._name} refused the user name or password{f': {words}' if words else '.'}"
            raise self._remember(BMCAuthError, text, self._cooldown)
        full = not _FULL.isdisjoint(messages.message_ids(body))
        if full or status == 503:
            return self._basic(stopgap=True)
        if status < 300 or status in (400, 404, 405, 501):
            return self._basic()
        raise messages.error_for(response, f"Login at {self._name}", self._classify)

    def _basic(self, *, stopgap: bool = False) -> Grant:
        pair = base64.b64encode(f"{self._username}:{self._password}".encode()).decode()
        expires = asyncio.get_running_loop().time() + STOPGAP if stopgap else math.inf
        return Grant({"authorization": f"Basic {pair}"}, basic=True, expires=expires, stopgap=stopgap)


def _session(response: Response) -> Grant:
    body = messages.parse(response.body)
    link = response.headers.get("location") or (body.get("@odata.id") if isinstance(body, dict) else "")
    location = local_path(link) if isinstance(link, str) and link else ""
    return Grant({"x-auth-token": response.headers["x-auth-token"]}, location)
