"""One block device, read and written past the page cache."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import stat
import struct
from pathlib import Path

BLKROSET, BLKRRPART, BLKFLSBUF, BLKDISCARD = 0x125D, 0x125F, 0x1261, 0x1277
"""Requests of linux/fs.h."""
OPAL_STATUS = 0x800870EC
"""IOC_OPAL_GET_STATUS of linux/sed-opal.h (Linux 6.1)."""
OPAL_LOCKED, OPAL_SHADOWED, OPAL_UNSHADOWED = 0x08, 0x10, 0x20
CHUNK = 16 * 1024 * 1024
"""Bytes in one write; large, because a disk without a write cache needs one revolution for each."""
ZEROES = mmap.mmap(-1, CHUNK)


class Device:
    """A block device opened exclusively; a regular file works as well.

    Raises:
        OSError: EBUSY while something is mounted from it or built on it, EROFS, EACCES or EPERM when it is
            write-protected.
    """

    def __init__(self, path: Path) -> None:
        plain = stat.S_ISREG(os.stat(path).st_mode)
        flags = os.O_RDWR | os.O_CLOEXEC | (0 if plain else os.O_EXCL)
        try:
            self._fd = os.open(path, flags | os.O_DIRECT)
        except OSError as failure:
            if not plain or failure.errno != errno.EINVAL:
                raise
            self._fd = os.open(path, flags)  # a file on tmpfs

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *failure: object) -> None:
        os.close(self._fd)

    def size(self) -> int:
        """Bytes."""
        return os.lseek(self._fd, 0, os.SEEK_END)

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of whole sectors.

        Raises:
            OSError: they cannot be read, or the device ends before them.
        """
        with mmap.mmap(-1, length) as buffer:
            if os.preadv(self._fd, [buffer], offset) != length:
                raise OSError(errno.EIO, f"short read at byte {offset}")
            return buffer[:]

    def write(self, offset: int, data: bytes) -> None:
        """Writes whole sectors.

        Raises:
            OSError: they cannot be written.
        """
        with mmap.mmap(-1, len(data)) as buffer:
            buffer[:] = data
            self._write(buffer, offset)

    def zero(self, offset: int, length: int) -> None:
        """Writes zeroes.

        Raises:
            OSError: they cannot be written.
        """
        end = offset + length
        with memoryview(ZEROES) as zeroes:
            for at in range(offset, end, CHUNK):
                with zeroes[: min(CHUNK, end - at)] as part:
                    self._write(part, at)

    def _write(self, data: mmap.mmap | memoryview, offset: int) -> None:
        if os.pwrite(self._fd, data, offset) != len(data):
            raise OSError(errno.EIO, f"short write at byte {offset}")

    def discard(self, offset: int, length: int) -> None:
        """Discards these bytes.

        Raises:
            OSError: the drive does not support discards.
        """
        fcntl.ioctl(self._fd, BLKDISCARD, struct.pack("=QQ", offset, length))

    def flush(self) -> None:
        """Empties the drive's cache to its medium, and the kernel's cache.

        Raises:
            OSError: what was written before did not reach the medium.
        """
        os.fsync(self._fd)
        with contextlib.suppress(OSError):  # a plain file has no such cache
            fcntl.ioctl(self._fd, BLKFLSBUF, 0)

    def reread_partitions(self) -> None:
        """Makes the kernel read the partition table again."""
        with contextlib.suppress(OSError):  # the device has no partitions
            fcntl.ioctl(self._fd, BLKRRPART, 0)

    def opal_locked(self) -> bool:
        """Whether TCG Opal locks the drive; False when kernel or drive do not support the query."""
        try:
            flags = struct.unpack_from("=I", fcntl.ioctl(self._fd, OPAL_STATUS, bytes(8)))[0]
        except OSError:
            return False
        return bool(flags & OPAL_LOCKED) or flags & (OPAL_SHADOWED | OPAL_UNSHADOWED) == OPAL_SHADOWED


def make_writable(path: Path) -> None:
    """Removes a write protection that only the kernel enforces."""
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.ioctl(fd, BLKROSET, struct.pack("=i", 0))
        finally:
            os.close(fd)
