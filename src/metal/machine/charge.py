"""Which of several Servers that describe one machine is in charge of it: all others send nothing to its BMC.

The Server with the tenancy is in charge: first the one whose claim may have left data on the machine, then the one that
a claim holds, then the one with a network boot in progress; else the oldest. When several have recorded a tenant, none
is in charge, because only an administrator knows whose data is on the drives.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import IntEnum

from metal.api.boot_window import Phase
from metal.api.server import Server
from metal.machine import tenancy

_NEVER = datetime.max.replace(tzinfo=UTC)


class Tenancy(IntEnum):
    """How strongly a Server is tied to what runs on its machine."""

    NONE = 0
    BOOTING = 1
    """A network boot is in progress."""
    CLAIMED = 2
    """A claim holds it, and nothing of the claim has reached the machine."""
    TENANT = 3
    """Data of a tenant may be on the machine."""


def tenancy_of(server: Server) -> Tenancy:
    """The tie of this Server to its machine."""
    known, window = tenancy.of(server), server.status.boot_window
    if known.uid or known.boot is not None or tenancy.ran_tenant(known):
        return Tenancy.TENANT
    if server.spec.server_claim_ref is not None:
        return Tenancy.CLAIMED
    is_booting = window is not None and window.phase not in (Phase.SUCCEEDED, Phase.CLOSED)
    return Tenancy.BOOTING if is_booting else Tenancy.NONE


def has_tenancy(server: Server) -> bool:
    """True when a claim holds the Server, or data of a tenant may be on its machine."""
    return tenancy_of(server) >= Tenancy.CLAIMED


def in_charge(servers: Sequence[Server]) -> Server | None:
    """The Server that acts on the machine that all of these describe; None when several have recorded a tenant."""
    strongest = max(map(tenancy_of, servers))
    found = [server for server in servers if tenancy_of(server) == strongest]
    if strongest is Tenancy.TENANT and len(found) > 1:
        return None
    return min(found, key=_age)


def _age(server: Server) -> tuple[datetime, str]:
    meta = server.metadata
    return meta.creation_timestamp or _NEVER, meta.uid
