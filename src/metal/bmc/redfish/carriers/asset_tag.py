"""Asset tags over Redfish: the property AssetTag of the ComputerSystem and of its Chassis."""

from metal.bmc.carriers.asset_tag import AssetTag
from metal.bmc.redfish.capability import Capability, system_quirks
from metal.redfish import Resource
from metal.redfish.paths import local_path
from metal.redfish.resources import System


class RedfishAssetTags(Capability):
    """Reads and writes AssetTag."""

    async def asset_tags(self, uri: str) -> tuple[AssetTag, ...]:
        """One request, and one for each chassis of the system."""
        resource, system = await self._read_system(uri)
        return await self._tags(resource, system)

    async def set_asset_tag(self, uri: str, place: str, value: str) -> AssetTag:
        """A tag that is so already is not written."""
        self.client.redact.add(value)
        resource = await self.client.get(place)
        if _tag(resource).value == value:
            return _tag(resource)
        await self.client.patch(place, {"AssetTag": value}, etag=resource.etag)
        return _tag(await self.client.get(place))

    async def _tags(self, resource: Resource, system: System) -> tuple[AssetTag, ...]:
        chassis = [await self.client.get(local_path(ref.odata_id)) for ref in system.links.chassis if ref.odata_id]
        places = [*chassis, resource] if system_quirks(system).asset_tag_on_chassis else [resource, *chassis]
        return tuple(_tag(place) for place in places if "AssetTag" in place.data)


def _tag(resource: Resource) -> AssetTag:
    value = resource.data.get("AssetTag")
    return AssetTag(resource.path, value if isinstance(value, str) else "")
