"""Decides whether drives behind a RAID controller, which only the BMC sees, were erased with their volume.

Overwriting every block of a volume that spans its drives reaches all that a system can address through it, which is
Clear (NIST SP 800-88r1, 2.5). It does not reach spares, drives that failed or left the volume, nor space that the
volume leaves free; and it is never Purge. A drive that cannot be shown to be covered stays owed.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from metal.api.sanitization import DriveErasure, KnownDrive, Policy, RAIDVolume, Result, VolumeDrive
from metal.machine.report import same_serial

_PREFIX = re.compile(r"^(naa\.|eui\.|nguid\.|uuid\.|0x)")
_SEPARATORS = re.compile(r"[\s:-]")
_RESERVED = 2 << 30
"""Bytes of a drive that a volume may leave free: controllers store their configuration there and round sizes down."""
_ROUNDING = 1 << 20
"""Bytes by which the sizes that BMC and operating system report for a volume may differ."""
_BY_OVERWRITING = "Overwrite"


@dataclass(frozen=True)
class VolumeErasure:
    """Whether a drive was erased with its volume, and how or why not: the rest of a sentence about the drive."""

    erased: bool
    text: str


def may_be_volume(drive: KnownDrive, drives: Iterable[KnownDrive]) -> bool:
    """Whether a drive that only a system sees may be a volume of drives that only the BMC sees."""
    hidden = {same_serial(one.serial_number) for one in drives if not one.name}
    return bool(drive.name and hidden and not drive.slot) and same_serial(drive.serial_number) not in hidden


def unlisted(
    volumes: Iterable[RAIDVolume], known: Iterable[KnownDrive], erasures: Iterable[DriveErasure]
) -> tuple[KnownDrive, ...]:
    """Drives of volumes that were unknown before, such as a replacement."""
    serials = [one.serial_number for one in known] + [one.serial_number for one in erasures]
    listed = {same_serial(serial) for serial in serials} | {""}
    found = {same_serial(d.serial_number): d for v in volumes for d in v.drives}
    new = (drive for serial, drive in found.items() if serial not in listed)
    return tuple(KnownDrive(serial_number=drive.serial_number, slot=drive.slot) for drive in new)


def erased_with_volume(
    drive: KnownDrive, volumes: Iterable[RAIDVolume], erasures: Sequence[DriveErasure], policy: str
) -> VolumeErasure | None:
    """Whether a drive that no report names was erased with its volume; None when it belongs to no volume."""
    serial = same_serial(drive.serial_number)
    mine = [v for v in volumes if serial and any(same_serial(d.serial_number) == serial for d in v.drives)]
    if not mine:
        return None
    for volume in mine:
        if why := _unproved(volume, serial, erasures, policy):
            return VolumeErasure(False, f"belongs to volume {_describe(volume)}, but {why}")
    if why := _leaves_space(serial, mine):
        return VolumeErasure(False, f"belongs to volume {', '.join(map(_describe, mine))}, but {why}")
    through = (f"{_describe(v)} as {_match(v, erasures)[0].name}" for v in mine)
    return VolumeErasure(True, f"belongs to volume {' and '.join(through)}, which was overwritten: Clear")


def _unproved(volume: RAIDVolume, serial: str, erasures: Sequence[DriveErasure], policy: str) -> str:
    """Why the erasure of a volume does not cover this drive; empty when it does."""
    unhealthy = [d for d in volume.drives if same_serial(d.serial_number) == serial and not _is_healthy(d)]
    if not _is_healthy(volume) or unhealthy:
        what, one = ("the drive", unhealthy[0]) if unhealthy else ("the volume", volume)
        return f"{what} is {one.state or 'in an unknown state'}, {one.health or 'unknown'}"
    found = _match(volume, erasures)
    if len(found) != 1:
        return (
            "the report has no drive with its identifier"
            if not found
            else "several drives of the report have its identifier"
        )
    erasure = found[0]
    if erasure.result != Result.SUCCEEDED or erasure.samples_differ or not erasure.samples_read:
        return f"{erasure.name} is not erased"
    if erasure.method != _BY_OVERWRITING:
        return f"{erasure.name} was erased by {erasure.method or 'no method'}, which may not reach the drives behind it"
    if erasure.size + _ROUNDING < volume.size:
        return f"{erasure.name} is smaller than the volume"
    return f"overwriting it reaches Clear where {policy} is required" if policy == Policy.PURGE else ""


def _leaves_space(serial: str, volumes: Sequence[RAIDVolume]) -> str:
    """Why volumes do not reach the whole drive; empty when they do."""
    size = min(d.size for v in volumes for d in v.drives if same_serial(d.serial_number) == serial)
    shares = [_share(volume) for volume in volumes]
    if not size or not all(shares):
        return "the share of the drive that it uses is unknown"
    left = size - sum(shares)
    if left < -_ROUNDING:
        return "it uses more than the size of the drive"
    return f"it leaves {left} bytes of the drive free" if left > _RESERVED else ""


def _share(volume: RAIDVolume) -> int:
    """Bytes that a volume uses of each of its drives; 0 when its layout is unknown (DSP0268, Volume.RAIDType)."""
    count = len(volume.drives)
    data = {
        "RAID0": count,
        "RAID1": 1 if count == 2 else 0,
        "RAID5": count - 1 if count >= 3 else 0,
        "RAID6": count - 2 if count >= 4 else 0,
        "RAID10": count // 2 if count >= 4 and count % 2 == 0 else 0,
        "None": 1 if count == 1 else 0,
    }.get(volume.raid_type, 0)
    return volume.size // data if data else 0


def _match(volume: RAIDVolume, erasures: Sequence[DriveErasure]) -> list[DriveErasure]:
    """The drives of the report that are this volume, by its world-wide identifier."""
    name = _normal_wwn(volume.wwn)
    return [e for e in erasures if name and e.result != Result.MISSING and _normal_wwn(e.wwn) == name]


def _normal_wwn(wwn: str) -> str:
    """An identifier without format prefix and separators, which kernels and BMCs write differently."""
    return _PREFIX.sub("", _SEPARATORS.sub("", wwn.casefold()))


def _is_healthy(one: RAIDVolume | VolumeDrive) -> bool:
    return one.state == "Enabled" and one.health == "OK"


def _describe(volume: RAIDVolume) -> str:
    members = ", ".join(d.serial_number or d.slot or "a drive without a serial number" for d in volume.drives)
    return f"{volume.name} ({volume.raid_type or 'RAID level unknown'}: {members})"
