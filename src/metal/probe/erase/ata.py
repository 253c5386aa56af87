"""SATA: Sanitize Device and Security Erase by hdparm (ACS-4), and hidden areas."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence

from metal.probe.collectors import storage
from metal.probe.erase.drives import Drive
from metal.probe.erase.identify import Identity
from metal.probe.erase.methods import (
    CLEAR,
    PURGE,
    QUICK,
    Kit,
    Method,
    MethodFailed,
    Offer,
    RunningMethod,
    by_estimate,
    by_size,
)
from metal.probe.erase.runner import ToolFailed, ask
from metal.probe.erase.samples import Promise

PASSWORD = "metalprobe"  # noqa: S105 -- no secret: SECURITY ERASE UNIT wants one, and a run cut off must find it again
SURE = "--yes-i-know-what-i-am-doing"
USER = ("--user-master", "u")


def ready(kit: Kit, drives: Sequence[Drive]) -> None:
    """Unlocks a drive that an interrupted run locked, waits for its sanitize operation, and exposes a hidden area."""
    (drive,) = drives
    with contextlib.suppress(ToolFailed, MethodFailed):
        identity = identify(kit, drive)
        if identity.password_set and not identity.frozen:
            _take_password_back(kit, drive)
        if identity.sanitize:
            RunningMethod(kit, by_size(drives), lambda percent, left: None).until_done(lambda: _percent(kit, drive))
        _show_hidden(kit, drive)


def offer(kit: Kit, drives: Sequence[Drive]) -> Offer:
    """Sanitize before Security Erase, as far as the drive supports them and its firmware has not frozen them."""
    (drive,) = drives
    try:
        identity = identify(kit, drive)
        made = Offer(hidden=_hidden(kit, drive, identity), kept=_not_taken_up(kit, drive, identity))
    except ToolFailed as failure:
        return Offer(notes=[str(failure)])
    if identity.locked:
        made.locked = "the drive is locked by an unknown password; unlock it, or replace it"
    try:
        _add_sanitizers(made, kit, drive, identity)
    except ToolFailed as failure:
        made.notes.append(str(failure))
    _add_security(made, kit, drive, identity)
    return made


def identify(kit: Kit, drive: Drive) -> Identity:
    """The drive's present IDENTIFY data; raises ToolFailed."""
    try:
        return Identity.parse(ask(kit.run, "hdparm", "--Istdout", drive.path).decode("ascii", "replace"))
    except ValueError as wrong:
        raise ToolFailed(str(wrong)) from wrong


def _add_sanitizers(made: Offer, kit: Kit, drive: Drive, identity: Identity) -> None:
    if not identity.sanitize:
        made.notes.append("the drive does not support the Sanitize Device feature set")
        return
    if "Sanitize Frozen" in _status(kit, drive):
        made.frozen = "the firmware has frozen the drive's sanitize commands"
        return
    on_disk = PURGE if drive.rotational else CLEAR  # tables of SP 800-88 revision 1
    known = [
        (identity.crypto_scramble, "ATASanitizeCryptoScramble", PURGE, ("--sanitize-crypto-scramble",)),
        (identity.block_erase, "ATASanitizeBlockErase", PURGE, ("--sanitize-block-erase",)),
        (
            identity.overwrite, "ATASanitizeOverwrite", on_disk,
            ("--sanitize-overwrite-passes", "1", "--sanitize-overwrite", "hex:00000000"),
        ),
    ]  # fmt: skip
    for offered, name, reaches, flags in known:
        writes = name == "ATASanitizeOverwrite"
        if offered:
            promise = Promise.UNIFORM if writes else Promise.CHANGED
            apply = _sanitizer(kit, drive, flags)
            made.methods.append(Method(name, reaches, promise, apply, by_size([drive]), quick=not writes))


def _add_security(made: Offer, kit: Kit, drive: Drive, identity: Identity) -> None:
    if not identity.security:
        made.notes.append("the drive does not support Security Erase")
        return
    if identity.frozen:
        made.frozen = made.frozen or "the firmware has frozen the drive's security commands"
        return
    # Tables of SP 800-88 revision 1: enhanced is Purge for disks; for flash neither mode is.
    enhanced = PURGE if drive.rotational else CLEAR
    known = [
        (identity.enhanced_erase, "ATASecurityEraseEnhanced", enhanced, "--security-erase-enhanced",
         identity.enhanced_seconds, Promise.CHANGED),
        (True, "ATASecurityErase", CLEAR, "--security-erase", identity.erase_seconds, Promise.UNIFORM),
    ]  # fmt: skip
    for offered, name, reaches, flag, seconds, promise in known:
        if offered:
            deadline = by_estimate(seconds, by_size([drive]))
            apply = _security_eraser(kit, drive, flag, deadline)
            quick = seconds is not None and seconds <= QUICK
            made.methods.append(Method(name, reaches, promise, apply, deadline, seconds, quick))


