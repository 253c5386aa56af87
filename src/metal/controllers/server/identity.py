"""Checks that a system is the Server's machine: an address may be given to another BMC, a path to another system."""

import re

from metal.api.server import Server
from metal.bmc.errors import BMCError
from metal.bmc.systems import SystemInfo
from metal.machine.uuids import spellings

_FORM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class WrongSystem(BMCError):
    """The BMC reports another machine: it must not be changed on behalf of this Server."""

    reason = "WrongSystem"


def problem(server: Server) -> str:
    """Why the Server's UUID is invalid; empty if it is valid."""
    if _FORM.fullmatch(server.uuid):
        return ""
    return f"the server's systemUUID {server.uuid!r} is not a UUID (8-4-4-4-12 hexadecimal digits): correct it"


def matches(server: Server, system: SystemInfo) -> bool:
    """True when the UUIDs are the same, also where one has its first three groups byte-swapped (SMBIOS before 2.6)."""
    found, wanted = system.uuid.lower(), server.uuid
    return found == wanted or (bool(_FORM.fullmatch(found)) and wanted in spellings(found))


def require(server: Server, system: SystemInfo) -> SystemInfo:
    """The system, if it is this Server's; a system without a UUID is accepted. Raises WrongSystem."""
    if not system.uuid or matches(server, system):
        return system
    raise WrongSystem(
        f"the BMC's system {system.uri} has the UUID {system.uuid}, not {server.uuid}: the machine was replaced, or "
        "the address belongs to another BMC; correct the BMC's address or spec.systemUUID"
    )
