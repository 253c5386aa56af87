"""A failure ends when the operation that failed succeeds, not when the BMC answers something else."""

import asyncio

import pytest

from metal.bmc.errors import BMCError, BMCServerError
from tests.controllers.server.steps import condition
from tests.controllers.world import World, world

pytestmark = pytest.mark.looptime
HOUR = 3600.0


def _failing(w: World, *operations: str, error: BMCError | None = None) -> None:
    """From now on the BMC answers these requests with an error, and all others."""
    for operation in operations:
        w.bmc.refuses[operation] = error or BMCServerError("POST on the BMC was answered 500 Internal Server Error")
    w.bmc.calls.clear()


async def _claimed_with_broken_power_on(w: World) -> None:
    await w.add_server()
    await w.discover()
    _failing(w, "power_on")
    await w.add_claim()
    await w.until_true(lambda s: s.spec.boot_configuration_ref is not None)
    await w.settle()
    await w.config_ready("c1", "default")


@pytest.mark.behaviour(
    "Server: errors and deletion",
    "A BMC that answers reads and fails power-on leads to Error that names the operation, with few requests.",
)
async def test_a_bmc_that_reads_and_does_not_switch_on_ends_in_error_with_few_requests() -> None:
    """In 4 hours fewer than 40 power-on requests and 400 requests in all; Error is reached within the deadline."""
    async with world() as w:
        await _claimed_with_broken_power_on(w)
        failed = await w.until("Error", within=1000)
        await asyncio.sleep(4 * HOUR - 1000)
        later = await w.server()
        asked, requests = w.bmc.calls.count("power_on"), len(w.bmc.calls)
    assert failed.status.failure is not None
    assert (failed.status.failure.operation, failed.status.failure.state) == ("power-on", "Reserved")
    assert "power-on" in failed.status.failure.message
    assert "500 Internal Server Error" in failed.status.failure.message
    assert later.status.state == "Error"
    assert asked < 40
    assert requests < 1000


async def test_the_failing_operation_is_recorded_with_its_first_time_and_its_count() -> None:
    """status.failingOperations names the operation until it succeeds."""
    async with world() as w:
        await _claimed_with_broken_power_on(w)
        await asyncio.sleep(200)
        server = await w.server()
        w.bmc.refuses.clear()
        after = await w.until_true(lambda s: not s.status.failing_operations, within=300)
    (known,) = server.status.failing_operations
    assert (known.operation, known.reason) == ("power-on", "InternalServerError")
    assert known.count >= 4
    assert known.first_failed_at is not None
    assert known.last_failed_at is not None
    assert known.first_failed_at < known.last_failed_at
    assert condition(server, "BMCOperational") == ("False", "InternalServerError")
    assert condition(server, "BMCReachable")[0] == "True"
    assert condition(after, "BMCOperational")[0] == "True"
    assert server.status.wait is not None
    assert server.status.wait.for_ == "BMCOperation"
