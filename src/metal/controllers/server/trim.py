"""Settings that a server has in any state: location LED and boot order. Only differences reach the BMC."""

from metal.bmc.errors import BMCNotSupported
from metal.controllers.server.scope import Scope


async def apply(scope: Scope) -> None:
    """Bring LED and boot order to what the spec says. What the BMC cannot do becomes a condition. Raises BMCError."""
    try:
        await _indicator(scope)
        await _boot_order(scope)
    except BMCNotSupported as exc:
        scope.condition("SettingsApplied", False, "NotSupported", str(exc))
        return
    if scope.find_condition("SettingsApplied") is not None:
        scope.condition("SettingsApplied", True, "Applied", "location LED and boot order are as declared")


async def _indicator(scope: Scope) -> None:
    wanted = scope.server.spec.indicator_led
    if wanted in ("", "Unknown", scope.status.indicator_led):
        return
    await scope.connected().set_indicator_led(scope.uri, wanted)
    scope.stale()
    scope.set(indicator_led=wanted)


async def _boot_order(scope: Scope) -> None:
    entries = scope.server.spec.boot_order
    system = scope.memo.system
    if not entries or system is None:
        return
    order = tuple(entry.device for entry in sorted(entries, key=lambda entry: entry.priority))
    if system.boot_order == order:
        return
    await scope.connected().set_boot_order(scope.uri, order)
    scope.stale()
