"""Which changes of a status may wait, and how often they are written."""

import asyncio

import msgspec
import pytest

from metal.api.meta import Condition
from metal.api.server import FailingOperation, ServerStatus
from metal.controllers.shared.volatile import BURST, VOLATILE_EVERY, VolatileBudget, is_volatile
from metal.kube.meta.objects import Key

ONE, OTHER = Key("s1"), Key("s2")
STATUS = ServerStatus(
    waiting_for="the BMC to answer: busy, 9 s",
    conditions=(Condition(type="Ready", status="False", reason="BMC", message="busy, 9 s"),),
    failing_operations=(FailingOperation(operation="read-system", reason="Busy", message="busy, 9 s", count=1),),
)


def test_texts_are_volatile_and_what_they_belong_to_is_not() -> None:
    """The message of a condition and of a failing operation; not their reason, nor the number of attempts."""
    replace = msgspec.structs.replace
    (ready,), (failing,) = STATUS.conditions, STATUS.failing_operations
    for texts in (
        replace(STATUS, waiting_for="the BMC to answer: busy, 8 s"),
        replace(STATUS, conditions=(replace(ready, message="busy, 8 s"),)),
        replace(STATUS, failing_operations=(replace(failing, message="busy, 8 s"),)),
    ):
        assert is_volatile(STATUS, texts)
    for decided in (
        replace(STATUS, waiting_for=""),
        replace(STATUS, conditions=(replace(ready, reason="BMCBusy"),)),
        replace(STATUS, failing_operations=(replace(failing, count=2),)),
        replace(STATUS, failing_operations=()),
    ):
        assert not is_volatile(STATUS, decided)


@pytest.mark.looptime
async def test_a_few_writes_are_due_at_once_and_then_one_every_few_seconds() -> None:
    """A fifth write in the same moment waits; in 300 s of a text that changes each second there are at most 64."""
    budget, written = VolatileBudget(), []
    for second in range(300):
        if not budget.seconds_left(ONE):
            budget.spend(ONE)
            written.append(second)
        await asyncio.sleep(1)
    assert written[: BURST + 2] == [0, 1, 2, 3, 5, 10]
    assert len(written) == BURST - 1 + 300 / VOLATILE_EVERY


@pytest.mark.looptime
async def test_the_pause_is_known_and_the_burst_comes_back_with_time() -> None:
    """After four writes the fifth is due in five seconds; twenty seconds later four are due again."""
    budget = VolatileBudget()
    for _ in range(2):
        for _ in range(BURST):
            assert budget.seconds_left(ONE) == 0
            budget.spend(ONE)
        assert budget.seconds_left(ONE) == pytest.approx(VOLATILE_EVERY)
        assert budget.seconds_left(OTHER) == 0
        await asyncio.sleep(BURST * VOLATILE_EVERY)
