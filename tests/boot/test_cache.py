"""The blob cache."""

import asyncio
import errno
import os
import shutil
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry

from metal.boot.cache import BlobCache
from metal.boot.errors import ImageError
from metal.boot.manifest import Descriptor
from tests.boot.registry import digest

pytestmark = pytest.mark.looptime


def blob(content: bytes) -> Descriptor:
    return Descriptor("application/octet-stream", digest(content), len(content))


class Source:
    """Yields content in chunks and counts how often it was opened; may fail."""

    def __init__(self, *pieces: bytes, error: Exception | None = None, pause: float = 0.0) -> None:
        self.pieces, self.error, self.pause, self.opened = pieces, error, pause, 0

    async def __call__(self) -> AsyncIterator[bytes]:
        self.opened += 1
        for piece in self.pieces:
            await asyncio.sleep(self.pause)
            yield piece
        if self.error is not None:
            raise self.error


def opened(source: Source) -> Callable[[], AsyncIterator[bytes]]:
    return source.__call__


async def make(folder: Path, limit: int = 1000) -> BlobCache:
    cache = BlobCache(folder, limit)
    await cache.open()
    return cache


def leftovers(folder: Path) -> list[Path]:
    return list((folder / "incoming").iterdir())


async def test_a_blob_is_there_after_its_download(tmp_path: Path) -> None:
    """Its file has exactly its bytes."""
    cache = await make(tmp_path)
    path = await cache.ensure(blob(b"hello world"), opened(Source(b"hello ", b"world")))
    assert path.read_bytes() == b"hello world"
    assert await cache.get(digest(b"hello world")) == path
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(
    ("pieces", "reason"),
    [((b"hello w0rld",), "DigestMismatch"), ((b"hello world!",), "DigestMismatch"), ((b"hello",), "DownloadTruncated")],
)
async def test_wrong_bytes_never_become_a_blob(tmp_path: Path, pieces: tuple[bytes, ...], reason: str) -> None:
    """Wrong, surplus or missing bytes: nothing is served and no file is left."""
    cache = await make(tmp_path)
    with pytest.raises(ImageError) as caught:
        await cache.ensure(blob(b"hello world"), opened(Source(*pieces)))
    assert caught.value.reason == reason
    assert caught.value.transient
    assert await cache.get(digest(b"hello world")) is None
    assert leftovers(tmp_path) == []


async def test_a_hundred_askers_cause_one_download(tmp_path: Path) -> None:
    """A request during the download joins it."""
    cache = await make(tmp_path)
    source = Source(b"hello ", b"world", pause=1.0)
    paths = await asyncio.gather(*(cache.ensure(blob(b"hello world"), opened(source)) for _ in range(100)))
    assert source.opened == 1
    assert len(set(paths)) == 1


async def test_an_asker_that_goes_away_does_not_stop_the_others(tmp_path: Path) -> None:
    """The download does not belong to a single requester."""
    cache = await make(tmp_path)
    source = Source(b"hello ", b"world", pause=1.0)
    first = asyncio.ensure_future(cache.ensure(blob(b"hello world"), opened(source)))
    second = asyncio.ensure_future(cache.ensure(blob(b"hello world"), opened(source)))
    await asyncio.sleep(0.5)
    first.cancel()
    assert (await second).read_bytes() == b"hello world"
    assert source.opened == 1


async def test_a_failed_download_is_begun_anew_by_the_next_asker(tmp_path: Path) -> None:
    """A failure is not remembered."""
    cache = await make(tmp_path)
    with pytest.raises(ImageError):
        await cache.ensure(blob(b"hello"), opened(Source(b"he", error=ImageError("Broken", "gone", transient=True))))
    assert (await cache.ensure(blob(b"hello"), opened(Source(b"hello")))).read_bytes() == b"hello"


async def test_progress_is_told_while_downloading(tmp_path: Path) -> None:
    """Bytes done and total bytes; nothing before and after."""
    cache = await make(tmp_path, 10**7)
    half = bytes(2 * 1024 * 1024)
    source = Source(half, half, pause=1.0)
    task = cache.start(blob(half + half), opened(source))
    await asyncio.sleep(1.5)
    assert cache.progress(digest(half + half)) == (len(half), 2 * len(half))
    await task
    assert cache.progress(digest(half + half)) is None


async def test_a_restart_keeps_blobs_and_drops_what_was_unfinished(tmp_path: Path) -> None:
    """The files are the only state."""
    first = await make(tmp_path)
    await first.ensure(blob(b"hello"), opened(Source(b"hello")))
    (tmp_path / "incoming" / "sha256-half").write_bytes(b"ha")
    (tmp_path / "blobs" / "README").write_text("no blob")
    second = await make(tmp_path)
    path = await second.get(digest(b"hello"))
    assert path is not None
    assert path.read_bytes() == b"hello"
    assert leftovers(tmp_path) == []


async def test_a_blob_that_the_disk_damaged_is_not_served(tmp_path: Path) -> None:
    """After a restart the digest is computed before the first byte is served."""
    first = await make(tmp_path)
    path = await first.ensure(blob(b"hello"), opened(Source(b"hello")))
    path.write_bytes(b"hellO")
    second = await make(tmp_path)
    assert await second.get(digest(b"hello")) is None
    assert (await second.ensure(blob(b"hello"), opened(Source(b"hello")))).read_bytes() == b"hello"


