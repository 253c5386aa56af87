"""Images: resolves references, pins them by digest, and downloads their blobs into the cache."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from metal.boot import manifest as documents
from metal.boot.cache import BlobCache
from metal.boot.errors import ImageError
from metal.boot.manifest import Descriptor, Document, Parts
from metal.boot.oci import BadReference, Reference, parse
from metal.boot.plan import Blob, Plan
from metal.boot.registry_client import RegistryClient

DEEPEST = 4
"""Most indexes on the way to a manifest."""
MOST_DOCUMENTS = 16
"""Most indexes and manifests that are read to find the manifest for an architecture."""


@dataclass(frozen=True)
class Image:
    """A resolved image; `pinned` names its manifest by digest."""

    pinned: Reference
    parts: Parts
    command_line: str = ""
    architecture: str = ""
    """The architecture that the manifest or its config names; empty if none."""
    chain: tuple[str, ...] = ()
    """Digests from what the reference names to the manifest. Who signs one of them signs the image."""

    def plan(self, *, ignition: bool) -> Plan:
        """The boot plan for this image."""
        squashfs = self.parts.squashfs
        return Plan(
            kernel=Blob(self.pinned, self.parts.kernel.digest),
            initramfs=Blob(self.pinned, self.parts.initramfs.digest),
            squashfs=Blob(self.pinned, squashfs.digest) if squashfs else None,
            command_line=self.command_line,
            ignition=ignition,
        )


@dataclass(frozen=True)
class Progress:
    """How much of an image is downloaded, in bytes."""

    done: int
    total: int
    complete: bool = False
    """Whether every blob is downloaded and verified."""
    failure: ImageError | None = None
    """The error that stopped a download."""


class Images(Protocol):
    """A source of images. The simulator has its own implementation."""

    async def resolve(self, reference: str, architecture: str, *, pinned: bool = False) -> Image:
        """Resolve a reference for an architecture.

        Raises ImageError, also when it is not signed as the configuration requires.
        pinned: it is the result of an earlier resolution; neither architecture nor signature is checked again.
        """
        ...

    def prefetch(self, owner: str, image: Image, wake: Callable[[], None]) -> Progress:
        """Download missing blobs in the background and keep them for `owner`; calls `wake` when a download ends."""
        ...

    def keep(self, owner: str, digests: Collection[str]) -> bool:
        """Keep these blobs for `owner` as far as they are cached; returns whether all are."""
        ...

    def release(self, owner: str) -> None:
        """Release all blobs of an owner."""
        ...

    async def open(self, blob: Blob) -> Path:
        """The verified file of a blob, downloaded if necessary. Raises ImageError."""
        ...

    def use(self, digest: str) -> AbstractContextManager[None]:
        """Keep a blob while it is being read."""
        ...


@dataclass(frozen=True)
class Quota:
    """How much of the cache the owners of one namespace may hold."""

    size: int = 0
    """Bytes; 0 for any number. A blob that several owners hold counts once."""
    exempt: frozenset[str] = frozenset()
    """Namespaces without a quota, such as that of the probe's boots."""


_Wanted = tuple[str, str, bool]
FetchDocument = Callable[[str], Awaitable[tuple[str, str, Document]]]
"""Reads a manifest or an index by tag or digest: its digest, its media type and its content."""


