"""Firmware resets over Redfish: Bios.ResetBios, and the BIOS attribute that clears the TPM."""

from dataclasses import dataclass
from typing import Any

from metal.bmc.errors import BMCNotSupported
from metal.bmc.redfish.capability import Capability, machine_of
from metal.bmc.vendors import Machine, TPMClear, tpm_clear_for
from metal.redfish import Resource
from metal.redfish.paths import local_path
from metal.redfish.resources import Bios

_ON_RESET = "OnReset"


class RedfishFirmware(Capability):
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
        body: dict[str, Any] = {"Attributes": {clear.attribute: clear.value}}
        if _ON_RESET in view.bios.settings.supported_apply_times:
            body["@Redfish.SettingsApplyTime"] = {"ApplyTime": _ON_RESET}
        place = await self._settings(view)
        await self.client.patch(place.path, body, etag=place.etag)

    async def is_tpm_clear_pending(self, uri: str) -> bool | None:
        """Whether the attribute has the clearing value, in the settings object or in the current attributes."""
        view = await self._bios(uri)
        clear = tpm_clear_for(view.machine, view.bios.attributes)
        if clear is None:
            return None
        coming = (await self._settings(view)).decode(Bios)
        return clear.value in (coming.attributes.get(clear.attribute), view.bios.attributes.get(clear.attribute))

    def _clear(self, view: "_View") -> TPMClear:
        clear = tpm_clear_for(view.machine, view.bios.attributes)
        if clear is None:
            raise BMCNotSupported(f"{self.client.name} shows no BIOS attribute that is known to clear a TPM.")
        if clear.has_no_tpm(view.bios.attributes):
            raise BMCNotSupported(f"{self.client.name} reports that this system has no TPM.")
        return clear

    async def _bios(self, uri: str) -> "_View":
        _, system = await self._read_system(uri)
        if not system.bios.odata_id:
            raise BMCNotSupported(f"{self.client.name} shows no BIOS of this system.")
        resource = await self.client.get(local_path(system.bios.odata_id))
        return _View(machine_of(system), resource, resource.decode(Bios))

    async def _settings(self, view: "_View") -> Resource:
        path = view.bios.settings.settings_object.odata_id
        return await self.client.get(local_path(path)) if path else view.resource


@dataclass(frozen=True)
class _View:
    machine: Machine
    resource: Resource
    bios: Bios
