"""Power over Redfish (ComputerSystem.Reset, DSP0268)."""

from metal.bmc.errors import BMCBadRequest, BMCConflict, BMCError
from metal.bmc.power import ResetType
from metal.bmc.redfish.capability import Capability
from metal.redfish.resources import System

_ON = (ResetType.ON, ResetType.FORCE_ON, ResetType.PUSH_POWER_BUTTON)
_GRACEFUL_OFF = (ResetType.GRACEFUL_SHUTDOWN, ResetType.PUSH_POWER_BUTTON)
_ALREADY_ON = frozenset({"On", "PoweringOn"})


class RedfishPower(Capability):
    """Each method reads the power state first, because pushing the power button twice undoes the first push."""

    async def power_on(self, uri: str) -> None:
        """Sends nothing when the system is on or powering on."""
        await self._towards(uri, _ON, "switch on", _ALREADY_ON)

    async def power_off(self, uri: str, *, force: bool = False) -> None:
        """Sends nothing when the system is off, or without force when it is powering off."""
        if force:
            await self._towards(uri, (ResetType.FORCE_OFF,), "cut the power", frozenset({"Off"}))
        else:
            await self._towards(uri, _GRACEFUL_OFF, "shut down", frozenset({"Off", "PoweringOff"}))

    async def reset(self, uri: str, reset_type: ResetType) -> None:
        """Exactly this type, in every power state."""
        _, system = await self._read_system(uri)
        await self._reset_with_first(system.actions.reset, (reset_type,), f"do the reset {reset_type}")

    async def _towards(self, uri: str, wanted: tuple[ResetType, ...], what: str, done: frozenset[str]) -> None:
        _, system = await self._read_system(uri)
        if system.power_state in done:
            return
        try:
            await self._reset_with_first(system.actions.reset, wanted, what)
        except (BMCConflict, BMCBadRequest) as error:
            await self._ignore_if_reached(uri, done, error)

    async def _ignore_if_reached(self, uri: str, done: frozenset[str], error: BMCError) -> None:
        """Some BMCs reject a change to the present state; that is not an error."""
        now: System = (await self._read_system(uri))[1]
        if now.power_state not in done:
            raise error
