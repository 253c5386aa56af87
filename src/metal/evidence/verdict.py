"""Decides whether a server's drives are erased: compares the final report with the drives that the server has.

Every drive that discovery found, or the BMC lists before the erasure, must be in the report, erased to the policy, and
read back without a difference; everything else is owed, one sentence a drive. A drive that no system
sees counts as erased when a RAID volume that covers it was overwritten (`volumes`). A drive that only the report shows
must be erased as well, and is a remark. Nothing owed means that the server may be given to another tenant.
"""

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
from metal.evidence import drives as drive_identity
from metal.evidence.drives import as_known, describe, identity
from metal.evidence.volumes import VolumeErasure, erased_with_volume, unlisted

_STRENGTH = {"": 0, "Clear": 1, "Purge": 2}
_MISSING = "was in the server and is missing"


@dataclass(frozen=True)
class Verdict:
    """The result. With nothing owed the server may be given to another tenant."""

    owed: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    reached: str = ""
    """The weakest class that a drive reached, Clear or Purge; the policy if the server has no drive."""
    drives: tuple[KnownDrive, ...] = ()
    """The drives that the server has now: those that were found, including new ones."""


def judge(
    policy: str,
    known: Iterable[KnownDrive],
    drives: Iterable[DriveErasure],
    *,
    volumes: Iterable[RAIDVolume] = (),
    late: str = "",
) -> Verdict:
    """The verdict over a final report; without one, `late` says why no further report is expected.

    `volumes` are those that the BMC reports: a drive that no system sees may be erased with its volume.
    """
    known, drives, volumes = tuple(known), tuple(drives), tuple(volumes)
    known += unlisted(volumes, known, drives)
    reported = [(drive, drive_identity.find(drive, known)) for drive in drives]
    reported = [(drive, partner) for drive, partner in reported if drive.result != Result.MISSING or partner is None]
    here = [drive for drive, _ in reported if drive.result != Result.MISSING]
    unseen = [(one, erased_with_volume(one, volumes, here, policy)) for one in missing(known, here)]
    covered = [one for one, found in unseen if found is not None and found.erased]
    owed = [sentence for drive, partner in reported if (sentence := _owed(policy, drive, partner, late))]
    owed += [_unseen(one, found) for one, found in unseen if one not in covered]
    reached = [drive.class_ for drive in here] + ["Clear" for _ in covered]
    return Verdict(
        owed=tuple(owed),
        remarks=(
            *(_new(drive) for drive, partner in reported if partner is None and drive in here),
            *(_unseen(one, found) for one, found in unseen if one in covered),
        ),
        reached=min(reached, key=_STRENGTH.__getitem__, default=policy),
        drives=(
            *(as_known(drive, partner.slot if partner else "") for drive, partner in reported if drive in here),
            *covered,
        ),
    )


def _new(drive: DriveErasure) -> str:
    return f"{describe(drive)} was not present at discovery, and was erased as well"


def _unseen(drive: KnownDrive, found: VolumeErasure | None) -> str:
    """The sentence for a drive that no report names."""
    return f"{describe(drive)} {found.text if found is not None else _MISSING}"


def missing(known: Iterable[KnownDrive], drives: Iterable[DriveErasure]) -> list[KnownDrive]:
    """The known drives that no report names, each once."""
    known = tuple(known)
    found = (drive_identity.find(drive, known) for drive in drives if drive.result != Result.MISSING)
    seen = {identity(partner) for partner in found if partner is not None}
    return list({identity(k): k for k in known if identity(k) not in seen}.values())


def with_firmware(verdict: Verdict, firmware: Iterable[FirmwareReset]) -> Verdict:
    """The verdict with the result of the firmware reset added: owed if it is required, otherwise a remark."""
    failed = [one for one in firmware if one.result != FirmwareResult.SUCCEEDED]
    owed = tuple(_of_firmware(one) for one in failed if one.required)
    remarks = tuple(_of_firmware(one) for one in failed if not one.required)
    return replace(verdict, owed=(*verdict.owed, *owed), remarks=(*verdict.remarks, *remarks))


def _of_firmware(reset: FirmwareReset) -> str:
    what = "the TPM is not cleared" if reset.action == Firmware.CLEAR_TPM else "the BIOS is not reset to its defaults"
    return f"{what} ({reset.result}){f': {reset.message}' if reset.message else ''}"


def is_weaker(one: str, other: str) -> bool:
    """True when a policy or class is weaker than another; None and empty are the weakest."""
    return _strength(one) < _strength(other)


def _strength(policy: str) -> int:
    return _STRENGTH.get("" if policy == Policy.NONE else policy, 0)


def _owed(policy: str, drive: DriveErasure, partner: KnownDrive | None, late: str) -> str:
    """Why a drive counts as not erased, in a sentence; empty for an erased drive."""
    name = describe(drive, partner.slot if partner else "")
    details = f": {drive.message}" if drive.message else ""
    if drive.result == Result.MISSING:
        return f"{name} {_MISSING}{details}"
    if drive.result in (Result.PENDING, Result.RUNNING, ""):
        return f"{name} is not erased, at {drive.percent} %: {late or 'the report ended before completion'}"
    if drive.result != Result.SUCCEEDED:
        return f"{name} is not erased ({drive.result}){details}"
    if drive.samples_differ:
        return f"{name} is reported as erased, but {drive.samples_differ} of {drive.samples_read} samples are not"
    if not drive.samples_read and drive.size:
        return f"{name} is reported as erased, but no sample was read back"
    if is_weaker(drive.class_, policy):
        return f"{name} reached {drive.class_ or 'nothing'} where {policy} is required{details}"
    return ""
