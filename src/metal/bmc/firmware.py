"""Resets of the BIOS and the TPM to factory defaults."""

from typing import Protocol


class Firmware(Protocol):
    """Resets firmware to factory defaults. A reset takes effect the next time the machine starts."""

    async def reset_bios(self, uri: str) -> None:
        """All BIOS attributes to their defaults. BMCNotSupported where the BMC offers no such action."""
        ...

    async def is_bios_reset_pending(self, uri: str) -> bool | None:
        """Whether the change is still pending; None where the BMC does not report it."""
        ...

    async def clear_tpm(self, uri: str) -> None:
        """Delete all keys that the TPM holds. BMCNotSupported where no known BIOS attribute does that."""
        ...

    async def is_tpm_clear_pending(self, uri: str) -> bool | None:
        """Whether the change is still pending; None where the BMC does not report it."""
        ...
