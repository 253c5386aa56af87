"""The base of every capability: the client, the quirks of a system, and how a reset type is chosen and sent."""

from collections.abc import Mapping, Sequence

from metal.bmc.errors import BMCNotSupported
from metal.bmc.vendors import Machine, Quirks, quirks_for
from metal.redfish import RedfishClient, Resource
from metal.redfish.paths import local_path
from metal.redfish.resources import Action, ActionInfo, System


class Capability:
    """Base of the mixins that make up RedfishBMC."""

    def __init__(self, client: RedfishClient) -> None:
        self.client = client
        self._parameters: dict[str, Mapping[str, tuple[str, ...]]] = {}
        self._managers: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.client!r}>"

    async def _read_system(self, uri: str) -> tuple[Resource, System]:
        resource = await self.client.get(uri)
        return resource, resource.decode(System)

    async def _allowable_resets(self, action: Action) -> tuple[str, ...]:
        """The reset types the BMC lists, on the action or in its ActionInfo (read once); empty when it lists none."""
        return action.reset_types or (await self._listed_values(action.action_info)).get("ResetType", ())

    async def _listed_values(self, action_info: str) -> Mapping[str, tuple[str, ...]]:
        """The values that an ActionInfo lists for each parameter of its action; read once."""
        if not action_info:
            return {}
        if action_info not in self._parameters:
            info = (await self.client.get(local_path(action_info))).decode(ActionInfo)
            self._parameters[action_info] = {each.name: each.allowable_values for each in info.parameters}
        return self._parameters[action_info]

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
