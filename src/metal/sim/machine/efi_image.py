"""Reads what a simulated UEFI firmware starts: a PE image, alone or inside an ISO.

A unified kernel image has the sections .linux, .initrd and .cmdline; any other image is iPXE, with its embedded script
if it has one. In an ISO the image is found by its signature: the FAT file system of a boot medium is written once, so
its files are contiguous, and no file system is interpreted here.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

_SECTION = struct.Struct("<8sIIII12xI")
_PE32_PLUS = 0x20B
_CERTIFICATES = 4
"""Index of the data directory that holds the Secure Boot signature."""
_SECTOR = 512


@dataclass(frozen=True)
class EFIImage:
    """A PE image; of iPXE, kernel and arguments are empty."""

    kernel: bytes = field(default=b"", repr=False)
    initrd: bytes = field(default=b"", repr=False)
    args: tuple[str, ...] = field(default=(), repr=False)
    signed: bool = False
    script: str = field(default="", repr=False)
    """iPXE's embedded script."""

    @property
    def is_uki(self) -> bool:
        """Whether it is a unified kernel image."""
        return bool(self.kernel)


def read(data: bytes) -> EFIImage | None:
    """The image in a file; None when it is no PE image."""
    return _image(data) if data[:2] == b"MZ" else None


def read_iso(data: bytes) -> EFIImage | None:
    """The first unified kernel image in an ISO, else the first image; None when there is none."""
    images = [image for image in map(_image, _candidates(data)) if image is not None]
    return next((image for image in images if image.is_uki), images[0] if images else None)


def _candidates(data: bytes) -> Iterator[bytes]:
    at = data.find(b"MZ")
    while at >= 0:
        if at % _SECTOR == 0:
            yield data[at:]
        at = data.find(b"MZ", at + 1)


def _image(data: bytes) -> EFIImage | None:
    try:
        (header,) = struct.unpack_from("<I", data, 0x3C)
        if data[header : header + 4] != b"PE\0\0":
            return None
        count, optional = struct.unpack_from("<H12xH", data, header + 6)
        sections = dict(_sections(data, header + 24 + optional, count))
        signed = _is_signed(data, header + 24)
    except struct.error:
        return None
    args = sections.get(b".cmdline", b"").rstrip(b"\0").decode("utf-8", "replace").split()
    kernel = sections.get(b".linux", b"")
    return EFIImage(kernel, sections.get(b".initrd", b""), tuple(args), signed, "" if kernel else _script(data))


def _sections(data: bytes, table: int, count: int) -> Iterator[tuple[bytes, bytes]]:
    for number in range(count):
        name, size, _, raw, offset, _ = _SECTION.unpack_from(data, table + 40 * number)
        content = data[offset : offset + raw]
        # A kernel's section is larger in memory than in the file, so that its size there does not tell the padding.
        yield name.rstrip(b"\0"), content[:size] if 0 < size <= raw else content.rstrip(b"\0")


def _is_signed(data: bytes, optional: int) -> bool:
    (magic,) = struct.unpack_from("<H", data, optional)
    directories = optional + (112 if magic == _PE32_PLUS else 96)
    _, size = struct.unpack_from("<II", data, directories + 8 * _CERTIFICATES)
    return bool(size)


def _script(data: bytes) -> str:
    begin = data.find(b"#!ipxe\n")
    return data[begin:].partition(b"\0")[0].decode("ascii", "replace") if begin >= 0 else ""
