"""A read-only client of OCI registries (distribution-spec 1.1).

Only registries from the configuration are contacted, over https, or http where configured. Access is anonymous: a 401
with a Bearer challenge leads to one request for an anonymous token, which is remembered for the repository until it
expires. Redirects are followed within limits, never from https to http, and the token is sent to the registry only.
Manifests and configs are bounded in size and returned only with a verified digest; blobs are streamed unverified to
the cache, which verifies them. Every failure becomes an ImageError that says whether a retry may succeed.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from metal.boot.auth_challenge import parse_bearer
from metal.boot.errors import ImageError
from metal.boot.manifest import INDEXES, MANIFESTS, Descriptor
from metal.boot.oci import Reference, canonical_registry, endpoint

_ACCEPT = ", ".join((*INDEXES, *MANIFESTS))
_REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(frozen=True)
class RegistryClientSettings:
    """Allowed registries, time and size limits."""

    allowed: tuple[str, ...] = ("ghcr.io",)
    """Registries that images may come from, as host or host:port."""
    insecure: tuple[str, ...] = ()
    """Registries that are contacted over http; they need not be listed in `allowed`."""
    connect_seconds: float = 10.0
    """Seconds for a connection to be established."""
    manifest_seconds: float = 30.0
    """Seconds for a whole manifest or config, and until the first byte of a blob."""
    silence_seconds: float = 30.0
    """Seconds without data after which the transfer of a blob fails."""
    blob_seconds: float = 3600.0
    """Seconds for a whole blob."""
    largest_document: int = 4 * 1024 * 1024
    """Bytes of a manifest or config."""
    largest_blob: int = 8 * 1024**3
    """Bytes of a layer."""


@dataclass(frozen=True)
class VerifiedDocument:
    """A document with a verified digest."""

    raw: bytes
    media_type: str
    digest: str


class RegistryClient:
    """Reads manifests and blobs. Every method raises ImageError."""

    def __init__(self, settings: RegistryClientSettings, session: aiohttp.ClientSession | None = None) -> None:
        self._settings = settings
        self._insecure = frozenset(map(canonical_registry, settings.insecure))
        self._allowed = frozenset(map(canonical_registry, settings.allowed)) | self._insecure
        self._session, self._own = session, session is None
        self._tokens: dict[str, tuple[str, float]] = {}

    async def aclose(self) -> None:
        """Close connections."""
        if self._own and self._session is not None:
            await self._session.close()

    def check_allowed(self, image: Reference) -> None:
        """Raises ImageError when the image's registry is not one of the configured ones."""
        if canonical_registry(image.registry) not in self._allowed:
            names = ", ".join(sorted(self._allowed)) or "none"
            raise ImageError(
                "RegistryNotAllowed",
                f"images may come from {names}, not from {image.registry}: add it to the allowed registries",
            )

    async def manifest(self, image: Reference, wanted: str) -> VerifiedDocument:
        """The manifest or index that `wanted` (a tag or a digest) names."""
        async with self._get(image, f"manifests/{wanted}", _ACCEPT) as answer:
            raw = await self._whole(answer, self._settings.largest_document)
            kind = answer.headers.get("Content-Type", "").partition(";")[0].strip()
        claimed = wanted if ":" in wanted else f"sha256:{hashlib.sha256(raw).hexdigest()}"
        return VerifiedDocument(verified(raw, claimed), kind, claimed)

    async def document(self, image: Reference, descriptor: Descriptor) -> bytes:
        """A small blob, with a verified digest."""
        if descriptor.size > self._settings.largest_document:
            raise ImageError("TooLarge", f"{descriptor.media_type} has {descriptor.size} bytes")
        async with self._get(image, f"blobs/{descriptor.digest}") as answer:
            return verified(await self._whole(answer, descriptor.size), descriptor.digest)

    async def blob(self, image: Reference, descriptor: Descriptor) -> AsyncIterator[bytes]:
        """The bytes of a blob, not yet verified."""
        limit = self._settings.largest_blob
        if descriptor.size > limit:
            raise ImageError("TooLarge", f"a layer of {descriptor.size} bytes; {limit} are allowed")
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.blob_seconds
        async with self._get(image, f"blobs/{descriptor.digest}") as answer:
            async for chunk in answer.content.iter_any():
                if loop.time() > deadline:
                    raise TimeoutError
                yield chunk

    async def _whole(self, answer: aiohttp.ClientResponse, limit: int) -> bytes:
        async with asyncio.timeout(self._settings.manifest_seconds):
            return await _limited(answer, limit)

    @asynccontextmanager
    async def _get(self, image: Reference, path: str, accept: str = "*/*") -> AsyncIterator[aiohttp.ClientResponse]:
        self.check_allowed(image)
        where = f"{image.registry}/{image.repository}"
        try:
            async with asyncio.timeout(self._settings.manifest_seconds):
                answer = await self._authorized(image, path, accept)
            try:
                _require_ok(answer, where)
                yield answer
            finally:
                answer.close()
        except TimeoutError:
            raise ImageError("RegistryTimeout", f"{where} did not answer in time", transient=True) from None
        except aiohttp.ClientError as exc:
            raise ImageError("RegistryUnreachable", f"{where}: {_sentence(exc)}", transient=True) from None

    async def _authorized(self, image: Reference, path: str, accept: str) -> aiohttp.ClientResponse:
        token = self._known_token(image)
        answer = await self._request(image, path, accept, token)
        if answer.status != 401:
            return answer
        challenge = answer.headers.get("WWW-Authenticate", "")
        answer.release()
        return await self._request(image, path, accept, await self._token(image, challenge))

    async def _request(self, image: Reference, path: str, accept: str, token: str) -> aiohttp.ClientResponse:
        url = URL(f"{self._scheme(image)}://{endpoint(image.registry)}/v2/{image.repository}/{path}")
        headers = {"Accept": accept, "Accept-Encoding": "identity"}
        origin = url.origin()
        for _ in range(5):
            authorization = {"Authorization": f"Bearer {token}"} if token and url.origin() == origin else {}
            answer = await self._client().get(
                url, headers=headers | authorization, allow_redirects=False, timeout=self._timeout()
            )
            if answer.status not in _REDIRECTS:
                return answer
            target = answer.headers.get("Location", "")
            answer.release()
            url = self._follow(image, url, target)
        raise ImageError("RegistryMisbehaves", f"{image.registry} redirects too often", transient=True)

    def _follow(self, image: Reference, url: URL, target: str) -> URL:
        there = url.join(_url(target, f"{image.registry} redirects to an invalid URL"))
        if there.scheme == "https" or (there.scheme == "http" and there.origin() == url.origin()):
            return there
        raise ImageError("RegistryMisbehaves", f"{image.registry} redirects from https to an http URL of another host")

    def _known_token(self, image: Reference) -> str:
        token, until = self._tokens.get(image.name, ("", 0.0))
        return token if asyncio.get_running_loop().time() < until else ""

    async def _token(self, image: Reference, header: str) -> str:
        challenge = parse_bearer(header)
        if challenge is None:
            raise ImageError("RegistryDenied", f"{image.name} cannot be read without a user name and password")
        url = _url(challenge.realm, f"{image.registry} names no valid token service")
        if url.scheme != "https" and self._scheme(image) == "https":
            raise ImageError("RegistryMisbehaves", f"{image.registry} requires tokens to be fetched over http")
        query = {"scope": f"repository:{image.repository}:pull"}
        if challenge.service:
            query["service"] = challenge.service
        answer = await self._client().get(url.update_query(query), allow_redirects=False, timeout=self._timeout())
        try:
            if answer.status != 200:
                raise ImageError(
                    "RegistryDenied",
                    f"{image.name}: no anonymous token (HTTP {answer.status})",
                    transient=answer.status >= 500,
                )
            token, seconds = _token_of(await _limited(answer, 64 * 1024), image)
        finally:
            answer.release()
        self._tokens[image.name] = (token, asyncio.get_running_loop().time() + seconds * 0.8)
        return token

    def _scheme(self, image: Reference) -> str:
        return "http" if canonical_registry(image.registry) in self._insecure else "https"

    def _timeout(self) -> aiohttp.ClientTimeout:
        return aiohttp.ClientTimeout(
            total=None, sock_connect=self._settings.connect_seconds, sock_read=self._settings.silence_seconds
        )

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar())
        return self._session


