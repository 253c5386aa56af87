"""BIOS attributes over Redfish: reading them, and writing changes that apply at the next start (Bios, DSP0268)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from metal.bmc.errors import BMCNotSupported
from metal.bmc.redfish.capability import Capability, machine_of
from metal.bmc.vendors import Machine
from metal.redfish import Resource
from metal.redfish.paths import local_path
from metal.redfish.resources import Bios, System

_ON_RESET = "OnReset"


@dataclass(frozen=True)
class BiosView:
    """The Bios of a system, from one read."""

    machine: Machine
    resource: Resource
    bios: Bios


class BiosSettings(Capability):
    """Base of the capabilities that change BIOS attributes."""

    async def _bios(self, uri: str) -> BiosView:
        _, system = await self._read_system(uri)
        return await self._bios_of(system)

    async def _bios_of(self, system: System) -> BiosView:
        if not system.bios.odata_id:
            raise BMCNotSupported(f"{self.client.name} shows no BIOS of this system.")
        resource = await self.client.get(local_path(system.bios.odata_id))
        return BiosView(machine_of(system), resource, resource.decode(Bios))

    async def _settings(self, view: BiosView) -> Resource:
        path = view.bios.settings.settings_object.odata_id
        return await self.client.get(local_path(path)) if path else view.resource

    async def _stage(self, view: BiosView, attributes: Mapping[str, str]) -> None:
        """Write to the settings object; with the apply time OnReset where the BMC lists it."""
        body: dict[str, Any] = {"Attributes": dict(attributes)}
        if _ON_RESET in view.bios.settings.supported_apply_times:
            body["@Redfish.SettingsApplyTime"] = {"ApplyTime": _ON_RESET}
        place = await self._settings(view)
        await self.client.patch(place.path, body, etag=place.etag)
