"""Drives whose serial number does not identify them, because drives in several servers have it.

What a site knows is its option `identity.nonUniqueDrives`: these drives are looked up by their World Wide Name only.
What is not listed is held as if the drive had been moved (`DriveOwed`): that the other server lists it, too, is no
proof, because its list may be older than the move. `advice` then names the option, and `certain` makes sure that the
erasure of one drive never counts for another one with its serial number.
"""

from collections.abc import Iterable

from metal.api.sanitization import KnownDrive, OwedDrive
from metal.api.server import Server
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy.drive_search import drives_of, others_with_key
from metal.kube.meta.objects import Key
from metal.machine import drive_identity


def to_look_up(scope: Scope, drives: Iterable[KnownDrive]) -> list[KnownDrive]:
    """The drives, without the serial numbers that identify nothing at this site."""
    listed = scope.settings.non_unique_drives
    return [drive_identity.with_unique_serial(one, listed) for one in drives]


def certain(scope: Scope, drives: Iterable[KnownDrive]) -> list[KnownDrive]:
    """The drives that no other Server lists, too: only for these an erasure here is one of the drive in a record."""
    return [one for one in to_look_up(scope, drives) if not _is_listed_elsewhere(scope, one)]


def advice(scope: Scope, owed: Iterable[OwedDrive]) -> str:
    """The way out for drives that only their serial number connects with another server; empty without them."""
    found = [one for one in owed if _is_by_serial_only(one.drive, scope.deps.servers.get(Key(one.server)))]
    if not found:
        return ""
    serials = ", ".join(dict.fromkeys(one.drive.serial_number for one in found[:5]))
    return (
        f"; or, if server {found[0].server} has such a drive, too, the serial number {serials} does not identify a "
        "drive: add it, or the model, to identity.nonUniqueDrives of the manager's configuration"
    )


def _is_listed_elsewhere(scope: Scope, drive: KnownDrive) -> bool:
    return any(_is_by_serial_only(drive, one) for one in others_with_key(scope, drive))


def _is_by_serial_only(drive: KnownDrive, server: Server | None) -> bool:
    """Whether a Server lists a drive with this serial number, and no World Wide Name confirms that it is this one."""
    if server is None:
        return False
    found = drive_identity.find(drive, drives_of(server))
    return found is not None and not drive_identity.are_named_alike(drive, found)
