"""The headers of an EFI program, without which a kernel has no place in a unified kernel image (PE32+)."""

import struct

AMD64 = 0x8664
_HEADERS, _PAGE, _ALIGNMENT = 512, 4096, 512


def efi_program(content: bytes) -> bytes:
    """A program for amd64 whose only section is this content, a multiple of 512 bytes."""
    memory = _PAGE + len(content) + -len(content) % _PAGE
    coff = struct.pack("<HHIIIHH", AMD64, 1, 0, 0, 0, 240, 0x2022)
    optional = struct.pack(
        "<HBBIIIIIQIIHHHHHHIIIIHHQQQQII", 0x20B, 0, 0, len(content), 0, 0, _PAGE, _PAGE, 0, _PAGE, _ALIGNMENT,
        0, 0, 0, 0, 0, 0, 0, memory, _HEADERS, 0, 10, 0, 0, 0, 0, 0, 0, 16,
    )  # fmt: skip
    section = struct.pack("<8sIIII12xI", b".text", len(content), _PAGE, len(content), _HEADERS, 0x60000020)
    start = b"MZ".ljust(60, b"\0") + struct.pack("<I", 64) + b"PE\0\0" + coff + optional.ljust(240, b"\0") + section
    return start.ljust(_HEADERS, b"\0") + content
