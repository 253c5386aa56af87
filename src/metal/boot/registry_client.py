"""A read-only client of OCI registries (distribution-spec 1.1).

Only registries from the configuration and their mirrors are contacted, over https, or http where configured. An image
is read from the first of its places (mirrors, then the registry) that has it. Access is anonymous, or with the
credentials that the configuration has for the repository; a 401 leads to Basic authentication or to one request for a
token (`metal.boot.registry.authorization`). When a registry rejects credentials, they are read again, and tried again
if they have changed. Redirects are followed within limits, never from https to http, and the Authorization header is
sent to the registry only. Manifests and configs are bounded in size and returned only with a verified digest; blobs
are streamed to the cache, which verifies them. Every failure becomes an ImageError that says whether a retry may
succeed, which places were tried, and with which credentials, by the name of their entry.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import aiohttp
from yarl import URL

from metal.boot.errors import ImageError
from metal.boot.manifest import INDEXES, MANIFESTS, Descriptor
from metal.boot.oci import Reference, canonical_registry
from metal.boot.registry.authorization import Authorizer, checked_url
from metal.boot.registry.credentials import Credential, Credentials, CredentialSource
from metal.boot.registry.places import Place, Places
from metal.boot.registry.settings import RegistryClientSettings
from metal.boot.registry.signatures import Signatures

T = TypeVar("T")
_ACCEPT = ", ".join((*INDEXES, *MANIFESTS))
_REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(frozen=True)
class VerifiedDocument:
    """A document with a verified digest."""

    raw: bytes
    media_type: str
    digest: str


class RegistryClient:
    """Reads manifests and blobs. Every method raises ImageError."""

    def __init__(
        self,
        settings: RegistryClientSettings,
        session: aiohttp.ClientSession | None = None,
        credentials: Sequence[CredentialSource] = (),
    ) -> None:
        self._settings = settings
        self._allowed = frozenset(map(canonical_registry, (*settings.allowed, *settings.insecure)))
        self._session, self._own = session, session is None
        self._places = Places(settings)
        self._credentials = Credentials(credentials)
        self._authorizer = Authorizer(self._send)
        self._signatures = Signatures(settings.keys, self)

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

    async def check_signature(self, image: Reference, digests: Sequence[str]) -> None:
        """Raises ImageError unless one of the digests is signed with a configured key, or no key is configured."""
        await self._signatures.require(image, digests)

    async def manifest(self, image: Reference, wanted: str) -> VerifiedDocument:
        """The manifest or index that `wanted` (a tag or a digest) names."""

        async def read(place: Place) -> VerifiedDocument:
            async with self._opened(place, f"manifests/{wanted}", _ACCEPT) as answer:
                raw = await self._whole(answer, self._settings.largest_document)
                kind = answer.headers.get("Content-Type", "").partition(";")[0].strip()
            claimed = wanted if ":" in wanted else f"sha256:{hashlib.sha256(raw).hexdigest()}"
            return VerifiedDocument(verified(raw, claimed), kind, claimed)

        return await self._first(image, read)

    async def document(self, image: Reference, descriptor: Descriptor) -> bytes:
        """A small blob, with a verified digest."""
        if descriptor.size > self._settings.largest_document:
            raise ImageError("TooLarge", f"{descriptor.media_type} has {descriptor.size} bytes")

        async def read(place: Place) -> bytes:
            async with self._opened(place, f"blobs/{descriptor.digest}") as answer:
                return verified(await self._whole(answer, descriptor.size), descriptor.digest)

        return await self._first(image, read)

    async def blob(self, image: Reference, descriptor: Descriptor) -> AsyncIterator[bytes]:
        """The bytes of a blob, not yet verified. A place that breaks off or sends other bytes comes last next time."""
        limit = self._settings.largest_blob
        if descriptor.size > limit:
            raise ImageError("TooLarge", f"a layer of {descriptor.size} bytes; {limit} are allowed")
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.blob_seconds
        found: list[Place] = []
        try:
            async with AsyncExitStack() as stack:

                async def enter(place: Place) -> aiohttp.ClientResponse:
                    answer = await stack.enter_async_context(self._opened(place, f"blobs/{descriptor.digest}"))
                    found.append(place)
                    return answer

                answer = await self._first(image, enter)
                check = _Check(descriptor, active=len(self._places.of(image)) > 1)
                async for chunk in answer.content.iter_any():
                    if loop.time() > deadline:
                        raise TimeoutError
                    check.add(chunk)
                    yield chunk
                check.end()
        except ImageError as exc:
            for place in found:
                self._places.failed(place, exc)
            raise

    async def _first(self, image: Reference, read: Callable[[Place], Awaitable[T]]) -> T:
        """What the first place has that does not fail. Raises the error of all places, transient if one is."""
        self.check_allowed(image)
        failures: list[ImageError] = []
        for place in self._places.of(image):
            try:
                return await read(place)
            except ImageError as exc:
                self._places.failed(place, exc)
                failures.append(exc)
        shown = next((exc for exc in failures if exc.transient), failures[-1])
        raise ImageError(shown.reason, "; ".join(map(str, failures)), transient=shown.transient)

    async def _whole(self, answer: aiohttp.ClientResponse, limit: int) -> bytes:
        async with asyncio.timeout(self._settings.manifest_seconds):
            return await _limited(answer, limit)

    @asynccontextmanager
    async def _opened(self, place: Place, path: str, accept: str = "*/*") -> AsyncIterator[aiohttp.ClientResponse]:
        async with self._places.slot(place):
            try:
                async with asyncio.timeout(self._settings.manifest_seconds):
                    answer = await self._authorized(place, path, accept)
                try:
                    yield answer
                finally:
                    answer.close()
            except TimeoutError:
                raise ImageError("RegistryTimeout", f"{place.name} did not answer in time", transient=True) from None
            except aiohttp.ClientError as exc:
                raise ImageError(
                    "RegistryUnreachable", f"{place.name}: {_sentence(exc, place)}", transient=True
                ) from None

    async def _authorized(self, place: Place, path: str, accept: str) -> aiohttp.ClientResponse:
        """The answer with status 200. Credentials that are rejected are read again, and used if they have changed."""
        credential = await self._credential(place)
        try:
            return await self._attempt(place, path, accept, credential)
        except ImageError as exc:
            if exc.reason != "RegistryDenied":
                raise self._with_tried(exc, place, credential) from None
            fresh = await self._credential(place, rejected=True)
            if fresh == credential:
                raise self._with_tried(exc, place, credential) from None
        try:
            return await self._attempt(place, path, accept, fresh)
        except ImageError as exc:
            raise self._with_tried(exc, place, fresh) from None

    async def _credential(self, place: Place, *, rejected: bool = False) -> Credential | None:
        """Credentials are not sent over http."""
        return await self._credentials.of(place.name, rejected=rejected) if place.scheme == "https" else None

    def _with_tried(self, exc: ImageError, place: Place, credential: Credential | None) -> ImageError:
        """The error with the credentials that were tried, if they may be the cause; transient while a source fails."""
        if exc.reason not in ("RegistryDenied", "ImageNotFound"):
            return exc
        problem = self._credentials.problem
        tried = str(credential) if credential is not None else "no credentials"
        if credential is None and place.scheme == "http":
            tried += ", because none are sent over http"
        more = f"; {problem}" if problem else ""
        transient = exc.transient or (bool(problem) and exc.reason == "RegistryDenied")
        return ImageError(exc.reason, f"{exc} (tried with {tried}{more})", transient=transient)

    async def _attempt(
        self, place: Place, path: str, accept: str, credential: Credential | None
    ) -> aiohttp.ClientResponse:
        answer = await self._request(place, path, accept, self._authorizer.known(place, credential))
        if answer.status == 401:
            challenges = answer.headers.getall("WWW-Authenticate", [])
            answer.release()
            header = await self._authorizer.obtain(place, challenges, credential)
            if not header:
                raise ImageError("RegistryDenied", f"{place.name} cannot be read without a user name and password")
            answer = await self._request(place, path, accept, header)
        try:
            _require_ok(answer, place.name)
        except ImageError:
            answer.release()
            raise
        return answer

    async def _request(self, place: Place, path: str, accept: str, authorization: str) -> aiohttp.ClientResponse:
        url = URL(f"{place.base_url}{path}")
        headers = {"Accept": accept, "Accept-Encoding": "identity"}
        origin = url.origin()
        for _ in range(5):
            own = {"Authorization": authorization} if authorization and url.origin() == origin else {}
            answer = await self._send("GET", place, url, headers=headers | own)
            if answer.status not in _REDIRECTS:
                return answer
            target = answer.headers.get("Location", "")
            answer.release()
            url = self._follow(place, url, target)
        raise ImageError("RegistryMisbehaves", f"{place.registry} redirects too often", transient=True)

    def _follow(self, place: Place, url: URL, target: str) -> URL:
        there = url.join(checked_url(target, f"{place.registry} redirects to an invalid URL"))
        if there.scheme == "https" or (there.scheme == "http" and there.origin() == url.origin()):
            return there
        raise ImageError("RegistryMisbehaves", f"{place.registry} redirects from https to an http URL of another host")

    async def _send(self, method: str, place: Place, url: URL, **options: Any) -> aiohttp.ClientResponse:
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=self._settings.connect_seconds, sock_read=self._settings.silence_seconds
        )
        tls = self._places.tls(place)
        return await self._client().request(method, url, ssl=tls, allow_redirects=False, timeout=timeout, **options)

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar())
        return self._session


class _Check:
    """Verifies a blob while it is streamed, where another place may have the right one."""

    def __init__(self, descriptor: Descriptor, *, active: bool) -> None:
        algorithm, _, self._expected = descriptor.digest.partition(":")
        self._digest, self._digester, self._left = descriptor.digest, hashlib.new(algorithm), descriptor.size
        self._active = active

    def add(self, chunk: bytes) -> None:
        """Raises ImageError when the blob is too long."""
        if self._active:
            self._left -= len(chunk)
            self._digester.update(chunk)
            if self._left < 0:
                raise self._mismatch()

    def end(self) -> None:
        """Raises ImageError when the blob has another digest."""
        if self._active and self._digester.hexdigest() != self._expected:
            raise self._mismatch()

    def _mismatch(self) -> ImageError:
        return ImageError(
            "DigestMismatch", f"the content received for {self._digest} has another digest", transient=True
        )


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


def _sentence(exc: aiohttp.ClientError, place: Place) -> str:
    if isinstance(exc, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: set caFile of {place.registry} in registries.servers"
    if isinstance(exc, aiohttp.ClientConnectorError):
        return f"cannot connect ({exc.os_error.strerror or type(exc.os_error).__name__})"
    return f"the connection broke ({type(exc).__name__})"
