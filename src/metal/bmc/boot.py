"""Boot overrides and the boot order of a system."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class BootTarget(StrEnum):
    """Where a one-time boot override points (Redfish BootSource)."""

    NONE = "None"
    PXE = "Pxe"
    UEFI_HTTP = "UefiHttp"
    HDD = "Hdd"
    CD = "Cd"
    USB_CD = "UsbCd"


class BootEnabled(StrEnum):
    """How long a boot override holds (Redfish BootSourceOverrideEnabled)."""

    DISABLED = "Disabled"
    ONCE = "Once"
    CONTINUOUS = "Continuous"


@dataclass(frozen=True)
class BootOverride:
    """The boot override as the BMC reports it. Fields the BMC does not report are empty."""

    enabled: str = ""
    target: str = ""
    mode: str = ""
    http_boot_uri: str = field(default="", repr=False)
    """May hold a secret."""

    @property
    def is_network(self) -> bool:
        """True when the next boot would go to the network."""
        return self.enabled in ("Once", "Continuous") and self.target in ("Pxe", "UefiHttp")

    @property
    def is_medium(self) -> bool:
        """True when the next boot would go to a virtual medium."""
        return self.enabled in ("Once", "Continuous") and self.target in ("Cd", "UsbCd")


class Boot(Protocol):
    """Chooses what a system boots from."""

    async def set_network_boot(self, uri: str, target: BootTarget = BootTarget.PXE) -> BootOverride:
        """Boot once from the network at the next start; returns the override as read back."""
        ...

    async def clear_boot_override(self, uri: str) -> BootOverride:
        """Remove the override; returns what is read back."""
        ...

    async def set_boot_order(self, uri: str, order: tuple[str, ...]) -> None:
        """Persistent boot order, device references first to last."""
        ...
