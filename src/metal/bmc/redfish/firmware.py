"""Firmware resets over Redfish: Bios.ResetBios, and the BIOS attribute that clears the TPM."""

from metal.bmc.errors import BMCNotSupported
from metal.bmc.redfish.bios import BiosSettings, BiosView
from metal.bmc.vendors import TPMClear, tpm_clear_for
from metal.redfish.paths import local_path
from metal.redfish.resources import Bios


class RedfishFirmware(BiosSettings):
    """Changes that the BIOS applies the next time the machine starts."""

    async def reset_bios(self, uri: str) -> None:
        """Bios.ResetBios: reads the system and its Bios, then sends the action."""
        bios = (await self._bios(uri)).bios
        target = bios.actions.reset_bios.target
        if not target:
            raise BMCNotSupported(f"{self.client.name} offers no Bios.ResetBios for this system.")
        await self.client.post(local_path(target), {})

    async def is_bios_reset_pending(self, uri: str) -> bool | None:
        """The property ResetBiosToDefaultsPending, which BIOSes before Bios 1.1 do not have."""
        return (await self._bios(uri)).bios.reset_bios_to_defaults_pending

    async def clear_tpm(self, uri: str) -> None:
        """Writes the attribute to the settings object; with the apply time OnReset where the BMC lists it."""
        view = await self._bios(uri)
        clear = self._clear(view)
        await self._stage(view, {clear.attribute: clear.value})

    async def is_tpm_clear_pending(self, uri: str) -> bool | None:
        """Whether the attribute has the clearing value, in the settings object or in the current attributes."""
        view = await self._bios(uri)
        clear = tpm_clear_for(view.machine, view.bios.attributes)
        if clear is None:
            return None
        coming = (await self._settings(view)).decode(Bios)
        return clear.value in (coming.attributes.get(clear.attribute), view.bios.attributes.get(clear.attribute))

    def _clear(self, view: BiosView) -> TPMClear:
        clear = tpm_clear_for(view.machine, view.bios.attributes)
        if clear is None:
            raise BMCNotSupported(f"{self.client.name} shows no BIOS attribute that is known to clear a TPM.")
        if clear.has_no_tpm(view.bios.attributes):
            raise BMCNotSupported(f"{self.client.name} reports that this system has no TPM.")
        return clear
