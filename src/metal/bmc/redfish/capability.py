"""The base of every capability: the client, the quirks of a system, and how a reset type is chosen and sent."""

from collections.abc import Sequence

from metal.bmc.errors import BMCNotSupported
from metal.bmc.vendors import Machine, Quirks, quirks_for
from metal.redfish import RedfishClient, Resource
from metal.redfish.paths import local_path
from metal.redfish.resources import Action, ActionInfo, System


class Capability:
    """Base of the mixins that make up RedfishBMC."""

    def __init__(self, client: RedfishClient) -> None:
        self.client = client
        self._reset_types: dict[str, tuple[str, ...]] = {}
        self._managers: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.client!r}>"

    async def _read_system(self, uri: str) -> tuple[Resource, System]:
        resource = await self.client.get(uri)
        return resource, resource.decode(System)

    async def _allowable_resets(self, action: Action) -> tuple[str, ...]:
        """The reset types the BMC lists, on the action or in its ActionInfo (read once); empty when it lists none."""
        if action.reset_types or not action.action_info:
            return action.reset_types
        if action.action_info not in self._reset_types:
            info = (await self.client.get(local_path(action.action_info))).decode(ActionInfo)
            values = [parameter.allowable_values for parameter in info.parameters if parameter.name == "ResetType"]
            self._reset_types[action.action_info] = values[0] if values else ()
        return self._reset_types[action.action_info]

    async def _reset_with_first(self, action: Action, wanted: Sequence[str], what: str) -> None:
        """Send the first of `wanted` that the BMC allows; the very first when it lists nothing.

        Raises: BMCNotSupported, naming what it would allow.
        """
        if not action.target:
            raise BMCNotSupported(f"{self.client.name} offers no reset, so it cannot {what}.")
        allowed = await self._allowable_resets(action)
        choice = next((kind for kind in wanted if not allowed or kind in allowed), None)
        if choice is None:
            raise BMCNotSupported(
                f"{self.client.name} cannot {what}: it allows {', '.join(allowed)}, and none of {', '.join(wanted)}."
            )
        await self.client.post(local_path(action.target), {"ResetType": choice})


def machine_of(system: System) -> Machine:
    """What the table of vendor facts is asked with."""
    return Machine(system.manufacturer, system.model, system.bios_version)


def system_quirks(system: System) -> Quirks:
    """The quirks of this system."""
    return quirks_for(machine_of(system))
