"""Whether a server's drives are erased: what was reported against what the server is known to have."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from metal.api.sanitization import (
    DriveErasure,
    Firmware,
    FirmwareReset,
    FirmwareResult,
    KnownDrive,
    Policy,
    RAIDVolume,
    Result,
)
from metal.evidence.volumes import Cover, cover, unlisted
from metal.machine.report import same_serial

_STRENGTH = {"": 0, "Clear": 1, "Purge": 2}


@dataclass(frozen=True)
class Verdict:
    """What follows from a report. Nothing owed means that the server may be given to somebody else."""

    owed: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    reached: str = ""
    """The weakest that a drive reached: Clear or Purge; the policy's where there is no drive."""
    left: tuple[KnownDrive, ...] = ()
    """Drives that the server has by now: those that were found, new ones too."""


def judge(
    policy: str,
    known: Iterable[KnownDrive],
    drives: Iterable[DriveErasure],
    *,
    volumes: Iterable[RAIDVolume] = (),
    late: str = "",
) -> Verdict:
    """The verdict over a final report; `late` says why no more can be expected where it is none.

    `volumes` are those that the BMC tells of: a drive that no system sees may be erased with its volume.
    """
    known, drives, volumes = tuple(known), tuple(drives), tuple(volumes)
    known += unlisted(volumes, known, drives)
    told = [(drive, _partner(drive, known)) for drive in drives]
    told = [(drive, partner) for drive, partner in told if drive.result != Result.MISSING or partner is None]
    here = [drive for drive, _ in told if drive.result != Result.MISSING]
    lost = [(one, cover(one, volumes, here, policy)) for one in missing(known, here)]
    covered = [one for one, found in lost if found is not None and found.erased]
    owed = [sentence for drive, partner in told if (sentence := _owed(policy, drive, partner, late))]
    owed += [_lost(one, found) for one, found in lost if one not in covered]
    reached = [drive.class_ for drive in here] + ["Clear" for _ in covered]
    return Verdict(
        owed=tuple(owed),
        remarks=(
            *(_new(drive) for drive, partner in told if partner is None and drive in here),
            *(_lost(one, found) for one, found in lost if one in covered),
        ),
        reached=min(reached, key=_STRENGTH.__getitem__, default=policy),
        left=(*(_known(drive, partner) for drive, partner in told if drive in here), *covered),
    )


def _new(drive: DriveErasure) -> str:
    return f"{_name(drive.name, drive.serial_number, drive.slot)} was not there at discovery, and was erased as well"


def _lost(drive: KnownDrive, found: Cover | None) -> str:
    """What became of a drive that no report has found."""
    name = _name(drive.name, drive.serial_number, drive.slot)
    return f"{name} {found.text}" if found is not None else f"{name} was there at discovery and is missing"


def missing(known: Iterable[KnownDrive], drives: Iterable[DriveErasure]) -> list[KnownDrive]:
    """Drives that the server is known to have and no report has found, each once."""
    known = tuple(known)
    found = (_partner(drive, known) for drive in drives if drive.result != Result.MISSING)
    met = {_identity(partner) for partner in found if partner is not None}
    return list({_identity(k): k for k in known if _identity(k) not in met}.values())


def with_firmware(verdict: Verdict, firmware: Iterable[FirmwareReset]) -> Verdict:
    """What became of the firmware, added to what became of the drives: owed where it is required, else a remark."""
    failed = [one for one in firmware if one.result != FirmwareResult.SUCCEEDED]
    owed = tuple(_of_firmware(one) for one in failed if one.required)
    remarks = tuple(_of_firmware(one) for one in failed if not one.required)
    return replace(verdict, owed=(*verdict.owed, *owed), remarks=(*verdict.remarks, *remarks))


def _of_firmware(reset: FirmwareReset) -> str:
    what = "the TPM is not cleared" if reset.action == Firmware.CLEAR_TPM else "the BIOS is not back at its defaults"
    return f"{what} ({reset.result}){f': {reset.message}' if reset.message else ''}"


def is_weaker(one: str, other: str) -> bool:
    """True when a policy or class demands or reaches less than another; None and nothing are the least."""
    return _strength(one) < _strength(other)


def _strength(policy: str) -> int:
    return _STRENGTH.get("" if policy == Policy.NONE else policy, 0)


def _partner(drive: DriveErasure, known: tuple[KnownDrive, ...]) -> KnownDrive | None:
    """The same drive as it is known: by serial, by WWN, and only where it has neither by name and size."""
    serial, wwn = same_serial(drive.serial_number), drive.wwn.casefold()
    same = [k for k in known if serial and same_serial(k.serial_number) == serial]
    if same:  # of several namespaces of one NVMe drive, which have its serial, this one
        return min(same, key=lambda k: (k.wwn.casefold() != wwn, k.name != drive.name))
    if wwn:
        return next((k for k in known if k.wwn.casefold() == wwn and not _contradicts(k, serial)), None)
    bare = (k for k in known if not k.serial_number and not k.wwn)
    return None if serial else next((k for k in bare if (k.name, k.size) == (drive.name, drive.size)), None)


def _identity(known: KnownDrive) -> tuple[str, ...]:
    """What tells drives apart: two paths to one drive have the same."""
    told = same_serial(known.serial_number), known.wwn.casefold()
    return told if any(told) else (known.name, str(known.size), known.slot)


def _contradicts(known: KnownDrive, serial: str) -> bool:
    return bool(serial and known.serial_number and same_serial(known.serial_number) != serial)


def _owed(policy: str, drive: DriveErasure, partner: KnownDrive | None, late: str) -> str:
    """What is still owed of one drive, in a sentence; nothing for one that is erased."""
    name = _name(drive.name, drive.serial_number, drive.slot or (partner.slot if partner else ""))
    said = f": {drive.message}" if drive.message else ""
    if drive.result == Result.MISSING:
        return f"{name} was there at discovery and is missing{said}"
    if drive.result in (Result.PENDING, Result.RUNNING, ""):
        return f"{name} is not erased, at {drive.percent} %: {late or 'the report ended before it was'}"
    if drive.result != Result.SUCCEEDED:
        return f"{name} is not erased ({drive.result}){said}"
    if drive.samples_differ:
        return (
            f"{name} says that it is erased, but {drive.samples_differ} of {drive.samples_read} samples say otherwise"
        )
    if not drive.samples_read and drive.size:
        return f"{name} says that it is erased, but nothing of it was read back"
    if is_weaker(drive.class_, policy):
        return f"{name} reached {drive.class_ or 'nothing'} where {policy} is called for{said}"
    return ""


def _name(name: str, serial: str, slot: str) -> str:
    """A drive in words that lead somebody in front of the rack to it."""
    where = [f"serial {serial}" if serial else "", f"slot {slot}" if slot else ""]
    told = ", ".join(part for part in where if part)
    return f"drive {name} ({told})" if name and told else f"drive {name or told or 'without a name'}"


def _known(drive: DriveErasure, partner: KnownDrive | None) -> KnownDrive:
    slot = drive.slot or (partner.slot if partner else "")
    return KnownDrive(name=drive.name, serial_number=drive.serial_number, wwn=drive.wwn, size=drive.size, slot=slot)
