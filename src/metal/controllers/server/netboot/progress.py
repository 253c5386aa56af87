"""Whether a network boot is in the middle of something that nobody may interrupt."""

from metal.api.boot_window import BootWindow, Phase, Purpose
from metal.api.server import State
from metal.controllers.server.scope import Scope


def boot_under_way(scope: Scope) -> bool:
    """True while a network boot is served, or has succeeded and nobody has taken note of it yet."""
    window = scope.status.boot_window
    if window is None or window.phase in (Phase.CLOSED, Phase.CONTESTED):
        return False
    if window.phase != Phase.SUCCEEDED:
        return True
    if window.purpose == Purpose.CLAIM:
        return not is_noted(scope, window)
    return window.purpose == Purpose.DISCOVERY and scope.status.state == State.DISCOVERY


def is_noted(scope: Scope, window: BootWindow) -> bool:
    """True when the claim's boot that this window was for is written down as had."""
    booted = scope.status.claim_boot
    return booted is not None and booted.booted_at is not None and booted.boot_generation >= window.boot_generation


def has_booted(scope: Scope) -> bool:
    """True when the claim has had its network boot, and the machine starts from its disk."""
    booted = scope.status.claim_boot
    return booted is not None and booted.booted_at is not None
