"""The parts of a system: processors, memory, storage and network interfaces, and the protocol that reads them."""

from dataclasses import dataclass
from typing import Protocol

from metal.bmc.systems import SystemInfo


@dataclass(frozen=True)
class Processor:
    """One processor package."""

    id: str
    type: str = ""
    architecture: str = ""
    instruction_set: str = ""
    manufacturer: str = ""
    model: str = ""
    max_speed_mhz: int = 0
    total_cores: int = 0
    total_threads: int = 0


@dataclass(frozen=True)
class MemoryModule:
    """One memory module."""

    id: str
    size_bytes: int = 0
    type: str = ""
    speed_mhz: int = 0
    manufacturer: str = ""
    part_number: str = ""
    serial_number: str = ""


@dataclass(frozen=True)
class Drive:
    """One drive of a storage controller."""

    name: str
    media_type: str = ""
    type: str = ""
    capacity_bytes: int = 0
    vendor: str = ""
    model: str = ""
    serial_number: str = ""
    wwn: str = ""
    """World-wide identifier (NAA, EUI or NGUID)."""
    state: str = ""
    health: str = ""


@dataclass(frozen=True)
class Volume:
    """One volume of a storage controller."""

    name: str
    capacity_bytes: int = 0
    state: str = ""
    raid_type: str = ""
    usage: str = ""
    health: str = ""
    wwn: str = ""
    """World-wide identifier (NAA, EUI or NGUID), as an operating system shows it."""
    drives: tuple[Drive, ...] = ()
    """The drives it consists of; empty unless all of them are known."""


@dataclass(frozen=True)
class Storage:
    """One storage controller with its drives and volumes."""

    name: str
    state: str = ""
    drives: tuple[Drive, ...] = ()
    volumes: tuple[Volume, ...] = ()


@dataclass(frozen=True)
class NetworkInterface:
    """One Ethernet interface as the BMC sees it. mac_address is lower case with colons."""

    name: str
    mac_address: str
    link_status: str = ""


@dataclass(frozen=True)
class Inventory:
    """Everything out-of-band inventory found. Best effort: `problems` says in sentences what could not be read."""

    system: SystemInfo
    processors: tuple[Processor, ...] = ()
    memory: tuple[MemoryModule, ...] = ()
    """Read only where the system itself reports no total: a large machine has dozens, each costing a request."""
    storages: tuple[Storage, ...] = ()
    network_interfaces: tuple[NetworkInterface, ...] = ()
    problems: tuple[str, ...] = ()


class InventoryReader(Protocol):
    """Reads the parts of a system."""

    async def inventory(self, uri: str) -> Inventory:
        """Processors, memory, storage and NICs, best effort."""
        ...
