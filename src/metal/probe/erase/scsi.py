"""SCSI and SAS: the SANITIZE command (SBC-4) by sg3-utils."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from metal.probe.erase.drives import Drive
from metal.probe.erase.methods import CLEAR, PURGE, Kit, Method, MethodFailed, Offer, RunningMethod, by_size
from metal.probe.erase.runner import ToolFailed, ask
from metal.probe.erase.samples import Promise

SANITIZE = 0x48
OVERWRITE, BLOCK_ERASE, CRYPTO_ERASE = 1, 2, 3
READ_FAILS = 2
"""Of the fields WABEREQ and WACEREQ: a read before a write ends in an error. 0 says nothing, 1 that it does not."""
KNOWN = (
    (CRYPTO_ERASE, "SCSISanitizeCryptoErase", ("--crypto",), Promise.CHANGED),
    (BLOCK_ERASE, "SCSISanitizeBlockErase", ("--block",), Promise.CHANGED),
    (OVERWRITE, "SCSISanitizeOverwrite", ("--overwrite", "--zero"), Promise.UNIFORM),
)
"""Service actions, best first."""
SUPPORTED = 3
"""Of the SUPPORT field of REPORT SUPPORTED OPERATION CODES: as the standard has it."""
IN_PROGRESS, FAILED = (0x04, 0x1B), (0x31, 0x03)
"""Additional sense codes and qualifiers."""


def ready(kit: Kit, drives: Sequence[Drive]) -> None:
    """Waits for a sanitize operation that was begun before."""
    with contextlib.suppress(ToolFailed, MethodFailed):
        RunningMethod(kit, by_size(drives), lambda percent, left: None).until_done(lambda: _percent(kit, drives[0]))


def offer(kit: Kit, drives: Sequence[Drive]) -> Offer:
    """The sanitize operations that the drive reports as supported."""
    (drive,) = drives
    try:
        supported = [known for known in KNOWN if _supports(kit, drive, known[0])]
    except ToolFailed as failure:
        return Offer(notes=[str(failure)])
    methods = [
        Method(
            name, _reaches(drive, action), promise, _sanitizer(kit, drive, flags), by_size(drives),
            quick=action != OVERWRITE, unreadable=_unreadable(kit, drive, action),
        )
        for action, name, flags, promise in supported
    ]  # fmt: skip
    return Offer(methods, [] if methods else ["the drive does not support SANITIZE"])


def _reaches(drive: Drive, action: int) -> str:
    """Tables A-5 and A-8 of SP 800-88 revision 1: overwriting purges a disk, and flash only loses by blocks or keys."""
    return CLEAR if action == OVERWRITE and not drive.rotational else PURGE


def _unreadable(kit: Kit, drive: Drive, action: int) -> bool:
    """Read off the Block Device Characteristics page (B1h), byte 7."""
    page = kit.host.data(f"/sys/block/{drive.name}/device/vpd_pgb1")
    shift = {BLOCK_ERASE: 6, CRYPTO_ERASE: 4}.get(action)
    return shift is not None and len(page) > 7 and page[7] >> shift & 3 >= READ_FAILS


def _supports(kit: Kit, drive: Drive, action: int) -> bool:
    answer = kit.run(("sg_opcodes", "--no-inquiry", "--raw", f"--opcode={SANITIZE:#x},{action}", drive.path), 60)
    return answer.code == 0 and len(answer.out) > 1 and answer.out[1] & 7 == SUPPORTED


def _sanitizer(kit: Kit, drive: Drive, flags: Sequence[str]) -> Callable[[RunningMethod], None]:
    def apply(course: RunningMethod) -> None:
        # AUSE: a drive whose operation failed may then leave that state, and try something else.
        ask(kit.run, "sg_sanitize", "--early", "--quick", "--ause", *flags, drive.path)
        try:
            course.until_done(lambda: _percent(kit, drive))
        except MethodFailed:
            kit.run(("sg_sanitize", "--quick", "--fail", drive.path), 60)
            raise

    return apply


def _percent(kit: Kit, drive: Drive) -> float | None:
    key, code, progress = parse_sense(ask(kit.run, "sg_requests", "--raw", drive.path))
    if code == FAILED:
        raise MethodFailed("the drive reports that the operation failed")
    return progress if key == 2 and code == IN_PROGRESS else None


def parse_sense(data: bytes) -> tuple[int, tuple[int, int], float]:
    """Sense key, additional code with qualifier, and percent done; of sense data in either format (SPC-5)."""
    if len(data) < 8:
        return 0, (0, 0), 0.0
    if data[0] & 0x7F in (0x72, 0x73):
        return data[1] & 0xF, (data[2], data[3]), _progress(_descriptor(data))
    code = (data[12], data[13]) if len(data) > 13 else (0, 0)
    return data[2] & 0xF, code, _progress(data[15:18])


def _descriptor(data: bytes) -> bytes:
    """The sense key specific bytes, in the descriptor of type 2."""
    at = 8
    while at + 1 < len(data):
        if data[at] == 2:
            return data[at + 4 : at + 7]
        at += 2 + data[at + 1]
    return b""


def _progress(specific: bytes) -> float:
    valid = len(specific) == 3 and specific[0] & 0x80
    return 100.0 * int.from_bytes(specific[1:3], "big") / 65536 if valid else 0.0