class RegistryImages:
    """Images from OCI registries, kept in a disk cache."""

    def __init__(self, remote: RegistryClient, cache: BlobCache, quota: Quota | None = None) -> None:
        self._quota = quota or Quota()
        self._remote, self._cache = remote, cache
        self._resolving: dict[_Wanted, asyncio.Task[Image]] = {}
        self._pinned: dict[str, Image] = {}
        self._waiting: dict[str, dict[str, Callable[[], None]]] = {}
        self._failures: dict[tuple[str, str], ImageError] = {}

    async def start(self) -> None:
        """Open the cache."""
        await self._cache.open()

    async def aclose(self) -> None:
        """Stop downloads and close connections."""
        for task in list(self._resolving.values()):
            task.cancel()
        await self._cache.aclose()
        await self._remote.aclose()

    async def resolve(self, reference: str, architecture: str, *, pinned: bool = False) -> Image:
        """Resolve a reference; concurrent callers share one request. Raises ImageError."""
        if pinned and reference in self._pinned:
            return self._pinned[reference]
        wanted = (reference, architecture, pinned)
        task = self._resolving.get(wanted)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._resolve(*wanted), name=f"resolve {reference}")
            self._resolving[wanted] = task
            task.add_done_callback(lambda task: self._resolved(wanted, task))
        return await asyncio.shield(task)

    def prefetch(self, owner: str, image: Image, wake: Callable[[], None]) -> Progress:
        """Download missing blobs in the background and keep them for `owner`; calls `wake` when a download ends."""
        blobs = image.parts.blobs
        if problem := self._over_quota(owner, blobs):
            return Progress(0, sum(blob.size for blob in blobs), failure=problem)
        self._cache.hold(owner, [blob.digest for blob in blobs])
        missing = [blob for blob in blobs if not self._cache.has(blob.digest)]
        done, failure = sum(blob.size for blob in blobs if blob not in missing), None
        for blob in missing:
            if problem := self._failures.pop((owner, blob.digest), None):
                failure = problem  # reported once; the next call starts a new download
                continue
            self._begin(image.pinned, blob)
            self._waiting[blob.digest][owner] = wake
            progress = self._cache.progress(blob.digest)
            done += progress[0] if progress else 0
        return Progress(done, sum(blob.size for blob in blobs), not missing, failure)

    def _over_quota(self, owner: str, blobs: tuple[Descriptor, ...]) -> ImageError | None:
        namespace, quota = owner.rpartition("/")[0], self._quota
        if not quota.size or namespace in quota.exempt:
            return None
        held = self._cache.held(lambda other: other != owner and str(other).rpartition("/")[0] == namespace)
        needed = sum((held | {blob.digest: blob.size for blob in blobs}).values())
        if needed <= quota.size:
            return None
        problem = (
            f"the images of namespace {namespace} need {needed} bytes of the image cache, {quota.size} are allowed: "
            "delete claims of this namespace or use fewer images, or raise registries.namespaceQuota"
        )
        return ImageError("QuotaExceeded", problem, transient=True)

    def keep(self, owner: str, digests: Collection[str]) -> bool:
        """Keep these blobs for `owner` as far as they are cached; returns whether all are."""
        self._cache.hold(owner, digests)
        return all(map(self._cache.has, digests))

    def release(self, owner: str) -> None:
        """Release all blobs of an owner."""
        self._cache.release(owner)
        self._failures = {key: problem for key, problem in self._failures.items() if key[0] != owner}

    async def open(self, blob: Blob) -> Path:
        """The verified file of a blob, downloaded if necessary. Raises ImageError."""
        if path := await self._cache.get(blob.digest):
            return path
        image = await self.resolve(str(blob.image), "", pinned=True)
        parts = (*image.parts.blobs, image.parts.uki)
        found = next((part for part in parts if part and part.digest == blob.digest), None)
        if found is None:
            raise ImageError("ImageNotFound", f"{blob.image.name} has no layer {blob.digest}")
        return await self._cache.ensure(found, self._source(image.pinned, found))

    def use(self, digest: str) -> AbstractContextManager[None]:
        """Keep a blob while it is being read."""
        return self._cache.use(digest)

    def _begin(self, image: Reference, blob: Descriptor) -> None:
        if blob.digest in self._waiting:
            return
        self._waiting[blob.digest] = {}
        task = self._cache.start(blob, self._source(image, blob))
        task.add_done_callback(lambda task: self._ended(blob.digest, task))

    def _ended(self, digest: str, task: asyncio.Task[Path]) -> None:
        waiting = self._waiting.pop(digest)
        problem = None if task.cancelled() else task.exception()
        for owner, wake in waiting.items():
            if problem is not None:
                self._failures[owner, digest] = _as_image_error(problem)
            wake()

    def _source(self, image: Reference, blob: Descriptor) -> Callable[[], AsyncIterator[bytes]]:
        return partial(self._remote.blob, image, blob)

    async def _resolve(self, reference: str, architecture: str, pinned: bool) -> Image:
        image = self._pinned.get(reference) or await self._fetch(reference, architecture)
        if not pinned and len(image.chain) == 1 and image.architecture not in ("", architecture):
            raise documents.architecture_missing(architecture, (image.architecture,))
        if not pinned:
            await self._remote.check_signature(image.pinned, image.chain)
        return image

    async def _fetch(self, reference: str, architecture: str) -> Image:
        try:
            image = parse(reference)
        except BadReference as exc:
            raise ImageError("BadReference", str(exc)) from None
        document, chain = await find_manifest(partial(self._document, image), image.wanted, architecture)
        parts, config = documents.parts(document), documents.Config()
        if parts.config is not None:
            raw = await self._remote.document(image, parts.config)
            config = documents.read_config(raw, parts.config.media_type)
        stated = config.architecture or documents.stated(document.annotations)
        return Image(image.pinned(chain[-1]), parts, config.command_line, stated, chain)

    async def _document(self, image: Reference, name: str) -> tuple[str, str, Document]:
        fetched = await self._remote.manifest(image, name)
        return fetched.digest, fetched.media_type, documents.parse(fetched.raw, fetched.media_type)

    def _resolved(self, wanted: _Wanted, task: asyncio.Task[Image]) -> None:
        self._resolving.pop(wanted, None)
        if task.cancelled() or task.exception() is not None:
            return
        image = task.result()
        if len(self._pinned) >= 256:
            self._pinned.pop(next(iter(self._pinned)))
        digest = image.pinned.digest
        self._pinned[str(image.pinned)] = replace(image, chain=(digest,))  # the content of a digest never changes


async def find_manifest(fetch: FetchDocument, name: str, architecture: str) -> tuple[Document, tuple[str, ...]]:
    """The manifest for an architecture, and the digests on the way to it. Raises ImageError.

    `name` is a tag or a digest of a manifest, or of an index whose nested indexes are searched depth first. An index
    is read once, however often others name it.
    """
    todo: list[tuple[str, tuple[str, ...]]] = [(name, ())]
    seen, offered = set[str](), set[str]()
    while todo:
        name, above = todo.pop()
        if name in seen:
            continue
        if len(seen) >= MOST_DOCUMENTS or len(above) > DEEPEST:
            problem = f"its indexes are nested more than {DEEPEST} deep, or more than {MOST_DOCUMENTS} of them"
            raise ImageError("ManifestInvalid", f"the image for {architecture} was not found: {problem}")
        seen.add(name)
        digest, media_type, document = await fetch(name)
        chain = (*above, digest)
        if not documents.is_index(document, media_type):
            return document, chain
        offered |= documents.offered(document)
        todo += [(entry.digest, chain) for entry in reversed(documents.candidates(document, architecture))]
    raise documents.architecture_missing(architecture, offered)


def _as_image_error(problem: BaseException) -> ImageError:
    if isinstance(problem, ImageError):
        return problem
    return ImageError("DownloadFailed", f"{type(problem).__name__}: {problem}", transient=True)
