"""The Authorization header that a registry asks for: Basic, or a token of its token service (distribution-spec).

Credentials are sent over https only: to the registry itself, or to a token service on the registry's own host or one
that `Place.token_services` lists. Docker sends them wherever the registry says, so that a registry can pass them on to
another host. A token is requested for one repository, to pull, and is kept until it expires.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from metal.boot.errors import ImageError
from metal.boot.oci import endpoint
from metal.boot.registry.challenge import Challenge, accepts_basic, parse_bearer
from metal.boot.registry.credentials import Credential
from metal.boot.registry.places import Place

_LARGEST = 64 * 1024
_DAY = 86400.0
_CLIENT = "metal-operator"

Send = Callable[..., Awaitable[aiohttp.ClientResponse]]
"""Sends a request to an URL with the TLS settings and time limits of a place: method, place, URL, options."""


@dataclass(frozen=True)
class _Known:
    header: str = field(repr=False)
    until: float
    credential: Credential | None


class Authorizer:
    """Remembers the header of each repository. Raises ImageError."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._known: dict[str, _Known] = {}

    def known(self, place: Place, credential: Credential | None) -> str:
        """A header that this credential obtained before; empty if there is none that is valid."""
        found = self._known.get(place.name)
        if found is None or found.credential != credential or found.until <= asyncio.get_running_loop().time():
            return ""
        return found.header

    async def obtain(self, place: Place, headers: Sequence[str], credential: Credential | None) -> str:
        """The header for WWW-Authenticate headers; empty if none of them can be answered."""
        challenge = parse_bearer(headers)
        if challenge is not None:
            header, seconds = await self._bearer(place, challenge, credential)
        elif credential is not None and credential.basic and accepts_basic(headers):
            header, seconds = credential.basic, float("inf")
        else:
            return ""
        if len(self._known) >= 1024:
            self._known.pop(next(iter(self._known)))
        self._known[place.name] = _Known(header, asyncio.get_running_loop().time() + seconds * 0.8, credential)
        return header

    async def _bearer(self, place: Place, challenge: Challenge, credential: Credential | None) -> tuple[str, float]:
        if credential is not None and credential.registry_token:
            return f"Bearer {credential.registry_token}", _DAY
        url = checked_url(challenge.realm, f"{place.registry} names no valid token service")
        _check_service(place, url, credential)
        answer = await self._request(place, url, challenge, credential)
        try:
            if answer.status != 200:
                raise _no_token(place, url, answer.status)
            token, seconds = _token_of(await _limited(answer), place)
        finally:
            answer.release()
        return f"Bearer {token}", seconds

    async def _request(
        self, place: Place, url: URL, challenge: Challenge, credential: Credential | None
    ) -> aiohttp.ClientResponse:
        wanted = {"scope": challenge.scope_for(place.repository)}
        if challenge.service:
            wanted["service"] = challenge.service
        if credential is not None and credential.identity_token:
            form = {"grant_type": "refresh_token", "client_id": _CLIENT, "refresh_token": credential.identity_token}
            return await self._send("POST", place, url, data=form | wanted)
        basic: Mapping[str, str] = {"Authorization": credential.basic} if credential is not None else {}
        return await self._send("GET", place, url.update_query(wanted), headers=basic)


def checked_url(text: str, problem: str) -> URL:
    """A URL that a registry names, absolute or relative. Raises ImageError with the problem."""
    try:
        url = URL(text)
    except ValueError:
        raise ImageError("RegistryMisbehaves", problem, transient=True) from None
    if (url.scheme and not url.absolute) or url.raw_user is not None or url.raw_password is not None:
        raise ImageError("RegistryMisbehaves", problem, transient=True)
    return url


def _check_service(place: Place, url: URL, credential: Credential | None) -> None:
    if url.scheme != "https" and (place.scheme == "https" or credential is not None):
        raise ImageError("RegistryMisbehaves", f"{place.registry} requires tokens to be fetched over http")
    own = URL(f"{place.scheme}://{endpoint(place.registry)}").host
    if credential is not None and url.host not in (own, *map(str.lower, place.token_services)):
        raise ImageError(
            "TokenServiceNotAllowed",
            f"{place.registry} requests its credentials to be sent to {url.host}: add that host to tokenServices of "
            f"{place.registry} in registries.servers if it is the registry's token service",
        )


def _no_token(place: Place, url: URL, status: int) -> ImageError:
    problem = f"{place.name}: the token service {url.host} gives no token (HTTP {status})"
    if status >= 500 or status == 429:
        return ImageError("RegistryMisbehaves", problem, transient=True)
    return ImageError("RegistryDenied", problem)


async def _limited(answer: aiohttp.ClientResponse) -> bytes:
    raw = bytearray()
    async for chunk in answer.content.iter_any():
        raw += chunk
        if len(raw) > _LARGEST:
            raise ImageError("RegistryMisbehaves", f"a token service sends more than {_LARGEST} bytes")
    return bytes(raw)


def _token_of(raw: bytes, place: Place) -> tuple[str, float]:
    """The token, and the seconds for which it is valid: 60 where the service does not say."""
    try:
        body: Any = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        body = None
    token = (body.get("token") or body.get("access_token")) if isinstance(body, dict) else None
    if not isinstance(token, str) or not token.isascii() or not token.isprintable():
        raise ImageError("RegistryMisbehaves", f"{place.registry} answered without a token", transient=True)
    seconds = body.get("expires_in")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        return token, 60.0
    return token, min(float(seconds), _DAY)
