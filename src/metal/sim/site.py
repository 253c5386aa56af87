"""What every machine of a fleet shares: the network, the DHCP server's word, and the history."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from metal.sim.history import History
from metal.sim.network import Network

Lease = Callable[[str, str], Awaitable[None]]
"""Takes (MAC, IP) of a lease that a machine got."""


async def no_lease(mac: str, ip: str) -> None:
    """Nobody is told of leases."""


@dataclass
class Site:
    """Where machines stand. Everything may be changed while they run."""

    network: Network
    history: History
    boot_url: str = ""
    """Base URL of the boot server, as DHCP says it; empty means that DHCP names none."""
    lease: Lease = no_lease
    secrets: set[str] = field(default_factory=set, repr=False)
    """Every token and password that machines and BMCs have seen, to check that none leaked."""
