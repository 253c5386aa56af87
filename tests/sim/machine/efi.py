"""Writes the smallest PE images that a simulated firmware starts, and ISOs with one."""

import struct
from collections.abc import Mapping

_OPTIONAL = 112 + 16 * 8


def pe(sections: Mapping[str, bytes], *, signed: bool = False, tail: bytes = b"") -> bytes:
    """A PE32+ image with these sections."""
    table, body = b"", b""
    begin = 64 + 24 + _OPTIONAL + 40 * len(sections)
    for name, content in sections.items():
        raw = content + b"\0" * (-len(content) % 512)
        table += struct.pack(
            "<8sIIII12xI", name.encode(), len(content), 0x1000, len(raw), begin + len(body), 0x40000040
        )
        body += raw
    directories = b"".join(struct.pack("<II", 0, 16 if signed and n == 4 else 0) for n in range(16))
    optional = struct.pack("<H", 0x20B) + b"\0" * 110 + directories
    head = b"MZ" + b"\0" * 58 + struct.pack("<I", 64)
    coff = b"PE\0\0" + struct.pack("<HHIIIHH", 0x8664, len(sections), 0, 0, 0, _OPTIONAL, 0x22)
    return head + coff + optional + table + body + tail


def uki(cmdline: str = "", kernel: bytes = b"a kernel", initrd: bytes = b"an initrd", *, signed: bool = False) -> bytes:
    """A unified kernel image."""
    sections = {".text": b"stub", ".cmdline": cmdline.encode() + b"\0", ".linux": kernel, ".initrd": initrd}
    return pe(sections, signed=signed)


def iso(image: bytes) -> bytes:
    """An image at the boundary of a sector, as in the FAT file system of an ISO."""
    return b"\0" * 32768 + b"CD001 MZ decoy".ljust(2048, b"\0") + b"MZ decoy".ljust(2048, b"\0") + image
