"""The state of UEFI Secure Boot."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class SecureBootState:
    """Secure Boot as the BMC reports it (Redfish SecureBoot)."""

    enabled: bool | None = None
    """Whether it is enforced from the next start on; None where the BMC does not report it."""
    current: bool | None = None
    """Whether it was enforced at the last start; None where the BMC does not report it."""
    mode: str = ""
    """SetupMode, UserMode, AuditMode or DeployedMode; empty where the BMC does not report it."""

    @property
    def enforces(self) -> bool:
        """True when the next start refuses what no enrolled key has signed. Without keys, nothing is refused."""
        return bool(self.enabled) and self.mode not in ("SetupMode", "AuditMode")


class SecureBoot(Protocol):
    """Reads the state of Secure Boot."""

    async def secure_boot(self, uri: str) -> SecureBootState | None:
        """The state now; None where the BMC does not offer it."""
        ...
