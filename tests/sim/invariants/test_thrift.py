"""Loops are detected: of versions, resets, requests to a BMC and network boots."""

from datetime import UTC, datetime, timedelta

import pytest

from metal.api.meta import ObjectMeta
from metal.api.server import Failure, Server, ServerSpec, ServerStatus
from metal.sim.history import History
from metal.sim.invariants import (
    InvariantViolation,
    check_attempts,
    check_bounded,
    check_load,
)
from metal.sim.invariants.thrift import MOST_REQUESTS
from tests.sim.invariants.story import UUID, Story


@pytest.mark.parametrize(("pause", "loops"), [(0.5, True), (1.0, False)])
def test_a_server_that_is_written_in_a_loop_is_detected(pause: float, loops: bool) -> None:
    """Two versions of its status a second are a loop, one a second is not."""
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    history = History(lambda: now[0])
    for number in range(200):
        status = ServerStatus(waiting_for=str(number))
        history.changed("Server", "", "s1", Server(metadata=ObjectMeta(name="s1"), status=status))
        now[0] += timedelta(seconds=pause)
    if not loops:
        check_bounded(history)
        return
    with pytest.raises(InvariantViolation, match="s1 had 91 versions within a minute"):
        check_bounded(history)


def test_a_machine_that_is_reset_in_a_loop_is_detected() -> None:
    """A reset each second."""
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    history = History(lambda: now[0])
    for _ in range(60):
        history.happened("u1", "reset", type="On")
        now[0] += timedelta(seconds=1)
    with pytest.raises(InvariantViolation, match="u1 had 31 resets within a minute"):
        check_bounded(history)


@pytest.mark.parametrize("kind", MOST_REQUESTS)
def test_a_bmc_that_is_asked_in_a_loop_is_detected(kind: str) -> None:
    """Reads and writes have limits of their own, for each BMC."""
    most = MOST_REQUESTS[kind]
    check_load({"a": {kind: most}, "b": {kind: most}})
    with pytest.raises(InvariantViolation, match=f"BMC b got {most + 1} {kind} within a minute"):
        check_load({"a": {kind: most}, "b": {kind: most + 1}})


@pytest.mark.parametrize(("pause", "loops"), [(59.0, True), (61.0, False)])
def test_a_request_that_is_rejected_in_a_loop_is_detected(pause: float, loops: bool) -> None:
    """Sixty of one kind in an hour are pauses that grow, more are none; another kind counts for itself."""
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    history = History(lambda: now[0])
    for _ in range(200):
        history.happened("u1", "rejected", request="POST /reset", status=500)
        history.happened("u1", "rejected", request="PATCH /system", status=500)
        now[0] += timedelta(seconds=pause)
    if not loops:
        check_bounded(history)
        return
    with pytest.raises(InvariantViolation, match="u1 had 61 rejected requests within an hour"):
        check_bounded(history)


def _attempts(failure: Failure, *, now: int, annotated: bool) -> History:
    """A server leaves Error, and counts this many network boots of two."""
    story = Story().server("Error", failure=failure, boot_attempts=2)
    if annotated:
        meta = ObjectMeta(name="s1", annotations={"metal.ironcore.dev/operation": "retry"})
        status = ServerStatus(state="Error", failure=failure, boot_attempts=2)
        spec = ServerSpec(system_uuid=UUID)
        story.history.changed("Server", "", "s1", Server(metadata=meta, spec=spec, status=status))
    return story.server("Reserved", boot_attempts=now).history


def test_an_outage_that_resets_the_count_of_boots_is_detected() -> None:
    """A failure of the BMC that ends by itself keeps status.bootAttempts."""
    outage = Failure(state="Reserved", reason="BMCTimeout")
    with pytest.raises(InvariantViolation, match="counts 0 network boots after an outage, before 2"):
        check_attempts(_attempts(outage, now=0, annotated=False))


@pytest.mark.parametrize(
    ("failure", "now", "annotated"),
    [
        (Failure(state="Reserved", reason="BMCTimeout"), 2, False),
        (Failure(state="Reserved", reason="BMCTimeout"), 0, True),
        (Failure(state="Reserved", reason="NetworkBootFailed"), 0, False),
    ],
    ids=["kept", "retry", "another failure"],
)
def test_a_count_that_may_begin_again_is_no_violation(failure: Failure, now: int, annotated: bool) -> None:
    """The count was kept, operation=retry was requested, or the failure was not one of the BMC."""
    check_attempts(_attempts(failure, now=now, annotated=annotated))
