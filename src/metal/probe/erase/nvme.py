"""NVMe: Sanitize and Format by nvme-cli. Layouts are those of the NVM Express Base Specification 2.0."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from metal.probe.erase.drives import Drive
from metal.probe.erase.methods import (
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

EXIT_FAILURE, BLOCK_ERASE, OVERWRITE, CRYPTO_ERASE = 1, 2, 3, 4
"""Sanitize actions (SANACT)."""
IN_PROGRESS, FAILED = 2, 3
"""Of the sanitize status (SSTAT); 1 and 4 are success, 0 is never sanitized."""
USER_DATA, CRYPTOGRAPHIC = 1, 2
"""Secure erase settings of Format (SES)."""
NO_ESTIMATE = 0xFFFFFFFF
FORMAT_SECONDS = 3600.0
ALLOCATED_NAMESPACES = 0x10
"""Identify: the namespaces that exist, attached or not."""


@dataclass(frozen=True)
class Controller:
    """Erase features from Identify Controller."""

    formats: bool
    manages_namespaces: bool
    crypto_format: bool
    format_is_for_all: bool
    sanitizes: int
    """SANICAP: crypto erase 1, block erase 2, overwrite 4."""

    @classmethod
    def parse(cls, data: bytes) -> Controller:
        """Reads OACS, SANICAP and FNA; raises ToolFailed when the answer is too short."""
        if len(data) < 4096:
            raise ToolFailed(f"nvme told {len(data)} bytes of 4096 about the controller")
        oacs, sanicap, fna = *struct.unpack_from("<H", data, 256), *struct.unpack_from("<I", data, 328), data[524]
        return cls(bool(oacs & 2), bool(oacs & 8), bool(fna & 4), bool(fna & 2), sanicap & 7)


@dataclass(frozen=True)
class SanitizeLog:
    """Progress and estimates of sanitize operations."""

    percent: float
    status: int
    overwrite: float | None
    """Seconds by the drive's estimate, as the two below."""
    block_erase: float | None
    crypto_erase: float | None

    @classmethod
    def parse(cls, data: bytes) -> SanitizeLog:
        """Reads log page 81h; raises ToolFailed when the answer is too short."""
        if len(data) < 20:
            raise ToolFailed(f"nvme told {len(data)} bytes of 512 of the sanitize log")
        progress, status, _, *estimates = struct.unpack_from("<HHIIII", data)
        seconds = [None if each == NO_ESTIMATE else float(each) for each in estimates]
        return cls(100.0 * progress / 65536, status & 7, *seconds)


def ready(kit: Kit, drives: Sequence[Drive]) -> None:
    """Waits for a sanitize operation that was started by an earlier run or another tool."""
    with contextlib.suppress(ToolFailed, MethodFailed):
        if _controller(kit, drives).sanitizes:
            RunningMethod(kit, by_size(drives), lambda percent, left: None).until_done(lambda: _percent(kit, drives))


def offer(kit: Kit, drives: Sequence[Drive]) -> Offer:
    """Sanitize, which is one operation for all namespaces, before Format, which is one for each."""
    try:
        controller = _controller(kit, drives)
    except ToolFailed as failure:
        return Offer(notes=[str(failure)])
    made = Offer(_sanitizers(kit, drives, controller) + _formats(kit, drives, controller))
    if not made.methods:
        made.notes.append("the controller supports neither Sanitize nor Format")
    try:
        made.kept = _not_attached(kit, drives, controller)
    except ToolFailed as failure:
        made.notes.append(f"unattached namespaces cannot be listed: {failure}")
    return made


def _sanitizers(kit: Kit, drives: Sequence[Drive], controller: Controller) -> list[Method]:
    """All are Purge by IEEE 2883-2022; revision 1 of SP 800-88 is older than the command."""
    if not controller.sanitizes:
        return []
    try:
        log = SanitizeLog.parse(_log(kit, drives))
    except ToolFailed:  # without estimates the deadline goes by size
        log = SanitizeLog(0.0, 0, None, None, None)
    known = [
        (1, "NVMeSanitizeCryptoErase", CRYPTO_ERASE, log.crypto_erase, Promise.CHANGED),
        (2, "NVMeSanitizeBlockErase", BLOCK_ERASE, log.block_erase, Promise.CHANGED),
        (4, "NVMeSanitizeOverwrite", OVERWRITE, log.overwrite, Promise.UNIFORM),
    ]
    return [
        Method(
            name, PURGE, promise, _sanitizer(kit, drives, action),
            deadline=by_estimate(estimate, by_size(drives)), estimate=estimate,
            quick=action != OVERWRITE and (estimate or 0) <= QUICK, whole=True,
        )
        for bit, name, action, estimate, promise in known
        if controller.sanitizes & bit
    ]  # fmt: skip


