"""Whether an Off can be believed: a BMC may go on reporting it for a while after it was asked to switch on."""

from datetime import timedelta

from metal.bmc.errors import BMCBadRequest, BMCNotSupported
from metal.bmc.protocols import PowerState, ResetType, SystemInfo
from metal.controllers.server.scope import Scope


class Refused(Exception):
    """The BMC refuses to switch off what it takes to be off; whether it is, the next looks tell."""


def note_on(scope: Scope) -> None:
    """Remember that On is being asked for; one that was asked for shortly before counts as the same."""
    asked, half = scope.status.on_requested_at, timedelta(seconds=scope.settings.power_settle / 2)
    if asked is None or not asked <= scope.now < asked + half:
        scope.set(on_requested_at=scope.now)


def is_old_off(scope: Scope, system: SystemInfo) -> bool:
    """True when the reading is Off, and may be older than the last power-on; forgets a power-on that is long past."""
    asked = scope.status.on_requested_at
    if asked is None or system.power_state is not PowerState.OFF:
        return False
    if asked > scope.now:  # the clock was set back: nobody knows how long ago that was
        scope.set(on_requested_at=scope.now)
        return True
    if (scope.now - asked).total_seconds() < scope.settings.power_settle:
        return True
    scope.set(on_requested_at=None)
    return False


def is_shown_off(scope: Scope) -> bool:
    """True when the BMC was last seen to report Off although On was asked for and not seen since."""
    return scope.status.on_requested_at is not None and scope.status.power_state == PowerState.OFF


async def power_off(scope: Scope, *, force: bool) -> None:
    """Ask for Off, also where the BMC still shows an old one. Raises Refused and BMCError."""
    if not is_shown_off(scope):
        await scope.connected().power_off(scope.uri, force=force)
        return
    how = ResetType.FORCE_OFF if force else ResetType.GRACEFUL_SHUTDOWN
    try:
        await scope.connected().reset(scope.uri, how)
    except (BMCNotSupported, BMCBadRequest) as exc:
        raise Refused from exc
