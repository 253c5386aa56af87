"""A disk cache of blobs by digest, bounded in bytes.

A download goes to the folder `incoming`, is verified against digest and size, and is then renamed into `blobs`, so that
`blobs` holds complete files only. Concurrent requests for a blob share one download; cancelling one requester does not
cancel the download. Files of an earlier process are verified once before their first use. When space is needed, the
least recently used blobs are removed, except those that an owner holds or that are being read. Space is needed when
the limit is reached, or when the disk is full. Blocking file operations run in threads.
"""

import asyncio
import errno
import hashlib
import os
import shutil
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from prometheus_client import CollectorRegistry

from metal.boot.errors import ImageError
from metal.boot.manifest import Descriptor
from metal.boot.metrics import CacheMetrics
from metal.boot.oci import is_digest

Source = Callable[[], AsyncIterator[bytes]]
"""Opens the stream of a blob's bytes, from its first one."""

_log = structlog.get_logger(__name__)
_BATCH = 1024 * 1024
_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass
class _Entry:
    size: int
    verified: bool
    """False for a file of an earlier process until its digest was computed."""


@dataclass
class _Download:
    task: "asyncio.Task[Path]"
    size: int
    done: int = 0


class BlobCache:
    """Blobs in `folder`, at most `limit` bytes; the least recently used one that no owner holds is removed first.

    Call `open` before use and `aclose` after. registry, if given, gets the metrics of the cache.
    """

    def __init__(self, folder: Path, limit: int, registry: CollectorRegistry | None = None) -> None:
        self._blobs, self._temporary = folder / "blobs", folder / "incoming"
        self._limit = limit
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._downloads: dict[str, _Download] = {}
        self._verifications: dict[str, asyncio.Task[bool]] = {}
        self._used: dict[str, int] = {}
        self._held: dict[Hashable, frozenset[str]] = {}
        self._metrics = CacheMetrics(registry or CollectorRegistry())
        self._metrics.bytes.set_function(lambda: float(self.bytes))

    def __repr__(self) -> str:
        room = f"bytes={self.bytes} limit={self._limit}"
        return f"<BlobCache blobs={len(self._entries)} {room} downloads={len(self._downloads)}>"

    @property
    def bytes(self) -> int:
        """Bytes in the cache, without downloads in progress."""
        return sum(entry.size for entry in self._entries.values())

    async def open(self) -> None:
        """Create the folders, remove unfinished downloads, and list the blobs of an earlier process."""
        found = await asyncio.to_thread(self._scan)
        self._entries = OrderedDict((digest, _Entry(size, verified=False)) for digest, size in found)
        self._make_room(0)

    async def aclose(self) -> None:
        """Stop downloads."""
        tasks = [*(download.task for download in self._downloads.values()), *self._verifications.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def get(self, digest: str) -> Path | None:
        """The file of a cached blob, or None. A damaged file is removed."""
        entry = self._entries.get(digest)
        if entry is None:
            return None
        path = self._path(digest)
        if not entry.verified and not await asyncio.shield(self._verification(digest, entry)):
            return None
        if digest in self._entries:
            self._entries.move_to_end(digest)
        self._metrics.requests.labels("hit").inc()
        return path

    def has(self, digest: str) -> bool:
        """Whether the blob is cached."""
        return digest in self._entries

    def progress(self, digest: str) -> tuple[int, int] | None:
        """Bytes done and total bytes of a download in progress, else None."""
        download = self._downloads.get(digest)
        return None if download is None else (download.done, download.size)

    async def ensure(self, blob: Descriptor, source: Source) -> Path:
        """The file of a blob, downloaded if necessary. Raises ImageError."""
        if path := await self.get(blob.digest):
            return path
        return await asyncio.shield(self.start(blob, source))

    def start(self, blob: Descriptor, source: Source) -> "asyncio.Task[Path]":
        """Start a download, or join the one in progress."""
        download = self._downloads.get(blob.digest)
        if download is None:
            self._metrics.requests.labels("miss").inc()
            reserved = sum(other.size for other in self._downloads.values())
            fetching = self._fetch(blob, source, reserved)
            task = asyncio.get_running_loop().create_task(fetching, name=f"blob {blob.digest[:19]}")
            download = self._downloads[blob.digest] = _Download(task, blob.size)
            task.add_done_callback(lambda task: self._finished(blob.digest, task))
        return download.task

    def hold(self, owner: Hashable, digests: Collection[str]) -> None:
        """Keep these blobs for `owner`, in place of those it held before."""
        self._held[owner] = frozenset(digests)

    def release(self, owner: Hashable) -> None:
        """Release all blobs of an owner."""
        self._held.pop(owner, None)

    def held(self, owners: Callable[[Hashable], bool]) -> dict[str, int]:
        """Blobs that these owners hold, with their bytes, as far as they are cached or being downloaded."""
        digests = set().union(*(held for owner, held in self._held.items() if owners(owner)))
        sizes = {digest: entry.size for digest, entry in self._entries.items()}
        sizes |= {digest: download.size for digest, download in self._downloads.items()}
        return {digest: sizes[digest] for digest in digests if digest in sizes}

    @contextmanager
    def use(self, digest: str) -> Iterator[None]:
        """Keep a blob while it is being read."""
        self._used[digest] = self._used.get(digest, 0) + 1
        try:
            yield
        finally:
            self._used[digest] -= 1
            if not self._used[digest]:
                del self._used[digest]

    def _verification(self, digest: str, entry: _Entry) -> "asyncio.Task[bool]":
        """One verification for all requesters; it outlives a requester that times out."""
        task = self._verifications.get(digest)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._verify(digest, entry), name=f"verify {digest[:19]}")
            self._verifications[digest] = task
            task.add_done_callback(lambda _: self._verifications.pop(digest, None))
        return task

    async def _verify(self, digest: str, entry: _Entry) -> bool:
        with self.use(digest):
            entry.verified = await asyncio.to_thread(_has_digest, self._path(digest), digest)
        if not entry.verified:
            _log.warning("cached blob is damaged, removing it", digest=digest)
            self._remove(digest)
        return entry.verified

    async def _fetch(self, blob: Descriptor, source: Source, reserved: int) -> Path:
        temporary = self._temporary / self._path(blob.digest).name
        try:
            self._make_room(blob.size + reserved)
            await self._free_disk(blob.size)
            await self._receive(blob, source, temporary)
            await asyncio.to_thread(os.replace, temporary, self._path(blob.digest))
        except OSError as exc:
            if exc.errno in _FULL:
                raise self._disk_full(blob.size) from None
            raise
        finally:
            _discard(temporary)
        self._entries[blob.digest] = _Entry(blob.size, verified=True)
        self._metrics.downloaded.inc(blob.size)
        return self._path(blob.digest)

    async def _receive(self, blob: Descriptor, source: Source, temporary: Path) -> None:
        download = self._downloads[blob.digest]
        digester = hashlib.new(blob.digest.partition(":")[0])
        with await asyncio.to_thread(temporary.open, "wb") as file:
            async for batch in _batches(source()):
                download.done += len(batch)
                if download.done > blob.size:
                    raise ImageError(
                        "DigestMismatch", f"{blob.digest} is longer than its {blob.size} bytes", transient=True
                    )
                digester.update(batch)
                await asyncio.to_thread(file.write, batch)
            if download.done != blob.size:
                problem = f"the download of {blob.digest} ended after {download.done} of {blob.size} bytes"
                raise ImageError("DownloadTruncated", problem, transient=True)
            if digester.hexdigest() != blob.digest.partition(":")[2]:
                raise ImageError(
                    "DigestMismatch", f"the content received for {blob.digest} has another digest", transient=True
                )
            await asyncio.to_thread(_sync, file)

    def _finished(self, digest: str, task: "asyncio.Task[Path]") -> None:
        self._downloads.pop(digest, None)
        if task.cancelled():
            return
        problem = task.exception()
        self._metrics.downloads.labels("succeeded" if problem is None else "failed").inc()
        if problem is not None:
            _log.warning("download failed", digest=digest, error=str(problem))

    def _make_room(self, wanted: int) -> None:
        for digest in self._unneeded():
            if self.bytes + wanted <= self._limit:
                return
            self._remove(digest)
        if self.bytes + wanted > self._limit and wanted:
            problem = (
                f"the image cache is full: {wanted} more bytes do not fit into {self._limit} beside those in use: "
                "raise registries.cacheSize, or delete claims"
            )
            raise ImageError("CacheFull", problem, transient=True)

    async def _free_disk(self, wanted: int) -> None:
        """Remove blobs that nobody needs until so many bytes are free, beside downloads in progress."""
        pending = sum(download.size - download.done for download in self._downloads.values())
        free = (await asyncio.to_thread(shutil.disk_usage, self._temporary)).free
        for digest in self._unneeded():
            if free >= max(wanted, pending):
                return
            free += self._entries[digest].size
            self._remove(digest)
        if free < wanted:
            raise self._disk_full(wanted)

    def _disk_full(self, wanted: int) -> ImageError:
        problem = (
            f"the disk of the image cache ({self._blobs.parent}) is full: {wanted} bytes are needed, and all images in "
            "it are in use. Free or add disk space, or delete claims"
        )
        return ImageError("DiskFull", problem, transient=True)

    def _unneeded(self) -> list[str]:
        """Blobs that no owner holds and nobody reads, the least recently used first."""
        kept = set(self._used).union(*self._held.values())
        return [digest for digest in self._entries if digest not in kept]

    def _remove(self, digest: str) -> None:
        self._entries.pop(digest, None)
        _discard(self._path(digest))

    def _path(self, digest: str) -> Path:
        if not is_digest(digest):
            raise ValueError("not a digest")
        return self._blobs / digest.replace(":", "-")

    def _scan(self) -> list[tuple[str, int]]:
        for folder in (self._blobs, self._temporary):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for leftover in self._temporary.iterdir():
            leftover.unlink()
        found = [(path.name.replace("-", ":", 1), path.stat()) for path in self._blobs.iterdir()]
        return [
            (name, stat.st_size) for name, stat in sorted(found, key=lambda pair: pair[1].st_mtime) if is_digest(name)
        ]


async def _batches(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Larger chunks, because each write to disk is a call in a thread."""
    pending = bytearray()
    try:
        async for chunk in stream:
            pending += chunk
            if len(pending) >= _BATCH:
                yield bytes(pending)
                pending.clear()
    finally:
        close: Any = getattr(stream, "aclose", None)
        if close is not None:
            await close()
    if pending:
        yield bytes(pending)


def _discard(path: Path) -> None:
    with suppress(FileNotFoundError):
        path.unlink()


def _sync(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def _has_digest(path: Path, digest: str) -> bool:
    algorithm, _, expected = digest.partition(":")
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, algorithm).hexdigest() == expected
    except FileNotFoundError:
        return False
