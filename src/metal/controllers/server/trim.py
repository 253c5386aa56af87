"""Settings that a server has in any state: location LED and boot order. Only differences reach the BMC."""

from metal.bmc.errors import BMCBadRequest, BMCForbidden, BMCNotSupported
from metal.controllers.server.scope import Scope

_CONDITION = "SettingsApplied"


async def apply(scope: Scope) -> None:
    """Bring LED and boot order to what the spec says. What the BMC does not take becomes a condition. Raises BMCError.

    Neither is worth a machine: a refusal never stops what else is to be done.
    """
    try:
        changed = [await step(scope) for step in (_indicator, _boot_order)]
    except (BMCNotSupported, BMCBadRequest, BMCForbidden) as exc:
        scope.condition(_CONDITION, False, exc.reason, str(exc))
        return
    if any(changed):
        await scope.observe()
    if _led_differs(scope):
        scope.condition(_CONDITION, False, "NotTaken", f"the BMC keeps the location LED {scope.status.indicator_led}")
    elif any(changed) or scope.find_condition(_CONDITION) is not None:
        scope.condition(_CONDITION, True, "Applied", "location LED and boot order are as declared")


def _led_differs(scope: Scope) -> bool:
    return scope.server.spec.indicator_led not in ("", "Unknown", scope.status.indicator_led)


async def _indicator(scope: Scope) -> bool:
    if not _led_differs(scope):
        return False
    await scope.connected().set_indicator_led(scope.uri, scope.server.spec.indicator_led)
    scope.stale()
    return True


async def _boot_order(scope: Scope) -> bool:
    entries = scope.server.spec.boot_order
    if not entries:
        return False
    order = tuple(entry.device for entry in sorted(entries, key=lambda entry: entry.priority))
    if (await scope.observe()).boot_order == order:
        return False
    await scope.connected().set_boot_order(scope.uri, order)
    scope.stale()
    return True