def _sanitizer(kit: Kit, drive: Drive, flags: Sequence[str]) -> Callable[[RunningMethod], None]:
    def apply(course: RunningMethod) -> None:
        ask(kit.run, "hdparm", SURE, *flags, drive.path)
        course.until_done(lambda: _percent(kit, drive))
        if "Completed Without Error" not in (told := _status(kit, drive)):
            raise MethodFailed("the drive reports that the operation failed: " + " ".join(told.split()[-6:]))

    return apply


def _percent(kit: Kit, drive: Drive) -> float | None:
    told = _status(kit, drive)
    if "In Process" not in told:
        return None
    reached = re.search(r"Progress: 0x([0-9a-f]+)", told)
    return 100.0 * int(reached[1], 16) / 65536 if reached else 0.0


def _status(kit: Kit, drive: Drive) -> str:
    return ask(kit.run, "hdparm", "--sanitize-status", drive.path).decode("ascii", "replace")


def _security_eraser(kit: Kit, drive: Drive, flag: str, seconds: float) -> Callable[[RunningMethod], None]:
    def apply(course: RunningMethod) -> None:
        ask(kit.run, "hdparm", *USER, "--security-set-pass", PASSWORD, drive.path)
        try:
            ask(kit.run, "hdparm", *USER, flag, PASSWORD, drive.path, seconds=seconds)
        finally:
            _take_password_back(kit, drive)
        course.at(100.0)

    return apply


def _take_password_back(kit: Kit, drive: Drive) -> None:
    """Remove the password, which would lock the drive at the next power-on."""
    with contextlib.suppress(ToolFailed):
        identity = identify(kit, drive)
        if identity.locked:
            ask(kit.run, "hdparm", *USER, "--security-unlock", PASSWORD, drive.path)
        if identity.password_set:
            ask(kit.run, "hdparm", *USER, "--security-disable", PASSWORD, drive.path)


def _show_hidden(kit: Kit, drive: Drive) -> None:
    shown, there = _sectors(kit, drive)
    if 0 < shown < there:
        ask(kit.run, "hdparm", SURE, "-N", f"p{there}", drive.path)
        with contextlib.suppress(OSError):
            kit.host.put(f"/sys/block/{drive.name}/device/rescan", "1")


def _hidden(kit: Kit, drive: Drive, identity: Identity) -> str:
    shown, there = _sectors(kit, drive) if identity.host_protected_area else (0, 0)
    if shown < there:
        return f"a host protected area hides {there - shown} sectors, and it could not be removed"
    if not identity.configuration_overlay:
        return ""
    answer = kit.run(("hdparm", "--dco-identify", drive.path), 60)
    real = re.search(rb"Real max sectors: (\d+)", answer.out)
    if real and there and int(real[1]) > there:
        return f"a device configuration overlay hides {int(real[1]) - there} sectors; hdparm --dco-restore shows them"
    return ""


def _not_taken_up(kit: Kit, drive: Drive, identity: Identity) -> str:
    """Bytes of an exposed area that the kernel does not see before the next boot."""
    top = f"/sys/block/{drive.name}/"
    sector = kit.host.number(top + "queue/logical_block_size", storage.SECTOR)
    shown = _sectors(kit, drive)[0] * sector if identity.host_protected_area else 0
    missing = shown - kit.host.number(top + "size") * storage.SECTOR
    if missing <= 0:
        return ""
    return f"the kernel does not see {missing} bytes that the drive now shows; erase it again after a power cycle"


def _sectors(kit: Kit, drive: Drive) -> tuple[int, int]:
    """Accessible and existing sectors; both 0 when the drive does not report them."""
    answer = kit.run(("hdparm", "-N", drive.path), 60)
    told = re.search(rb"max sectors\s*=\s*(\d+)/(\d+)", answer.out)
    return (int(told[1]), int(told[2])) if told and b"invalid" not in answer.out else (0, 0)