@pytest.mark.threads
async def test_a_blob_is_verified_once_however_impatient_its_askers_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verifying gigabytes takes longer than a requester waits; the next requester joins the verification."""
    first = await make(tmp_path)
    await first.ensure(blob(b"hello"), opened(Source(b"hello")))
    second, go, begun = await make(tmp_path), threading.Event(), []

    def slowly(path: Path, digest: str) -> bool:
        begun.append(digest)
        return go.wait(5)

    monkeypatch.setattr("metal.boot.cache._has_digest", slowly)
    for _ in range(3):
        asking = asyncio.ensure_future(second.get(digest(b"hello")))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    last = asyncio.ensure_future(second.get(digest(b"hello")))
    await asyncio.sleep(0)
    go.set()
    path = await last
    assert path is not None
    assert begun == [digest(b"hello")]


async def test_the_least_recently_used_blob_makes_room(tmp_path: Path) -> None:
    """Reading counts as use."""
    cache = await make(tmp_path, limit=25)
    contents = [bytes([65 + n]) * 10 for n in range(3)]
    for content in contents[:2]:
        await cache.ensure(blob(content), opened(Source(content)))
    await cache.get(digest(contents[0]))
    await cache.ensure(blob(contents[2]), opened(Source(contents[2])))
    assert [cache.has(digest(content)) for content in contents] == [True, False, True]
    assert cache.bytes == 20


async def test_blobs_that_are_held_or_read_stay(tmp_path: Path) -> None:
    """When nothing can be removed, the download fails with a reason; it works after a release."""
    cache = await make(tmp_path, limit=20)
    a, b, c = (bytes([65 + n]) * 10 for n in range(3))
    for content in (a, b):
        await cache.ensure(blob(content), opened(Source(content)))
    cache.hold("owner", [digest(a)])
    with cache.use(digest(b)), pytest.raises(ImageError) as caught:
        await cache.ensure(blob(c), opened(Source(c)))
    assert caught.value.reason == "CacheFull"
    cache.release("owner")
    await cache.ensure(blob(c), opened(Source(c)))
    assert not cache.has(digest(a))


async def test_downloads_in_progress_count_against_the_limit(tmp_path: Path) -> None:
    """Two that do not fit together are not downloaded together."""
    cache = await make(tmp_path, limit=15)
    first = cache.start(blob(b"a" * 10), opened(Source(b"a" * 10, pause=1.0)))
    with pytest.raises(ImageError, match="full"):
        await cache.ensure(blob(b"b" * 10), opened(Source(b"b" * 10)))
    await first


async def test_closing_stops_downloads_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """An aborted download leaves no blob."""
    cache = await make(tmp_path)
    cache.start(blob(b"hello"), opened(Source(b"he", b"llo", pause=10.0)))
    await asyncio.sleep(15)
    await cache.aclose()
    assert leftovers(tmp_path) == []
    assert not cache.has(digest(b"hello"))


async def test_names_that_are_no_digests_reach_no_file(tmp_path: Path) -> None:
    """No part of a request becomes a path."""
    cache = await make(tmp_path)
    assert await cache.get("../../etc/passwd") is None
    with pytest.raises(ValueError, match="digest"):
        await cache.ensure(Descriptor("x", "../../etc/passwd", 1), opened(Source(b"x")))


async def test_its_repr_describes_it(tmp_path: Path) -> None:
    """Blobs, bytes, limit, downloads."""
    cache = await make(tmp_path)
    await cache.ensure(blob(b"hello"), opened(Source(b"hello")))
    assert repr(cache) == "<BlobCache blobs=1 bytes=5 limit=1000 downloads=0>"


async def test_hits_misses_and_downloads_are_counted(tmp_path: Path) -> None:
    """A download that begins is a miss, a blob that is read from the disk is a hit."""
    registry = CollectorRegistry()
    cache = BlobCache(tmp_path, 1000, registry)
    await cache.open()
    for _ in range(3):
        await cache.ensure(blob(b"hello world"), opened(Source(b"hello world")))
    with pytest.raises(ImageError):
        await cache.ensure(blob(b"other"), opened(Source(b"o")))

    value = registry.get_sample_value
    assert value("metal_image_cache_requests_total", {"result": "hit"}) == 2
    assert value("metal_image_cache_requests_total", {"result": "miss"}) == 2
    assert value("metal_image_downloads_total", {"result": "succeeded"}) == 1
    assert value("metal_image_downloads_total", {"result": "failed"}) == 1
    assert value("metal_image_downloaded_bytes_total") == 11
    assert value("metal_image_cache_bytes") == 11


@pytest.mark.parametrize("free", [0, 11])
async def test_a_full_disk_removes_what_nobody_needs_and_else_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int
) -> None:
    """The error is transient and names the folder; the blob is downloaded once there is space."""
    cache = await make(tmp_path)
    await cache.ensure(blob(b"needed"), opened(Source(b"needed")))
    await cache.ensure(blob(b"unneeded"), opened(Source(b"unneeded")))
    cache.hold("me", [digest(b"needed")])
    space = SimpleNamespace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: space)
    source = Source(b"a long blob of twenty")
    with pytest.raises(ImageError, match=f"the disk of the image cache .{tmp_path}. is full: 21 bytes") as caught:
        await cache.ensure(blob(b"a long blob of twenty"), opened(source))
    assert (caught.value.reason, caught.value.transient) == ("DiskFull", True)
    assert cache.has(digest(b"needed"))
    assert not cache.has(digest(b"unneeded"))
    assert source.opened == 0
    space.free = 21
    await cache.ensure(blob(b"a long blob of twenty"), opened(source))


async def test_a_disk_that_becomes_full_during_a_download_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No unfinished file stays."""
    cache = await make(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", _no_space)
        with pytest.raises(ImageError, match="is full") as caught:
            await cache.ensure(blob(b"hello"), opened(Source(b"hello")))
    assert caught.value.reason == "DiskFull"
    assert leftovers(tmp_path) == []
    await cache.ensure(blob(b"hello"), opened(Source(b"hello")))


def _no_space(_: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")
