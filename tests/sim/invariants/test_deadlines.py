"""A deadline that moves later because the clock was set back is detected."""

from datetime import timedelta

import pytest

from metal.api.meta import ObjectMeta
from metal.api.server import Server, ServerStatus, Wait
from metal.sim.history import History
from metal.sim.invariants import (
    InvariantViolation,
    check_deadlines,
)
from tests.sim.invariants.story import NOW


def _with_clock_set(hours: int, wait: str, later: float) -> History:
    """A wait of ten minutes; the clock is set, and then the status has a wait that ends later by the clock."""
    steady, ahead = [NOW], [timedelta()]
    history = History(lambda: steady[0] + ahead[0], steady=lambda: steady[0])
    for name, until in (("BootScript", NOW), (wait, NOW + timedelta(seconds=later))):
        one = Wait(for_=name, since=NOW - timedelta(seconds=600), until=until)
        status = ServerStatus(state="Discovery", wait=one)
        history.changed("Server", "", "s1", Server(metadata=ObjectMeta(name="s1"), status=status))
        ahead[0] += timedelta(hours=hours)
        steady[0] += timedelta(seconds=1)
    return history


def test_a_deadline_that_moves_later_because_the_clock_was_set_back_is_detected() -> None:
    """The same wait ends later by the clock than before."""
    with pytest.raises(InvariantViolation, match="wait BootScript in Discovery of server s1 ends 0:00:01 later"):
        check_deadlines(_with_clock_set(-1, "BootScript", 1))


@pytest.mark.parametrize(
    ("hours", "wait", "later"),
    [(-1, "BootScript", 0), (-1, "Report", 600), (0, "BootScript", 60), (1, "BootScript", 60)],
)
def test_other_deadlines_are_no_violation(hours: int, wait: str, later: float) -> None:
    """The deadline stayed, it is another wait's, or the clock was not set back."""
    check_deadlines(_with_clock_set(hours, wait, later))
