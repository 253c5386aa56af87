"""The identity of drives: compares and converts the drives that a server has with those that a report names.

Serial numbers identify a drive, then the WWN; name and size are used only for a drive that has neither, since names
change between boots. Namespaces of one NVMe drive share its serial number and are told apart by WWN or name.
"""

import hashlib
from collections.abc import Iterable

import msgspec

from metal.api.sanitization import DriveErasure, KnownDrive, Result
from metal.machine.report import same_serial


def as_known(erasure: DriveErasure, slot: str = "") -> KnownDrive:
    """The drive that a report names; `slot` is used if the report has none."""
    found = msgspec.convert(erasure, KnownDrive, from_attributes=True)
    return found if found.slot else msgspec.structs.replace(found, slot=slot)


def as_erasure(known: KnownDrive) -> DriveErasure:
    """A drive whose erasure has not begun."""
    return DriveErasure(**msgspec.structs.asdict(known))


def seen(drives: Iterable[DriveErasure]) -> tuple[KnownDrive, ...]:
    """The drives of a report that the probe found in the machine."""
    return tuple(as_known(drive) for drive in drives if drive.result != Result.MISSING)


def digest(drives: Iterable[DriveErasure]) -> str:
    """SHA-256 of what a report says of the drives that the probe found: equal only for the same drives."""
    found = sorted([one.name, one.serial_number, one.wwn, one.model, str(one.size)] for one in seen(drives))
    return hashlib.sha256(msgspec.json.encode(found)).hexdigest()


def describe(drive: KnownDrive | DriveErasure, slot: str = "") -> str:
    """Name, serial number and slot, by which an administrator finds the drive in the rack."""
    place = drive.slot or slot
    details = [f"serial {drive.serial_number}" if drive.serial_number else "", f"slot {place}" if place else ""]
    text = ", ".join(part for part in details if part)
    return f"drive {drive.name} ({text})" if drive.name and text else f"drive {drive.name or text or 'without a name'}"


def find(drive: DriveErasure, known: tuple[KnownDrive, ...]) -> KnownDrive | None:
    """The known drive that a report's drive is: by serial number, by WWN, and without both by name and size."""
    serial, wwn = same_serial(drive.serial_number), drive.wwn.casefold()
    same = [k for k in known if serial and same_serial(k.serial_number) == serial]
    if same:  # of several namespaces of one NVMe drive, which share its serial number, this one
        return min(same, key=lambda k: (k.wwn.casefold() != wwn, k.name != drive.name))
    if wwn:
        return next((k for k in known if k.wwn.casefold() == wwn and not _has_other_serial(k, serial)), None)
    bare = (k for k in known if not k.serial_number and not k.wwn)
    return None if serial else next((k for k in bare if (k.name, k.size) == (drive.name, drive.size)), None)


def identity(known: KnownDrive) -> tuple[str, ...]:
    """What distinguishes drives: two paths to one drive have the same identity."""
    unique = same_serial(known.serial_number), known.wwn.casefold()
    return unique if any(unique) else (known.name, str(known.size), known.slot)


def _has_other_serial(known: KnownDrive, serial: str) -> bool:
    return bool(serial and known.serial_number and same_serial(known.serial_number) != serial)
