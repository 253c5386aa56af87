"""A deadline that moves later is detected, while a wait lasts and when the clock was set back."""

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


def _history(hours: int, wait: str, later: float, began: float) -> History:
    """A wait of ten minutes; the clock is set, and then the status has a wait with another begin and end."""
    steady, ahead = [NOW], [timedelta()]
    history = History(lambda: steady[0] + ahead[0], steady=lambda: steady[0])
    for name, seconds, since in (("BootScript", 0.0, 0.0), (wait, later, began)):
        one = Wait(for_=name, since=NOW + timedelta(seconds=since), until=NOW + timedelta(minutes=10, seconds=seconds))
        status = ServerStatus(state="Discovery", wait=one)
        history.changed("Server", "", "s1", Server(metadata=ObjectMeta(name="s1"), status=status))
        ahead[0] += timedelta(hours=hours)
        steady[0] += timedelta(seconds=1)
    return history


@pytest.mark.parametrize(
    ("hours", "began", "why"), [(-1, 0, " because"), (-1, 60, " because"), (0, 0, "$"), (1, 0, "$")]
)
def test_a_deadline_that_moves_later_is_detected(hours: int, began: float, why: str) -> None:
    """The wait lasts and its deadline moves, or the clock was set back and it ends later by the clock."""
    with pytest.raises(InvariantViolation, match=rf"(?m)wait BootScript in Discovery ends 0:00:01 later{why}"):
        check_deadlines(_history(hours, "BootScript", 1, began))


@pytest.mark.parametrize(
    ("hours", "wait", "later", "began"),
    [(-1, "BootScript", 0, 60), (-1, "Report", 600, 60), (0, "BootScript", 60, 60), (1, "BootScript", 60, 60)],
)
def test_other_deadlines_are_no_violation(hours: int, wait: str, later: float, began: float) -> None:
    """The deadline stayed, it is another wait's, or the wait began again."""
    check_deadlines(_history(hours, wait, later, began))
