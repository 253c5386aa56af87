"""Power of a system: its state, the kinds of reset, and the protocol that changes it."""

from enum import StrEnum
from typing import Protocol


class PowerState(StrEnum):
    """Power state of a system or manager (Redfish Resource.PowerState, DSP0268)."""

    ON = "On"
    OFF = "Off"
    PAUSED = "Paused"
    POWERING_ON = "PoweringOn"
    POWERING_OFF = "PoweringOff"
    UNKNOWN = "Unknown"


class ResetType(StrEnum):
    """Kinds of reset (Redfish Resource.ResetType, DSP0268)."""

    ON = "On"
    FORCE_ON = "ForceOn"
    FORCE_OFF = "ForceOff"
    GRACEFUL_SHUTDOWN = "GracefulShutdown"
    GRACEFUL_RESTART = "GracefulRestart"
    FORCE_RESTART = "ForceRestart"
    POWER_CYCLE = "PowerCycle"
    PUSH_POWER_BUTTON = "PushPowerButton"
    NMI = "Nmi"


class Power(Protocol):
    """Changes power. None of these waits until the change has happened."""

    async def power_on(self, uri: str) -> None:
        """Ask for power with the first allowable of On, ForceOn, PushPowerButton."""
        ...

    async def power_off(self, uri: str, *, force: bool = False) -> None:
        """Ask the operating system to shut down, or cut the power when forced."""
        ...

    async def reset(self, uri: str, reset_type: ResetType) -> None:
        """Exactly this reset; BMCNotSupported when the BMC does not list it."""
        ...
