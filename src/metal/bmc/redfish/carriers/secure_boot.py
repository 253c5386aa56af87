"""The state of Secure Boot over Redfish (SecureBoot, DSP0268)."""

from metal.bmc.carriers.secure_boot import SecureBootState
from metal.bmc.errors import BMCNotFound
from metal.bmc.redfish.capability import Capability
from metal.redfish import resources as schema
from metal.redfish.paths import local_path

_CURRENT = {"Enabled": True, "Disabled": False}


class RedfishSecureBoot(Capability):
    """Reads SecureBoot."""

    async def secure_boot(self, uri: str) -> SecureBootState | None:
        """Two requests."""
        _, system = await self._read_system(uri)
        if not system.secure_boot.odata_id:
            return None
        try:
            found = (await self.client.get(local_path(system.secure_boot.odata_id))).decode(schema.SecureBoot)
        except BMCNotFound:
            return None
        current = _CURRENT.get(found.secure_boot_current_boot)
        return SecureBootState(found.secure_boot_enable, current, found.secure_boot_mode)
