"""Images: resolves references, pins them by digest, and downloads their blobs into the cache."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from metal.boot import manifest as documents
from metal.boot.cache import BlobCache
from metal.boot.errors import ImageError
from metal.boot.manifest import Descriptor, Parts
from metal.boot.oci import BadReference, Reference, parse
from metal.boot.plan import Blob, Plan
from metal.boot.registry_client import RegistryClient


@dataclass(frozen=True)
class Image:
    """A resolved image; `pinned` names its manifest by digest."""

    pinned: Reference
    parts: Parts
    command_line: str = ""
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

    async def resolve(self, reference: str, *, pinned: bool = False) -> Image:
        """Resolve a reference. Raises ImageError, also when it is not signed as the configuration requires.

        pinned: it is the result of an earlier resolution, and its signature is not checked again.
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


class RegistryImages:
    """Images from OCI registries, kept in a disk cache."""

    def __init__(self, remote: RegistryClient, cache: BlobCache, architecture: str = "amd64") -> None:
        self._remote, self._cache, self._architecture = remote, cache, architecture
        self._resolving: dict[tuple[str, bool], asyncio.Task[Image]] = {}
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

    async def resolve(self, reference: str, *, pinned: bool = False) -> Image:
        """Resolve a reference; concurrent callers share one request. Raises ImageError."""
        if pinned and reference in self._pinned:
            return self._pinned[reference]
        key = (reference, pinned)
        task = self._resolving.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._resolve(*key), name=f"resolve {reference}")
            self._resolving[key] = task
            task.add_done_callback(lambda task: self._resolved(key, task))
        return await asyncio.shield(task)

    def prefetch(self, owner: str, image: Image, wake: Callable[[], None]) -> Progress:
        """Download missing blobs in the background and keep them for `owner`; calls `wake` when a download ends."""
        blobs = image.parts.blobs
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
        image = await self.resolve(str(blob.image), pinned=True)
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

    async def _resolve(self, reference: str, pinned: bool) -> Image:
        image = self._pinned.get(reference) or await self._fetch(reference)
        if not pinned:
            await self._remote.check_signature(image.pinned, image.chain)
        return image

    async def _fetch(self, reference: str) -> Image:
        try:
            image = parse(reference)
        except BadReference as exc:
            raise ImageError("BadReference", str(exc)) from None
        fetched = await self._remote.manifest(image, image.wanted)
        document, chain = documents.parse(fetched.raw, fetched.media_type), [fetched.digest]
        if documents.is_index(document, fetched.media_type):
            entry = documents.choose(document, self._architecture)
            fetched = await self._remote.manifest(image, entry.digest)
            document = documents.parse(fetched.raw, fetched.media_type)
            if documents.is_index(document, fetched.media_type):
                raise ImageError("ManifestInvalid", "the index points to another index")
            chain.append(fetched.digest)
        parts = documents.parts(document)
        line = ""
        if parts.config is not None:
            line = documents.command_line(await self._remote.document(image, parts.config))
        return Image(image.pinned(fetched.digest), parts, line, tuple(chain))

    def _resolved(self, key: tuple[str, bool], task: asyncio.Task[Image]) -> None:
        self._resolving.pop(key, None)
        if task.cancelled() or task.exception() is not None:
            return
        image = task.result()
        if len(self._pinned) >= 256:
            self._pinned.pop(next(iter(self._pinned)))
        digest = image.pinned.digest
        self._pinned[str(image.pinned)] = replace(image, chain=(digest,))  # the content of a digest never changes


def _as_image_error(problem: BaseException) -> ImageError:
    if isinstance(problem, ImageError):
        return problem
    return ImageError("DownloadFailed", f"{type(problem).__name__}: {problem}", transient=True)