def _url(text: str, problem: str) -> URL:
    """A URL that a registry names, absolute or relative. Raises ImageError with the problem."""
    try:
        url = URL(text)
    except ValueError:
        raise ImageError("RegistryMisbehaves", problem, transient=True) from None
    if url.scheme and not url.absolute:
        raise ImageError("RegistryMisbehaves", problem, transient=True)
    return url


def verified(raw: bytes, digest: str) -> bytes:
    """The bytes unchanged. Raises ImageError when they have another digest."""
    algorithm, _, expected = digest.partition(":")
    if hashlib.new(algorithm, raw).hexdigest() != expected:
        raise ImageError("DigestMismatch", f"the content received for {digest} has another digest", transient=True)
    return raw


async def _limited(answer: aiohttp.ClientResponse, limit: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in answer.content.iter_any():
        size += len(chunk)
        if size > limit:
            raise ImageError("TooLarge", f"the registry sends more than the {limit} bytes that are expected")
        chunks.append(chunk)
    return b"".join(chunks)


def _require_ok(answer: aiohttp.ClientResponse, where: str) -> None:
    status = answer.status
    if status == 200:
        return
    if status == 404:
        raise ImageError("ImageNotFound", f"{where} does not have this image or layer")
    if status in (401, 403):
        raise ImageError("RegistryDenied", f"{where} denies read access (HTTP {status})")
    transient = status >= 500 or status == 429
    raise ImageError("RegistryMisbehaves", f"{where} answers HTTP {status}", transient=transient)


def _token_of(raw: bytes, image: Reference) -> tuple[str, float]:
    try:
        body: Any = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        body = None
    token = (body.get("token") or body.get("access_token")) if isinstance(body, dict) else None
    if not isinstance(token, str) or not token.isascii() or not token.isprintable():
        raise ImageError("RegistryMisbehaves", f"{image.registry} answered without a token", transient=True)
    seconds = body.get("expires_in")
    return token, float(seconds) if isinstance(seconds, int) and 0 < seconds < 86400 else 60.0


def _sentence(exc: aiohttp.ClientError) -> str:
    if isinstance(exc, aiohttp.ClientConnectorCertificateError):
        return "its certificate is not trusted"
    if isinstance(exc, aiohttp.ClientConnectorError):
        return f"cannot connect ({exc.os_error.strerror or type(exc.os_error).__name__})"
    return f"the connection broke ({type(exc).__name__})"
