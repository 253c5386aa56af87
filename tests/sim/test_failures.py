"""The rows of docs/failures.md as a whole: all faults are there, and nothing of it is reported without a fault."""

import pytest

from metal.sim.faults import NAMES, OF_CARRIERS
from tests.pages.failures import PARTS
from tests.sim.failing import ERASED, STEPS, nothing
from tests.sim.failures import live
from tests.sim.rows import End, Fault, Row

ALL = tuple(row for part in PARTS for row in part.rows)


def test_rows_differ_and_name_a_step_and_a_fault() -> None:
    """Each row is another fault, step or duration; its step is one of the life of a server, its fault a sentence."""
    assert len({str(row) for row in ALL}) == len(ALL)
    assert {row.step for row in ALL} == set(STEPS)
    assert all(row.injected.what.endswith(".") for row in ALL)


def test_each_failure_ends_with_a_retry_or_without_its_fault() -> None:
    """No row names a failure of a server that completes while the fault is present, unless the BMC is restarted."""
    completing = {row.fault for row in ALL if "Error " in row.reports and row.ends in (End.COMPLETES, End.RECOVERS)}
    assert completing == {"hangs until it is restarted"}


def test_every_fault_of_the_simulator_has_a_row() -> None:
    """A fault that `metalctl sim --fault` offers is on the page, unless it needs a carrier, which no boot uses yet."""
    assert set(NAMES) - set(OF_CARRIERS) <= {row.fault for row in ALL}


@pytest.mark.looptime
@pytest.mark.parametrize("step", ["enrolment", "claim", "release"])
async def test_nothing_of_the_rows_is_reported_without_a_fault(step: str) -> None:
    """Without a fault there is no failure, no warning, and none of the conditions and Events of any row."""
    config = ERASED if step == "release" else {}
    report = await live(Row("none", step, inject=Fault(nothing), config=config, minutes=5))
    assert not report.words & {word for row in ALL for word in row.words}
    assert not report.warnings
    assert not report.errors
