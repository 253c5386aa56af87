"""Verification by reading back samples of a drive.

Before an erasure a random marker is written to sample positions all over the drive, and digests of the previous content
are kept in memory. Afterwards no sector of any sample may hold the marker or previous content, and every sample must
have the content that the method promises: zeroes, one repeated pattern, or anything else than before. The marker
detects a drive that reports success and keeps its data. Large drives are sampled, small ones read as a whole.
"""

from __future__ import annotations

import enum
import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from metal.probe.erase.device import Device

MIB = 1024 * 1024
SECTOR = 512
"""Bytes compared as a unit; previous data counts if a whole sector of it is left."""
ALIGNED = 4096
WHOLE = 64 * MIB
"""A drive of up to as many bytes is read from the first to the last."""
PARTS = 128
"""A larger drive has one sample at a random place in each of as many equal parts, and its first and last MiB."""
SAMPLE = 64 * 1024
"""Bytes of such a sample."""


class Promise(enum.Enum):
    """The content that a method promises to leave on the drive."""

    ZEROES = "zeroes"
    UNIFORM = "one repeated pattern"
    CHANGED = "nothing of what was there"


@dataclass(frozen=True)
class Place:
    """Bytes of a drive, whole sectors."""

    offset: int
    length: int


@dataclass(frozen=True)
class Finding:
    """The result of reading back."""

    read: int
    """Samples looked at."""
    differ: int
    """Samples that differ from the promised content, or could not be read."""
    sentence: str
    """What is wrong with the first of these; empty without differences."""


def places(size: int, chance: random.Random) -> list[Place]:
    """Sample positions on a drive of `size` bytes, in order and without overlap."""
    size -= size % SECTOR
    if size <= WHOLE:
        return [Place(at, min(MIB, size - at)) for at in range(0, size, MIB)]
    between = [_within(size, number, chance) for number in range(PARTS)]
    return [Place(0, MIB), *between, Place(size - MIB, MIB)]


def _within(size: int, number: int, chance: random.Random) -> Place:
    part = (size - 2 * MIB) // PARTS
    begin = -(-(MIB + number * part) // ALIGNED)
    end = (MIB + (number + 1) * part - SAMPLE) // ALIGNED
    return Place(chance.randint(begin, end) * ALIGNED, SAMPLE)


@dataclass
class Samples:
    """The samples of one drive. Of a former content only digests are kept, and they never leave the process."""

    places: list[Place]
    chance: random.Random
    _before: dict[Place, list[bytes]] = field(default_factory=dict, repr=False)
    _key: bytes = field(default=b"", repr=False)

    def remember(self, device: Device) -> None:
        """Keep digests of the present content. Unreadable positions have none, and rely on the marker alone."""
        self._before = {place: list(map(_digest, _sectors(_read(device, place)))) for place in self.places}

    def mark(self, device: Device) -> None:
        """Write a new random marker at every position, so that a drive that keeps data keeps the marker as well.

        Raises:
            OSError: it could be written nowhere.
        """
        self._key = self.chance.getrandbits(256).to_bytes(32, "big")
        failures = [failure for place in self.places if (failure := _written(device, place, self._marker(place)))]
        if len(failures) == len(self.places):
            raise failures[0]
        device.flush()

    def marked(self, device: Device) -> bool:
        """Whether the marker can be read anywhere."""
        return any(_read(device, place) == self._marker(place) for place in self.places)

    def swallowed(self, device: Device) -> bool:
        """Whether reads succeed without returning the marker: then writes cannot erase the drive."""
        return any(_read(device, place) for place in self.places) and not self.marked(device)

    def check(self, device: Device, promise: Promise, *, unreadable: bool = False) -> Finding:
        """Read every position and compare; with `unreadable` a failed read counts as erased."""
        wrong = [sentence for place in self.places if (sentence := self._wrong(device, place, promise, unreadable))]
        return Finding(len(self.places), len(wrong), wrong[0] if wrong else "")

    def _wrong(self, device: Device, place: Place, promise: Promise, unreadable: bool) -> str:
        try:
            data = device.read(place.offset, place.length)
        except OSError as failure:
            return "" if unreadable else f"byte {place.offset} could not be read back: {failure.strerror}"
        if data.count(0) == len(data):
            return ""
        if any(new == marker for new, marker in zip(_sectors(data), _sectors(self._marker(place)))):
            return f"byte {place.offset} and following bytes still hold the marker that was written before the erasure"
        if any(before and _digest(new) == before for new, before in zip(_sectors(data), self._before.get(place, []))):
            return f"byte {place.offset} and following bytes still hold previous content"
        if promise is Promise.ZEROES or (promise is Promise.UNIFORM and not _uniform(data)):
            return f"byte {place.offset} and following bytes do not read as {promise.value}"
        return ""

    def _marker(self, place: Place) -> bytes:
        return hashlib.shake_128(self._key + place.offset.to_bytes(8, "big")).digest(place.length)


def _read(device: Device, place: Place) -> bytes:
    try:
        return device.read(place.offset, place.length)
    except OSError:
        return b""


def _written(device: Device, place: Place, data: bytes) -> OSError | None:
    try:
        device.write(place.offset, data)
    except OSError as failure:
        return failure
    return None


def _sectors(data: bytes) -> Iterator[bytes]:
    for at in range(0, len(data), SECTOR):
        yield data[at : at + SECTOR]


def _digest(sector: bytes) -> bytes:
    """Empty for a sector of one repeated pattern, which holds no data and may be the content of an erased drive."""
    return b"" if _uniform(sector) else hashlib.blake2b(sector, digest_size=12).digest()


def _uniform(data: bytes) -> bool:
    return data == data[:4] * (len(data) // 4)
