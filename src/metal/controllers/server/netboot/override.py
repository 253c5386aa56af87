"""The boot override outside of a network boot: there is to be none."""

from metal.bmc.errors import BMCBadRequest, BMCNotSupported
from metal.bmc.systems import SystemInfo
from metal.controllers.server.scope import Scope

_CONDITION = "BootOverrideCleared"


async def clear_override(scope: Scope, *, max_age: float | None = None) -> SystemInfo:
    """Make sure that the next boot goes to the disk; returns the system as read before.

    A BMC that keeps the override is a condition. Raises BMCError.
    """
    system = await scope.observe(max_age=max_age)
    if not system.boot.is_network:
        _say_cleared(scope)
        return system
    await scope.require_latest()
    scope.invalidate()
    if await _clear(scope):
        scope.condition(_CONDITION, True, "Cleared", "the BMC had kept the network boot override")
        return system
    message = "the BMC keeps the network boot override; nothing is served to it"
    known = scope.find_condition(_CONDITION)
    if known is None or known.status != "False":
        scope.record_event("OverrideKept", message, warning=True)
    scope.condition(_CONDITION, False, "OverrideKept", message)
    return system


async def _clear(scope: Scope) -> bool:
    try:
        return not (await scope.connected().clear_boot_override(scope.uri)).is_network
    except (BMCNotSupported, BMCBadRequest):  # it refuses every way there is
        return False


def _say_cleared(scope: Scope) -> None:
    known = scope.find_condition(_CONDITION)
    if known is not None and known.status != "True":
        scope.condition(_CONDITION, True, "Cleared", "the BMC has dropped the network boot override")


def is_kept(scope: Scope) -> bool:
    """True when the BMC was last seen to keep the override although it was told to drop it."""
    known = scope.find_condition(_CONDITION)
    return known is not None and known.status == "False"
