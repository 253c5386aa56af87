"""An ISO 9660 image that UEFI firmware boots: one El Torito entry, a FAT file system with an EFI program.

The FAT file system is the last thing in the image, because its El Torito entry cannot tell a size above 32 MiB; then
firmware takes everything up to the end of the medium (UEFI 2.10, section 13.3.2.1). Nothing but the program's size
and architecture determines the headers. Sources: ECMA-119, "El Torito" Bootable CD-ROM Format Specification 1.0.
"""

import struct

from metal.boot.uki.fat import fat
from metal.boot.uki.layout import Layout, padded

_BLOCK = 2048
_VOLUME, _PATHS_LITTLE, _PATHS_BIG, _ROOT, _CATALOG, _IMAGE = 16, 19, 20, 21, 22, 23
"""Blocks. The boot record and the terminator follow the volume descriptor."""
_DATE = bytes((100, 1, 1, 0, 0, 0, 0))
"""2000-01-01 in a directory record."""
_NEVER = b"0" * 16 + b"\0"
"""A date that is not specified."""
_NAME = "METAL"
_DIRECTORY = 2


def iso(program: Layout, architecture: str) -> Layout:
    """The image with an EFI program for machines of an architecture. Raises ImageError when it is too large (2 GiB)."""
    image = padded(fat(program, architecture), _BLOCK)
    return Layout((_headers(image.size),)) + image


def _headers(size: int) -> bytes:
    root = _record(b"\0", _ROOT, _BLOCK, _DIRECTORY)
    records = (root, _record(b"\1", _ROOT, _BLOCK, _DIRECTORY))
    files = (_record(b"BOOT.CAT;1", _CATALOG, _BLOCK), _record(b"EFI.IMG;1", _IMAGE, size))
    blocks = (
        bytes(_VOLUME * _BLOCK),
        _volume(_IMAGE + size // _BLOCK, root),
        _boot_record(),
        b"\xffCD001\x01",
        struct.pack("<BBIHBB", 1, 0, _ROOT, 1, 0, 0),
        struct.pack(">BBIHBB", 1, 0, _ROOT, 1, 0, 0),
        b"".join(records + files),
        _catalog(size),
    )
    return b"".join(block + bytes(-len(block) % _BLOCK) for block in blocks)


def _volume(blocks: int, root: bytes) -> bytes:
    return b"".join(
        (
            b"\x01CD001\x01\0",
            _text("", 32),
            _text(_NAME, 32),
            bytes(8),
            _both(blocks),
            bytes(32),
            _both_short(1),
            _both_short(1),
            _both_short(_BLOCK),
            _both(10),  # bytes of a path table
            struct.pack("<II", _PATHS_LITTLE, 0),
            struct.pack(">II", _PATHS_BIG, 0),
            root,
            _text("", 4 * 128 + 3 * 37),
            _NEVER * 4,
            b"\x01",
        )
    )


def _boot_record() -> bytes:
    return struct.pack("<B5sB32s32xI", 0, b"CD001", 1, b"EL TORITO SPECIFICATION", _CATALOG)


def _catalog(size: int) -> bytes:
    """The boot catalog: a validation entry for UEFI (0xEF), and an entry that is bootable without emulation."""
    sectors = size // 512 if size // 512 <= 0xFFFF else 0
    validation = struct.pack("<BBH24sHBB", 1, 0xEF, 0, _NAME.encode(), 0, 0x55, 0xAA)
    checksum = -sum(struct.unpack("<16H", validation)) & 0xFFFF
    validation = struct.pack("<BBH24sHBB", 1, 0xEF, 0, _NAME.encode(), checksum, 0x55, 0xAA)
    return validation + struct.pack("<BBHBBHI", 0x88, 0, 0, 0, 0, sectors, _IMAGE)


def _record(name: bytes, block: int, size: int, flags: int = 0) -> bytes:
    length = 33 + len(name) + (len(name) + 1) % 2
    fields = _both(block) + _both(size) + _DATE + struct.pack("<BBB", flags, 0, 0) + _both_short(1)
    return (struct.pack("<BB", length, 0) + fields + struct.pack("<B", len(name)) + name).ljust(length, b"\0")


def _text(value: str, size: int) -> bytes:
    return value.ljust(size).encode()


def _both(value: int) -> bytes:
    return struct.pack("<I", value) + struct.pack(">I", value)


def _both_short(value: int) -> bytes:
    return struct.pack("<H", value) + struct.pack(">H", value)
