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
    """The system, if it is this Server's; a system without a UUID is accepted. Raises WrongSystem."""
    if matches(server, system) or (not system.uuid and not is_shared(server.uuid)):
        return system
    found = system.uuid if not is_shared(server.uuid) else f"{system.uuid} and serial number {system.serial_number}"
    raise WrongSystem(
        f"the BMC's system {system.uri} has the UUID {found}, not {server.uuid}: the machine was replaced, or "
        "the address belongs to another BMC; correct the BMC's address or spec.systemUUID"
    )
