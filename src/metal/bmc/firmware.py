"""Resets of the BIOS and the TPM to factory defaults."""

from typing import Protocol


class Firmware(Protocol):
    """Puts firmware back to how it came. What is asked for takes effect as the machine starts."""

    async def reset_bios(self, uri: str) -> None:
        """All BIOS attributes to their defaults. BMCNotSupported where the BMC offers no such action."""
        ...

    async def is_bios_reset_pending(self, uri: str) -> bool | None:
        """Whether that is still to come; None where the BMC does not tell."""
        ...

    async def clear_tpm(self, uri: str) -> None:
        """Everything that the TPM holds for anybody. BMCNotSupported where no known BIOS attribute does that."""
        ...

    async def is_tpm_clear_pending(self, uri: str) -> bool | None:
        """Whether that is still to come; None where the BMC does not tell."""
        ...
