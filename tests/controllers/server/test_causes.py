"""What causes a pass over a Server, how often its status is written, and clocks that jump."""

import asyncio
import itertools
from typing import Any

import pytest

from metal.bmc.errors import BMCBusy, BMCError, BMCUnreachable
from tests.controllers.fakebmc import FakeBMC
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime


class ChangingBMC(FakeBMC):
    """A BMC that fails with another text each time, such as a countdown."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.failing: type[BMCError] | None = None
        self.retry_after: float | None = None
        self._numbers = itertools.count(1000, -1)

    def _called(self, what: str) -> None:
        super()._called(what)
        if self.failing is None:
            return
        error = self.failing(f"busy, {next(self._numbers)} s remain")
        if isinstance(error, BMCBusy):
            error.retry_after = self.retry_after
        raise error


async def _failing(w: World, failing: type[BMCError], retry_after: float | None = None) -> ChangingBMC:
    bmc = ChangingBMC()
    w.pool.bmcs["10.0.0.9"] = w.bmc = bmc
    await w.add_server()
    await w.discover()
    await asyncio.sleep(10)
    bmc.failing, bmc.retry_after = failing, retry_after
    bmc.calls.clear()
    w.tap.writes.clear()
    await w.client.patch(KINDS.server, "s1", {"spec": {"indicatorLED": "Lit"}})
    return bmc


@pytest.mark.behaviour(
    "Server: errors and deletion",
    "The controller's own status write causes no pass, and an error text that changes causes no loop.",
)
async def test_an_error_text_that_changes_causes_neither_requests_nor_writes() -> None:
    """In 300 s a request each 15 s, a write for each text and two passes for each request at most."""
    async with world() as w:
        bmc = await _failing(w, BMCUnreachable)
        before = w.passes()
        await asyncio.sleep(300)
        asked, passes = len(bmc.calls), w.passes() - before
        written = w.tap.count("status Server s1")
    assert 10 <= asked <= 30
    assert written <= asked
    assert passes <= 2 * asked


async def test_the_status_has_the_text_of_the_last_failed_attempt() -> None:
    """The record of the operation, the condition and what is awaited say the same, also in passes between attempts."""
    async with world() as w:
        bmc = await _failing(w, BMCUnreachable)
        await asyncio.sleep(60)
        await w.client.patch(KINDS.server, "s1", {"metadata": {"annotations": {"touched": "1"}}})
        await asyncio.sleep(6)
        said = f"busy, {1001 - len(bmc.calls)} s remain"
        status = (await w.server()).status
    assert len(bmc.calls) > 1
    assert [known.message for known in status.failing_operations] == [said]
    assert status.waiting_for == f"the BMC to answer: {said}"
    assert [one.message for one in status.conditions if one.type == "BMCReachable"] == [said]


async def test_a_503_with_a_countdown_is_retried_when_it_says() -> None:
    """A BMC that asks for 60 s is asked twice in 110 s."""
    async with world() as w:
        bmc = await _failing(w, BMCBusy, retry_after=60.0)
        await asyncio.sleep(110)
    assert 1 <= len(bmc.calls) <= 3


async def test_the_status_that_another_client_writes_causes_a_pass() -> None:
    """A power state that another writer overwrote is read and corrected at once."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await asyncio.sleep(10)
        await w.client.patch_status(KINDS.server, "s1", {"status": {"powerState": "On"}})
        await asyncio.sleep(1)
        after = await w.server()
    assert after.status.power_state == "Off"


async def _erasing(w: World) -> None:
    """A server whose drive is being erased, 10 % done, for a minute."""
    w.disks = [{"name": "sda", "serial": "d1", "sizeBytes": 10 << 30}]
    await w.add_server()
    await w.discover()
    await w.add_claim()
    await w.boot_claim()
    await w.client.delete(KINDS.claim, "c1", "default")
    await w.until("Cleanup")
    await w.until_true(lambda s: s.status.wait is not None and s.status.wait.for_ == "BootConfiguration")
    await w.config_ready("s1")
    await w.until_true(lambda s: s.status.power_state == "On")
    await w.fetch_script()
    await w.fetch_ignition()
    await w.erase(done=False, percent=10, result="Running")
    await asyncio.sleep(60)


async def test_a_text_that_changes_all_the_time_is_written_every_few_seconds_and_the_last_one_stays() -> None:
    """A pass each second for twenty seconds, each with another percentage: four writes at once, then one each five
    seconds; the last percentage is written."""
    async with world(sanitization_policy="Clear") as w:
        await _erasing(w)
        w.tap.writes.clear()
        for percent in range(11, 31):
            await w.erase(done=False, percent=percent, result="Running")
            await w.client.patch(KINDS.server, "s1", {"metadata": {"annotations": {"touched": str(percent)}}})
            await asyncio.sleep(1)
        written = w.tap.count("status Server s1")
        await asyncio.sleep(6)
        after = await w.server()
        at_last = w.tap.count("status Server s1")
    assert 7 <= written <= 9  # one of them is refused with a Conflict
    assert at_last <= written + 1
    assert after.status.waiting_for.startswith("the drives to be erased: 30 %")


@pytest.mark.behaviour(
    "Server: errors and deletion",
    "A clock that is set back moves no deadline to a later time, and causes no loop.",
)
async def test_a_clock_that_is_set_back_during_an_erasure_causes_no_writes_and_moves_no_deadline_later() -> None:
    """One hour back: at most one write a poll, and the deadline moves by the same hour to an earlier time."""
    async with world(sanitization_policy="Clear") as w:
        await _erasing(w)
        before = await w.server()
        w.tap.writes.clear()
        w.clock.adjust(-3600)
        await asyncio.sleep(30)  # at the latest the next poll sees it
        deadlines = []
        for _ in range(12):
            await asyncio.sleep(5)
            deadlines.append((await w.server()).status.wait)
        written = w.tap.count("status Server s1")
    assert before.status.wait is not None
    assert before.status.wait.until is not None
    ends = [wait.until for wait in deadlines if wait is not None and wait.until is not None]
    assert len(ends) == 12
    assert max(ends) < before.status.wait.until
    assert len(set(ends)) == 1
    assert written <= 12
