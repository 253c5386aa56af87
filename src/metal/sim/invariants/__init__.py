"""Invariants: what must hold in every history of a fleet, under every fault.

`world` replays a history and keeps the objects and machines as they were before each entry; each other module checks
one group of invariants over that replay and raises InvariantViolation with the entries that led to it. `check_all`
runs every check. May import `metal.sim.history`, `metal.api` and `metal.controllers`.
Start reading in `world`, then `claims`.
"""

from collections.abc import Callable, Iterable

from metal.sim.history import History
from metal.sim.invariants.binding import check_eligible, check_kept, check_ready
from metal.sim.invariants.claims import check_one_claim, check_one_network_boot, check_untouched
from metal.sim.invariants.data import check_disks_are_clean, check_sanitized
from metal.sim.invariants.deadlines import check_deadlines
from metal.sim.invariants.identity import check_discovered, check_one_machine, check_strangers
from metal.sim.invariants.physical import check_physical
from metal.sim.invariants.power import check_power_after_configuration
from metal.sim.invariants.secrets import check_secrets
from metal.sim.invariants.thrift import check_attempts, check_bounded, check_load
from metal.sim.invariants.waits import check_available_is_off, check_waits
from metal.sim.invariants.world import InvariantViolation

CHECKS: tuple[Callable[[History], None], ...] = (
    check_one_claim,
    check_untouched,
    check_one_network_boot,
    check_available_is_off,
    check_sanitized,
    check_disks_are_clean,
    check_waits,
    check_power_after_configuration,
    check_eligible,
    check_kept,
    check_ready,
    check_one_machine,
    check_discovered,
    check_strangers,
    check_bounded,
    check_attempts,
    check_deadlines,
    check_physical,
)
"""All checks that need only a history."""

__all__ = [
    "CHECKS",
    "InvariantViolation",
    "check_all",
    "check_attempts",
    "check_available_is_off",
    "check_bounded",
    "check_deadlines",
    "check_discovered",
    "check_disks_are_clean",
    "check_eligible",
    "check_kept",
    "check_load",
    "check_one_claim",
    "check_one_machine",
    "check_one_network_boot",
    "check_physical",
    "check_power_after_configuration",
    "check_ready",
    "check_sanitized",
    "check_secrets",
    "check_strangers",
    "check_untouched",
    "check_waits",
]


def check_all(history: History, secrets: Iterable[str] = ()) -> None:
    """Run every check over a history. Raises InvariantViolation at the first that fails."""
    for check in CHECKS:
        check(history)
    check_secrets(history, secrets)
