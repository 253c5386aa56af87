"""Checks that a system is the Server's machine: an address may be given to another BMC, a path to another system."""

import re

from metal.api.server import Server
from metal.bmc.errors import BMCError
from metal.bmc.systems import SystemInfo
from metal.controllers.server.reasons import Operation
from metal.machine.identity import canonical_uuid, is_shared, system_serial

_FORM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class WrongSystem(BMCError):
    """The BMC reports another machine: it must not be changed on behalf of this Server."""

    reason = "WrongSystem"
    operation = Operation.IDENTIFY.value


def problem(server: Server) -> str:
    """Why the Server's UUID is invalid; empty if it is valid."""
    if _FORM.fullmatch(server.uuid):
        return ""
    return f"the server's systemUUID {server.uuid!r} is not a UUID (8-4-4-4-12 hexadecimal digits): correct it"


def matches(server: Server, system: SystemInfo) -> bool:
    """True when the UUIDs are the same in either byte order; the serial numbers, where the UUID is that of many."""
    if not is_shared(server.uuid):
        found = canonical_uuid(system.uuid)
        return found == canonical_uuid(server.uuid) if found else system.uuid.lower() == server.uuid
    known = system_serial(server.status.manufacturer, server.status.serial_number)
    shown = system_serial(system.manufacturer, system.serial_number)
    return (is_shared(system.uuid) or not system.uuid) and (not known or known == shown)


def require(server: Server, system: SystemInfo) -> SystemInfo:
    """The system, if it is this Server's. Raises WrongSystem."""
    if matches(server, system) or _matches_without_uuid(server, system):
        return system
    if not system.uuid and not is_shared(server.uuid):
        raise WrongSystem(
            f"the BMC's system {system.uri} has no UUID and the serial number {system.serial_number!r}, not "
            f"{server.status.serial_number}: the BMC is starting, or the address belongs to another BMC"
        )
    found = system.uuid if not is_shared(server.uuid) else f"{system.uuid} and serial number {system.serial_number}"
    raise WrongSystem(
        f"the BMC's system {system.uri} has the UUID {found}, not {server.uuid}: the machine was replaced, or "
        "the address belongs to another BMC; correct the BMC's address or spec.systemUUID"
    )


def _matches_without_uuid(server: Server, system: SystemInfo) -> bool:
    """A BMC that shows no UUID must show the serial number that is known of this Server's system."""
    if system.uuid or is_shared(server.uuid):
        return False
    known = system_serial(server.status.manufacturer, server.status.serial_number)
    return not known or known == system_serial(system.manufacturer, system.serial_number)
