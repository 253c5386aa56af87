"""An outage that outlasts the deadline of an erasure does not cost its result."""

import asyncio
from datetime import timedelta

import pytest

from metal.bmc.errors import BMCTimeout
from metal.machine import boot_window, tenancy
from tests.controllers.server.tenancy.test_sanitization import ERASE, erasing
from tests.controllers.world import World, world

pytestmark = pytest.mark.looptime


async def until_after_the_deadline(w: World, more: float = 3600.0) -> None:
    """Virtual time passes until an hour after the window of the erasure."""
    window = (await w.server()).status.boot_window
    assert window is not None
    await asyncio.sleep((window.expires_at - w.clock() + timedelta(seconds=more)).total_seconds())


@pytest.mark.behaviour(
    "Cleanup", "A report of an erasure that waited for the end of an outage is accepted, also after the deadline."
)
async def test_a_report_that_waited_for_the_manager_is_accepted() -> None:
    """The probe sends it again until the registry answers; the deadline passed while no manager was there."""
    async with world(**ERASE) as w:
        await erasing(w)
        await w.erase(done=False, result="Running", percent=90, samples_read=0)
        await w.settle()
        await w.runtime.stop(grace=0.0)
        await until_after_the_deadline(w)
        await w.restart()
        await asyncio.sleep(120)
        await w.erase()
        server = await w.until("Available")
    assert tenancy.of(server).sanitization == "Clear"


async def test_a_machine_that_does_not_report_after_an_outage_is_late() -> None:
    """The time that is granted after an outage ends, too."""
    async with world(**ERASE) as w:
        await erasing(w)
        await w.erase(done=False, result="Running", percent=90, samples_read=0)
        await w.runtime.stop(grace=0.0)
        await until_after_the_deadline(w)
        await w.restart()
        server = await w.until("Error", within=1200)
    assert server.status.failure is not None
    assert "were not sufficient" in server.status.failure.message


async def test_a_late_report_is_accepted_until_the_erasure_is_judged() -> None:
    """Its token is that of the one boot, and is spent with it; other boots end with their deadline."""
    async with world(**ERASE) as w:
        await erasing(w)
        window = (await w.server()).status.boot_window
        assert window is not None
        late = window.expires_at + timedelta(hours=1)
        assert boot_window.accept_report(window, late, token="r").phase == "Succeeded"
        with pytest.raises(boot_window.Refused):
            boot_window.accept_report(boot_window.close(window), late, token="r")


async def test_an_outage_of_the_bmc_does_not_end_an_erasure() -> None:
    """The machine goes on and reports; when the BMC answers again, the result counts."""
    async with world(**ERASE) as w:
        await erasing(w)
        boots = w.bmc.network_boots
        await w.erase(done=False, result="Running", percent=10, samples_read=0)
        await w.settle()
        w.bmc.failure = BMCTimeout("no answer")
        await w.until("Error", within=1800)
        w.bmc.failure = None
        await w.until("Cleanup", within=600)
        await asyncio.sleep(60)
        await w.erase()
        server = await w.until("Available", within=900)
    assert (tenancy.of(server).sanitization, w.bmc.network_boots) == ("Clear", boots)
