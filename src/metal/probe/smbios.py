"""Parses an SMBIOS structure table (DMTF DSP0134). Firmware is not trusted: every length is checked."""

from __future__ import annotations

import struct
from collections.abc import Iterator

END_OF_TABLE = 127
HEADER = 4


class Structure:
    """One structure: numbers and strings by the offsets that the specification names."""

    def __init__(self, kind: int, formatted: bytes, strings: list[str]) -> None:
        self.kind = kind
        self._formatted = formatted
        self._strings = strings

    def byte(self, offset: int) -> int:
        """An unsigned byte; 0 where an older firmware's structure is too short to have it."""
        return self._number("<B", offset)

    def word(self, offset: int) -> int:
        """An unsigned 16-bit number, or 0."""
        return self._number("<H", offset)

    def dword(self, offset: int) -> int:
        """An unsigned 32-bit number, or 0."""
        return self._number("<I", offset)

    def string(self, offset: int) -> str:
        """The string that the byte at this offset names, or an empty one."""
        number = self.byte(offset)
        return self._strings[number - 1] if 0 < number <= len(self._strings) else ""

    def _number(self, form: str, offset: int) -> int:
        if offset + struct.calcsize(form) > len(self._formatted):
            return 0
        return int(struct.unpack_from(form, self._formatted, offset)[0])


def structures(table: bytes) -> Iterator[Structure]:
    """The structures of a table in order, up to its end or the first invalid one."""
    offset = 0
    while offset + HEADER <= len(table):
        kind, length = table[offset], table[offset + 1]
        after = offset + length
        if length < HEADER or after > len(table) or kind == END_OF_TABLE:
            return
        end = table.find(b"\0\0", after)
        if end < 0:
            return
        yield Structure(kind, table[offset:after], _strings(table[after:end]))
        offset = end + 2


def _strings(packed: bytes) -> list[str]:
    return [part.decode("latin-1").strip() for part in packed.split(b"\0")] if packed else []
