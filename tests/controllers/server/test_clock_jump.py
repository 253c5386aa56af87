"""Times of a status that lie in the future are corrected once; those within the tolerance are not touched."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.api.boot_window import BootWindow
from metal.api.common import ObjectRef
from metal.api.server import ServerStatus, Wait
from metal.controllers.server.clock_jump import corrected
from metal.controllers.shared.clock_jump import TOLERANCE

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def status(begun: datetime, seconds: float) -> ServerStatus:
    """A wait and a boot window that began then."""
    end = begun + timedelta(seconds=seconds)
    window = BootWindow(
        id="b",
        purpose="Discovery",
        config_ref=ObjectRef(namespace="n", name="c"),
        opened_at=begun,
        expires_at=end,
        script_served_at=begun,
    )
    return ServerStatus(since=begun, wait=Wait(for_="BMC", since=begun, until=end), boot_window=window)


@pytest.mark.parametrize("ahead", [timedelta(microseconds=78), timedelta(seconds=3), TOLERANCE])
def test_a_moment_that_another_replica_has_just_written_stays(ahead: timedelta) -> None:
    """Its clock is a little ahead, or this one is rounded to milliseconds."""
    before = status(NOW + ahead, 600)
    assert corrected(before, NOW) is before


@given(st.integers(6, 10**6), st.floats(1, 10**5))
def test_no_deadline_moves_to_a_later_time_and_a_second_correction_changes_nothing(ahead: int, seconds: float) -> None:
    """The record begins now, and its deadline is as far away as it was at its begin."""
    before = status(NOW + timedelta(seconds=ahead), seconds)
    after = corrected(before, NOW)
    assert corrected(after, NOW) is after
    assert before.wait is not None
    assert after.wait is not None
    assert before.wait.until is not None
    assert after.wait.until is not None
    assert after.wait.since == NOW
    assert after.wait.until < before.wait.until
    assert abs(after.wait.until - NOW - timedelta(seconds=seconds)) < timedelta(milliseconds=1)
    assert after.boot_window is not None
    assert after.boot_window.opened_at == after.boot_window.script_served_at == NOW
