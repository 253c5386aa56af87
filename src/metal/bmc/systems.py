"""Computer systems and managers as one read returns them, and the protocol that reads them."""

from dataclasses import dataclass, field
from typing import Protocol

from metal.bmc.boot import BootOverride
from metal.bmc.power import PowerState


@dataclass(frozen=True)
class ManagerInfo:
    """The BMC itself (Redfish Manager)."""

    uri: str
    uuid: str = ""
    manufacturer: str = ""
    model: str = ""
    sku: str = ""
    serial_number: str = ""
    firmware_version: str = ""
    state: str = ""
    power_state: PowerState = PowerState.UNKNOWN
    last_reset_time: str = ""


@dataclass(frozen=True)
class SystemInfo:
    """One computer system, from one read."""

    uri: str
    uuid: str
    manufacturer: str = ""
    model: str = ""
    sku: str = ""
    serial_number: str = ""
    bios_version: str = ""
    power_state: PowerState = PowerState.UNKNOWN
    indicator_led: str = ""
    total_memory_bytes: int = 0
    processor_model: str = ""
    boot: BootOverride = field(default_factory=BootOverride)
    boot_order: tuple[str, ...] = ()
    bootable: bool = True
    """False when the system offers no boot override at all (then it is no server)."""


class Systems(Protocol):
    """Reads the manager and the computer systems of a BMC."""

    async def manager(self, uuid: str = "") -> ManagerInfo:
        """The manager with this UUID; without a UUID the one that offers a console, or the first.

        Raises BMCManagerNotFound when none has the UUID.
        """
        ...

    async def systems(self) -> tuple[SystemInfo, ...]:
        """All computer systems of this BMC."""
        ...

    async def system(self, uri: str) -> SystemInfo:
        """One system, read now."""
        ...

    async def bios_attributes(self, uri: str) -> dict[str, str | int | bool | None]:
        """Current BIOS attributes; empty when the BMC offers none."""
        ...


class ManagerControl(Protocol):
    """Acts on the BMC itself."""

    async def reset_manager(self, uuid: str = "") -> None:
        """Restart the BMC gracefully."""
        ...
