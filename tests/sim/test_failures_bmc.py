"""What a user sees when a BMC fails, at each step of a server's life, and how it ends: rows of docs/failures.md."""

import pytest

from tests.sim.failing import STEPS, Row
from tests.sim.failures import check, live

pytestmark = pytest.mark.looptime

ROWS = (
    *(Row("dead", step) for step in STEPS),
    *(Row("hangs", step) for step in ("enrolment", "claim", "release")),
    *(Row("wrong_password", step) for step in ("enrolment", "claim")),
    *(Row("http_401", step) for step in ("enrolment", "claim", "tenant")),
    *(Row("http_500", step) for step in ("enrolment", "inventory", "discovery", "claim", "release")),
    *(Row("http_503", step) for step in ("discovery", "claim")),
    *(Row("http_5xx", step) for step in ("enrolment", "claim", "release")),
    *(Row("restarts", step) for step in ("enrolment", "claim", "release", "erasure")),
    *(Row("restarts_first", step) for step in ("enrolment", "claim", "release")),
    *(Row("slow", step) for step in ("enrolment", "claim")),
    Row("stale_power", "claim"), Row("stale_power", "release"),
    Row("ignores_once", "claim"), Row("drops_override", "claim"),
    Row("ignores_reset", "enrolment"), Row("ignores_reset", "claim"), Row("ignores_reset", "release"), Row("ignores_reset", "erasure"),
    Row("lies_power", "claim"),Row("lies_power", "release"),Row("lies_power", "erasure"),
    Row("loses_events", "claim"),
)


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_fault_of_the_bmc_is_seen_and_left_behind(row: Row) -> None:
    """It shows as the page says, and nothing else does; mended, everything comes to rest."""
    check(row, await live(row))
