"""The clock is set back: pauses and deadlines of BMCs, Endpoints and maintenances last as long as they should.

A pass that begins after the clock was set back gives the record its full duration once more, so a pause takes at most
twice its time, however far the clock jumped.
"""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from metal.api.bmc import BMCStatus
from metal.bmc.errors import BMCUnreachable
from metal.controllers.shared.bmc_events import received_recently
from metal.kube.meta.conditions import find
from tests.controllers.bmc.test_restarts import SSH, known, told, with_reset
from tests.controllers.maintenance.test_queue import until
from tests.controllers.rack import KINDS, rack, ready
from tests.controllers.server.steps import maintain
from tests.controllers.world import world

pytestmark = pytest.mark.looptime
HOUR, DAY = 3600.0, 86400.0


@pytest.mark.behaviour(
    "BMC", "A clock that is set back during a restart of a BMC does not keep it from being contacted."
)
async def test_a_bmc_that_restarts_is_contacted_although_the_clock_was_set_back() -> None:
    """It answers again after half a minute, and the restart ends then and not an hour later."""
    async with rack() as r:
        bmc = await known(r)
        bmc.failure = BMCUnreachable("dead")
        await r.operate(KINDS.bmc, "b1", SSH)
        await with_reset(r, "True")
        r.clock.adjust(-HOUR)
        bmc.failure = None
        back = await with_reset(r, "False", within=100)
    assert told(back) == ("False", "ResetComplete")


async def test_the_deadline_of_a_restart_does_not_move_with_the_clock() -> None:
    """The Servers of a BMC wait until this deadline."""
    async with rack(reset_timeout=300.0) as r:
        bmc = await known(r)
        await r.operate(KINDS.bmc, "b1", SSH)
        await with_reset(r, "True")
        bmc.failure = BMCUnreachable("dead")
        r.clock.adjust(-HOUR)
        late = await with_reset(r, "False", within=420)
    assert told(late) == ("False", "ResetTimeout")


async def test_a_failed_bmc_is_restarted_in_time_although_the_clock_was_set_back() -> None:
    """The time for which it has failed counts from the jump at the latest."""
    async with rack(auto_reset=True, reset_after=600.0) as r:
        bmc = await known(r)
        bmc.failure = BMCUnreachable("dead")
        await asyncio.sleep(300)
        r.clock.adjust(-DAY)
        await asyncio.sleep(1000)
    assert r.shell.commands == ["192.0.2.1 racreset"]


async def test_refused_credentials_of_a_bmc_rest_for_two_hours_at_most() -> None:
    """One hour is their pause; the clock went back by a day."""
    async with rack() as r:
        bmc = r.plug(1, password="right")
        await r.add_bmc(1, password="wrong")
        await asyncio.sleep(60)
        r.clock.adjust(-DAY)
        bmc.password = "wrong"
        await asyncio.sleep(2.6 * HOUR)
        assert ready(await r.bmc()) == ("True", "Connected")


async def test_refused_credentials_of_an_endpoint_rest_for_two_hours_at_most() -> None:
    """Those of the MAC prefix file are tried again, although the clock went back by a day."""
    async with rack() as r:
        bmc = r.plug(1, password="unknown")
        await r.lease(1)
        await asyncio.sleep(60)
        r.clock.adjust(-DAY)
        bmc.password = "pw-factory"
        await asyncio.sleep(2.6 * HOUR)
        assert await r.exists(KINDS.bmc, "e1")


async def test_a_maintenance_is_overdue_although_the_clock_was_set_back() -> None:
    """After sixteen hours at most; eight are the limit."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await maintain(w)
        await until(w, "InMaintenance", "InMaintenance")
        w.clock.adjust(-DAY)
        await asyncio.sleep(16.1 * HOUR)
        found = await w.client.get(KINDS.maintenance, "m1", "default")
    overdue = find(found.status.conditions, "Overdue")
    assert overdue is not None
    assert overdue.status == "True"


@pytest.mark.parametrize(("ahead", "recent"), [(-10, True), (3, True), (-400, False), (3600, False)])
def test_an_event_in_the_future_is_no_recent_event(ahead: float, recent: bool) -> None:
    """A silent BMC would be polled rarely until the clock has caught up."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    status = BMCStatus(events_subscription_link="/1", last_event_time=now + timedelta(seconds=ahead))
    assert received_recently(status, now, 300.0) is recent
