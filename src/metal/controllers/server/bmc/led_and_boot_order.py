"""Location LED and boot order, of a server that is Available, or Reserved with nothing left to do.

Only differences are written to the BMC.
"""

from metal.bmc.errors import BMCBadRequest, BMCConflict, BMCForbidden, BMCNotSupported, BMCServerError
from metal.controllers.server.bmc.bmc_errors import reason_of
from metal.controllers.server.scope import Scope

_CONDITION = "SettingsApplied"
_FAILURES = (BMCNotSupported, BMCBadRequest, BMCForbidden, BMCConflict, BMCServerError)
"""The BMC answers, and does not carry out the request now or ever."""


async def apply(scope: Scope) -> None:
    """Set LED and boot order as the spec says. What the BMC rejects becomes a condition. Raises BMCError.

    Neither is essential: a rejection or a failure never stops other steps, and never leads to Error.
    """
    led = scope.server.spec.indicator_led
    try:
        changed = [await _indicator(scope, led), await _boot_order(scope)]
    except _FAILURES as exc:
        scope.condition(_CONDITION, False, reason_of(exc), str(exc))
        return
    await _update_condition(scope, led, changed=any(changed))


async def set_location_led(scope: Scope, led: str) -> None:
    """Set the location LED to `led` instead of what the spec says. A rejection becomes a condition. Raises BMCError."""
    try:
        changed = await _indicator(scope, led)
    except _FAILURES as exc:
        scope.condition(_CONDITION, False, reason_of(exc), str(exc))
        return
    await _update_condition(scope, led, changed=changed)


async def _update_condition(scope: Scope, led: str, *, changed: bool) -> None:
    if changed:
        await scope.observe()
    if _led_differs(scope, led):
        scope.condition(_CONDITION, False, "NotTaken", f"the BMC left the location LED at {scope.status.indicator_led}")
    elif changed or scope.find_condition(_CONDITION) is not None:
        scope.condition(_CONDITION, True, "Applied", "location LED and boot order are as declared")


def _led_differs(scope: Scope, led: str) -> bool:
    return led not in ("", "Unknown", scope.status.indicator_led)


async def _indicator(scope: Scope, led: str) -> bool:
    if not _led_differs(scope, led):
        return False
    await scope.connected().set_indicator_led(scope.uri, led)
    scope.invalidate()
    return True


async def _boot_order(scope: Scope) -> bool:
    entries = scope.server.spec.boot_order
    if not entries:
        return False
    order = tuple(entry.device for entry in sorted(entries, key=lambda entry: entry.priority))
    if (await scope.observe()).boot_order == order:
        return False
    await scope.connected().set_boot_order(scope.uri, order)
    scope.invalidate()
    return True
