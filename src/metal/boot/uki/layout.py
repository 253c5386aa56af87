"""Content that is composed of bytes and of parts of files, without being stored as a whole."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_CHUNK = 1024 * 1024


@dataclass(frozen=True)
class FilePart:
    """`length` bytes of a file, from `offset`."""

    path: Path
    offset: int
    length: int


Part = bytes | FilePart


@dataclass(frozen=True)
class Layout:
    """The parts of some content, in order."""

    parts: tuple[Part, ...]

    def __repr__(self) -> str:
        return f"<Layout parts={len(self.parts)} size={self.size}>"  # the bytes may have a token

    def __add__(self, other: "Layout") -> "Layout":
        return Layout(self.parts + other.parts)

    @property
    def size(self) -> int:
        """The size in bytes."""
        return sum(map(_size, self.parts))

    def cut(self, offset: int, length: int) -> "Layout":
        """The part of `length` bytes from `offset`. Raises ValueError when the content ends before."""
        if offset < 0 or length < 0 or offset + length > self.size:
            raise ValueError(f"{length} bytes from {offset} are not in {self!r}")
        kept: list[Part] = []
        for part in self.parts:
            first, last = max(offset, 0), min(offset + length, _size(part))
            if first < last:
                kept.append(_cut(part, first, last - first))
            offset -= _size(part)
        return Layout(tuple(kept))

    def replaced(self, offset: int, content: bytes) -> "Layout":
        """This layout with other bytes from `offset`, of the same size."""
        end = offset + len(content)
        return self.cut(0, offset) + Layout((content,)) + self.cut(end, self.size - end)

    def chunks(self) -> Iterator[bytes]:
        """The content; reads files. Raises OSError when one is missing or too short."""
        for part in self.parts:
            if isinstance(part, bytes):
                yield part
            else:
                yield from _read(part)

    def read(self) -> bytes:
        """The content at once; reads files. Raises OSError when one is missing or too short."""
        return b"".join(self.chunks())


def whole(path: Path) -> Layout:
    """The whole of a file, as long as it is now. Raises OSError."""
    return Layout((FilePart(path, 0, path.stat().st_size),))


def padded(content: Layout, alignment: int) -> Layout:
    """The content, with zeros up to a multiple of `alignment`."""
    missing = -content.size % alignment
    return content + Layout((bytes(missing),)) if missing else content


def _size(part: Part) -> int:
    return len(part) if isinstance(part, bytes) else part.length


def _cut(part: Part, offset: int, length: int) -> Part:
    if isinstance(part, bytes):
        return part[offset : offset + length]
    return FilePart(part.path, part.offset + offset, length)


def _read(part: FilePart) -> Iterator[bytes]:
    left = part.length
    with part.path.open("rb") as file:
        file.seek(part.offset)
        while left:
            chunk = file.read(min(_CHUNK, left))
            if not chunk:
                raise OSError(f"the file {part.path.name} is shorter than it should be")
            yield chunk
            left -= len(chunk)
