"""Authentication at a simulated BMC: Redfish sessions and basic authentication (DSP0266)."""

import asyncio
import base64
import binascii
import hmac
import random
from collections.abc import Mapping
from dataclasses import dataclass

from metal.sim.options import Options


class Full(Exception):
    """All sessions are in use."""


@dataclass
class Session:
    """One login."""

    id: str
    user: str
    token: str
    used_at: float


class Sessions:
    """The sessions of one BMC. The repr has no token."""

    def __init__(self, options: Options, rng: random.Random) -> None:
        self._options, self._rng = options, rng
        self._by_token: dict[str, Session] = {}

    def __repr__(self) -> str:
        return f"<Sessions {len(self._by_token)}>"

    @property
    def ids(self) -> list[str]:
        """Identifiers of the sessions that are not expired."""
        self._expire()
        return [session.id for session in self._by_token.values()]

    def login(self, user: object, password: object) -> Session | None:
        """A new session; None for wrong credentials. Raises Full."""
        if not self._right(user, password):
            return None
        self._expire()
        if len(self._by_token) >= self._options.max_sessions:
            raise Full
        token = f"{self._rng.getrandbits(128):032x}"
        session = Session(f"{self._rng.getrandbits(32):08x}", str(user), token, self._now())
        self._by_token[token] = session
        return session

    def logout(self, identifier: str) -> bool:
        """End a session by its id; False when there is none."""
        for token, session in self._by_token.items():
            if session.id == identifier:
                del self._by_token[token]
                return True
        return False

    def find(self, identifier: str) -> Session | None:
        """A session by its id."""
        return next((session for session in self._by_token.values() if session.id == identifier), None)

    def clear(self) -> None:
        """End all sessions, as a restart does."""
        self._by_token.clear()

    def allows(self, headers: Mapping[str, str]) -> bool:
        """Whether these headers (names in lower case) have a valid token or valid basic credentials."""
        session = self._by_token.get(headers.get("x-auth-token", ""))
        if session is not None and self._now() - session.used_at <= self._options.session_timeout:
            session.used_at = self._now()
            return True
        scheme, _, value = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "basic":
            return False
        try:
            user, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return False
        return bool(colon) and self._right(user, password)

    def _right(self, user: object, password: object) -> bool:
        same = hmac.compare_digest(str(user).encode(), self._options.username.encode())
        return hmac.compare_digest(str(password).encode(), self._options.password.encode()) and same

    def _expire(self) -> None:
        oldest = self._now() - self._options.session_timeout
        self._by_token = {token: s for token, s in self._by_token.items() if s.used_at >= oldest}

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
