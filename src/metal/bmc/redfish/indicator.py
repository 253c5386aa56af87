"""The location LED over Redfish: IndicatorLED, or LocationIndicatorActive which replaced it."""

from metal.bmc.errors import BMCBadRequest, BMCNotSupported
from metal.bmc.redfish.capability import Capability

STATES = ("Off", "Lit", "Blinking")


class RedfishIndicator(Capability):
    """Sets the location LED."""

    async def set_indicator_led(self, uri: str, state: str) -> None:
        """Where the BMC supports only on and off, Blinking is on."""
        if state not in STATES:
            raise BMCBadRequest(f"The indicator LED can be {', '.join(STATES)}, not {state!r}.")
        resource, system = await self._read_system(uri)
        if system.indicator_led:
            body: dict[str, str | bool] = {"IndicatorLED": state}
        elif system.location_indicator_active is not None:
            body = {"LocationIndicatorActive": state != "Off"}
        else:
            raise BMCNotSupported(f"{self.client.name} offers no indicator LED for this system.")
        await self.client.patch(uri, body, etag=resource.etag)