def _sanitizer(kit: Kit, drives: Sequence[Drive], action: int) -> Callable[[RunningMethod], None]:
    path = "/dev/" + drives[0].controller
    passes = ("--owpass=1", "--ovrpat=0") if action == OVERWRITE else ()

    def apply(course: RunningMethod) -> None:
        # Unrestricted exit: a drive whose Sanitize failed may then leave that state, and try something else.
        ask(kit.run, "nvme", "sanitize", path, f"--sanact={action}", "--ause", *passes)
        course.until_done(lambda: _percent(kit, drives))
        if SanitizeLog.parse(_log(kit, drives)).status not in (1, 4):
            ask(kit.run, "nvme", "sanitize", path, f"--sanact={EXIT_FAILURE}")
            raise MethodFailed("the drive reports that the operation failed")

    return apply


def _percent(kit: Kit, drives: Sequence[Drive]) -> float | None:
    log = SanitizeLog.parse(_log(kit, drives))
    return log.percent if log.status == IN_PROGRESS else None


def _formats(kit: Kit, drives: Sequence[Drive], controller: Controller) -> list[Method]:
    """Both are Purge by table A-8 of SP 800-88 revision 1 (NVM Express SSDs)."""
    known = [("NVMeFormatUserDataErase", USER_DATA)]
    if controller.crypto_format:
        known.insert(0, ("NVMeFormatCryptoErase", CRYPTOGRAPHIC))
    return [
        Method(name, PURGE, Promise.CHANGED, _formatter(kit, drives, setting), FORMAT_SECONDS * len(drives), quick=True,
               whole=controller.format_is_for_all)
        for name, setting in known
        if controller.formats
    ]  # fmt: skip


def _formatter(kit: Kit, drives: Sequence[Drive], setting: int) -> Callable[[RunningMethod], None]:
    def apply(course: RunningMethod) -> None:
        limit = f"--timeout={FORMAT_SECONDS * 1000:.0f}"
        for number, drive in enumerate(drives):
            namespace = f"--namespace-id={kit.host.text(f'/sys/block/{drive.name}/nsid') or 1}"
            ask(
                kit.run, "nvme", "format", f"/dev/{drive.controller}", namespace, f"--ses={setting}", "--force", limit,
                seconds=FORMAT_SECONDS + 60,
            )  # fmt: skip
            course.at(100.0 * (number + 1) / len(drives))

    return apply


def _not_attached(kit: Kit, drives: Sequence[Drive], controller: Controller) -> str:
    if not controller.manages_namespaces:
        return ""
    path = "/dev/" + drives[0].controller
    told = ask(
        kit.run, "nvme", "admin-passthru", path, "--opcode=0x06", f"--cdw10={ALLOCATED_NAMESPACES:#x}",
        "--data-len=4096", "--read", "--raw-binary",
    )  # fmt: skip
    exist = {number for (number,) in struct.iter_unpack("<I", told[: len(told) // 4 * 4]) if number}
    missing = exist - {kit.host.number(f"/sys/block/{drive.name}/nsid") for drive in drives}
    if not missing:
        return ""
    named = ", ".join(map(str, sorted(missing)))
    return f"{drives[0].controller} has unattached namespaces, which may hold data: {named}"


def _controller(kit: Kit, drives: Sequence[Drive]) -> Controller:
    return Controller.parse(ask(kit.run, "nvme", "id-ctrl", f"/dev/{drives[0].controller}", "--raw-binary"))


def _log(kit: Kit, drives: Sequence[Drive]) -> bytes:
    return ask(kit.run, "nvme", "sanitize-log", f"/dev/{drives[0].controller}", "--raw-binary")
