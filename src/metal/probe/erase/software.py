"""Methods for any drive: overwriting, and discarding where the drive then reads zeroes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from metal.probe.erase.drives import Drive
from metal.probe.erase.methods import CLEAR, Kit, Method, Offer, RunningMethod, by_size
from metal.probe.erase.samples import Promise

OVERWRITE = "Overwrite"
STEP = 64 * 1024 * 1024
"""Bytes between two checks of the deadline."""
DISCARDED = 1024 * 1024 * 1024
"""Bytes of one discard; some drives take minutes for a terabyte, and a discard cannot be interrupted."""


def offer(kit: Kit, drives: Sequence[Drive]) -> Offer:
    """Discard, where all of the drives support it, and overwriting. Both are Clear for every medium."""
    deadline = by_size(drives)
    methods = [Method(OVERWRITE, CLEAR, Promise.ZEROES, lambda course: _overwrite(kit, drives, course), deadline)]
    limits = [kit.host.number(f"/sys/block/{drive.name}/queue/discard_max_bytes") for drive in drives]
    if all(limits):
        discard = Method(
            "Discard", CLEAR, Promise.ZEROES, lambda course: _discard(kit, drives, course), deadline, quick=True
        )
        methods.insert(0, discard)
    return Offer(methods)


def _overwrite(kit: Kit, drives: Sequence[Drive], course: RunningMethod) -> None:
    total, done = sum(drive.size for drive in drives), 0
    for drive in drives:
        with kit.device(drive.path) as device:
            for offset, length in steps(device.size(), STEP):
                device.zero(offset, length)
                done += length
                course.at(min(100.0, 100.0 * done / total))
            device.flush()


def _discard(kit: Kit, drives: Sequence[Drive], course: RunningMethod) -> None:
    for number, drive in enumerate(drives):
        with kit.device(drive.path) as device:
            size = device.size()
            for offset, length in steps(size, DISCARDED):
                device.discard(offset, length)
                course.at(100.0 * (number + (offset + length) / size) / len(drives))
            device.flush()


def steps(size: int, step: int) -> Iterator[tuple[int, int]]:
    """Offsets and lengths that together are `size` bytes."""
    for offset in range(0, size, step):
        yield offset, min(step, size - offset)
