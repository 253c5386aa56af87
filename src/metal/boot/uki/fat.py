"""A FAT16 file system with one EFI program at the place where firmware starts removable media.

Nothing but the program's size and architecture determines the headers. Source: Microsoft's FAT specification 1.03;
firmware reads FAT12, FAT16 and FAT32 (UEFI 2.10, section 13.3).
"""

import struct
from functools import lru_cache
from itertools import chain

from metal.boot.errors import ImageError
from metal.boot.uki.layout import Layout, padded

NAMES = {"amd64": "BOOTX64", "arm64": "BOOTAA64"}
"""The program's name in EFI/BOOT, without its suffix EFI, by architecture as OCI names it."""
_SECTOR = 512
_FEWEST, _MOST = 4085, 65524
"""Clusters of a file system that is FAT16 and not FAT12 or FAT32."""
_LARGEST_CLUSTER = 32 * 1024
_ROOT_ENTRIES = 512
_DATE = 0x21
"""1980-01-01, the first that FAT has."""
_DIRECTORY, _FILE = 0x10, 0x20
_EFI, _BOOT, _PROGRAM = 2, 3, 4
"""First clusters of both directories and of the program."""
_END = 0xFFFF


def fat(program: Layout, architecture: str) -> Layout:
    """The file system with EFI/BOOT/BOOT<architecture>.EFI. Raises ImageError when the program is too large (2 GiB)."""
    cluster = _cluster_size(program.size)
    unused = max(_FEWEST - _needed(program.size, cluster), 0) * cluster
    headers = Layout((_headers(program.size, NAMES[architecture]),))
    return headers + padded(program, cluster) + Layout((bytes(unused),) if unused else ())


@lru_cache(maxsize=16)
def _headers(size: int, name: str) -> bytes:
    """Everything before the program, up to 300 KiB: kept, because a BMC requests a medium in many ranges."""
    cluster = _cluster_size(size)
    needed = _needed(size, cluster)
    clusters = max(needed, _FEWEST)
    table = _table(needed, clusters)
    parent = _entry("EFI", "", _DIRECTORY, _EFI)
    efi = (_entry(".", "", _DIRECTORY, _EFI), _entry("..", "", _DIRECTORY, 0), _entry("BOOT", "", _DIRECTORY, _BOOT))
    boot = (
        _entry(".", "", _DIRECTORY, _BOOT),
        _entry("..", "", _DIRECTORY, _EFI),
        _entry(name, "EFI", _FILE, _PROGRAM, size),
    )
    return b"".join(
        (
            _boot_sector(cluster, clusters, len(table) // _SECTOR),
            table * 2,
            parent.ljust(_ROOT_ENTRIES * 32, b"\0"),
            b"".join(efi).ljust(cluster, b"\0"),
            b"".join(boot).ljust(cluster, b"\0"),
        )
    )


def _needed(size: int, cluster: int) -> int:
    """Clusters of both directories and the program."""
    return _PROGRAM - 2 + -(-size // cluster)


def _cluster_size(size: int) -> int:
    cluster = 4 * _SECTOR
    while _needed(size, cluster) > _MOST:
        cluster *= 2
    if cluster > _LARGEST_CLUSTER:
        raise ImageError("UKITooLarge", f"an EFI program of {size} bytes does not fit on a FAT16 medium")
    return cluster


def _table(needed: int, clusters: int) -> bytes:
    """One file allocation table: both directories have a cluster, the program has all the others in order."""
    chained = range(_PROGRAM + 1, needed + 2)
    numbers = [*chain((0xFFF8, _END, _END, _END), chained), _END]
    raw = struct.pack(f"<{len(numbers)}H", *numbers)
    size = (clusters + 2) * 2
    return raw.ljust(size + -size % _SECTOR, b"\0")


def _boot_sector(cluster: int, clusters: int, table: int) -> bytes:
    root = _ROOT_ENTRIES * 32 // _SECTOR
    sectors = 1 + 2 * table + root + clusters * cluster // _SECTOR
    small, large = (sectors, 0) if sectors < 65536 else (0, sectors)
    parameters = struct.pack(
        "<3s8sHBHBHHBHHHII", b"\xeb\x3c\x90", b"MSWIN4.1", _SECTOR, cluster // _SECTOR, 1, 2, _ROOT_ENTRIES, small,
        0xF8, table, 32, 64, 0, large,
    )  # fmt: skip
    extended = struct.pack("<BBBI11s8s", 0x80, 0, 0x29, 0, b"NO NAME    ", b"FAT16   ")
    return (parameters + extended).ljust(_SECTOR - 2, b"\0") + b"\x55\xaa"


def _entry(name: str, suffix: str, attribute: int, cluster: int, size: int = 0) -> bytes:
    short = f"{name:8}{suffix:3}".encode()
    return struct.pack("<11sBBBHHHHHHHI", short, attribute, 0, 0, 0, _DATE, _DATE, 0, 0, _DATE, cluster, size)
