"""An Off that may predate the last power-on does not count, in any state and for any caller."""

import asyncio

import pytest

from metal.bmc.errors import BMCBadRequest, BMCConflict, BMCError, BMCNotSupported, BMCTimeout
from metal.bmc.power import PowerState
from tests.controllers.server.steps import claimed_and_booted, maintain
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime


async def _switching_on(w: World, *, ignored: bool = False) -> None:
    """A claim's machine that was just told to switch on; its BMC goes on showing Off."""
    await w.add_server()
    await w.discover()
    w.bmc.ignores_power = ignored
    w.bmc.shows = PowerState.OFF
    await w.add_claim()
    await w.until_true(lambda s: s.spec.boot_configuration_ref is not None)
    await w.settle()
    await w.config_ready("c1", "default")
    await w.until_true(lambda s: s.status.power_request is not None and s.status.state == "Reserved")
    await w.settle()


@pytest.mark.behaviour(
    "Server: power and resets", "After a power-on, Off is not trusted until On was seen or `power_settle` has passed."
)
async def test_a_release_during_the_power_on_waits_until_off_can_be_believed() -> None:
    """The machine is told to switch off although its BMC shows Off, and is free only once that Off cannot be old."""
    async with world() as w:
        await _switching_on(w)
        asked = (await w.server()).status.on_requested_at
        w.bmc.calls.clear()
        await w.client.delete(KINDS.claim, "c1", "default")
        waiting = await w.until_true(lambda s: s.status.wait is not None and s.status.wait.for_ == "PowerOff")
        free = await w.until("Available")
        power, now = w.bmc.power, w.clock()
    assert waiting.status.state == "Cleanup"
    assert "predate the last power-on" in waiting.status.waiting_for
    assert asked is not None
    assert (now - asked).total_seconds() >= w.settings.power_settle
    assert set(w.bmc.writes()) == {"reset ForceOff", "clear_boot_override"}
    assert w.bmc.reads() <= 20
    assert power is PowerState.OFF
    assert free.status.on_requested_at is None


async def test_a_machine_that_is_seen_on_after_all_is_switched_off() -> None:
    """The BMC refuses to switch off what it takes to be off; when its On comes to light, the machine goes off."""
    async with world() as w:
        await _switching_on(w)
        w.bmc.refuses["reset ForceOff"] = BMCBadRequest("the system is off already")
        await w.client.delete(KINDS.claim, "c1", "default")
        await asyncio.sleep(20)
        state, power = (await w.server()).status.state, w.bmc.power
        w.bmc.shows = None
        await w.until("Available")
        after = w.bmc.power
    assert (state, power) == ("Cleanup", PowerState.ON)
    assert after is PowerState.OFF
    assert "force_off" in w.bmc.calls


@pytest.mark.parametrize("error", [BMCBadRequest("off already"), BMCNotSupported("no"), BMCConflict("off already")])
async def test_a_bmc_that_refuses_to_switch_off_what_is_off_is_no_failure(error: BMCError) -> None:
    """The power-on came to nothing: a refused Off and an Off that stays are taken for an Off in the end."""
    async with world() as w:
        await _switching_on(w, ignored=True)
        w.bmc.refuses["reset ForceOff"] = error
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until("Available")
        reasons = {e.reason for e in await w.events()}
    assert "Error" not in reasons
    assert w.bmc.power is PowerState.OFF


async def test_the_doubt_outlives_the_manager() -> None:
    """Killed right after the power-on, the manager's successor knows of it although the claim is gone."""
    async with world() as w:
        await _switching_on(w)
        await w.runtime.stop(grace=0.0)
        await w.client.delete(KINDS.claim, "c1", "default")
        w.bmc.calls.clear()
        await w.restart()
        await asyncio.sleep(30)
        state = (await w.server()).status.state
        await w.until("Available")
    assert state == "Cleanup"
    assert w.bmc.writes()[0] == "reset ForceOff"
    assert w.bmc.power is PowerState.OFF


async def test_the_doubt_outlives_a_maintenance() -> None:
    """The discovery after a maintenance starts from a real Off, not from an old one."""
    async with world() as w:
        await w.add_server()
        await w.until("Discovery")
        w.bmc.shows = PowerState.OFF
        await w.config_ready("s1")
        await w.until_true(lambda s: s.status.power_request is not None)
        await w.settle()
        await maintain(w)
        await w.until("Maintenance")
        w.bmc.calls.clear()
        await maintain(w, on=False)
        await w.until("Discovery")
        await asyncio.sleep(20)
        early = list(w.bmc.writes())
        w.bmc.shows = None
        await w.discover()
    assert early == ["reset GracefulShutdown"]


async def test_a_claim_that_wants_off_at_once_again_gets_off() -> None:
    """On and off within seconds: the tenant's machine is asked to shut down although its BMC shows Off still."""
    async with world() as w:
        await claimed_and_booted(w)
        await w.client.patch(KINDS.claim, "c1", {"spec": {"power": "Off"}}, "default")
        await w.until_true(lambda s: s.status.power_state == "Off" and not s.status.waiting_for)
        w.bmc.shows = PowerState.OFF
        await w.client.patch(KINDS.claim, "c1", {"spec": {"power": "On"}}, "default")
        await w.until_true(lambda s: s.status.power_request is not None)
        await asyncio.sleep(5)
        on = w.bmc.power
        await w.client.patch(KINDS.claim, "c1", {"spec": {"power": "Off"}}, "default")
        await w.until_true(lambda s: s.status.wait is None, within=100)
        power = w.bmc.power
    assert (on, power) == (PowerState.ON, PowerState.OFF)
    assert "reset GracefulShutdown" in w.bmc.calls


async def test_a_clock_that_was_set_back_ends_the_doubt_all_the_same() -> None:
    """A power-on in the future counts as one of now: the doubt lasts once the settling time, not until then."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        w.bmc.shows = PowerState.OFF
        await w.client.patch_status(KINDS.server, "s1", {"status": {"onRequestedAt": "2026-06-01T00:00:00Z"}})
        await w.until_true(lambda s: s.status.wait is not None)
        server = await w.until_true(lambda s: s.status.wait is None, within=100)
    assert server.status.on_requested_at is None


async def test_an_on_that_was_seen_leaves_no_doubt() -> None:
    """In the usual case a release takes as long as the machine takes, and the BMC is read and told no more often."""
    async with world() as w:
        booted = await claimed_and_booted(w)
        w.bmc.calls.clear()
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until("Available", within=10)
    assert booted.status.on_requested_at is None
    assert w.bmc.writes() == ["graceful_off"]


async def test_a_bmc_that_does_not_take_the_power_on_is_asked_at_intervals() -> None:
    """Recording the time of a request for On does not cause another request at once."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        w.bmc.refuses["power_on"] = BMCTimeout("no answer")
        await w.add_claim()
        await w.until_true(lambda s: s.spec.boot_configuration_ref is not None)
        await w.settle()
        await w.config_ready("c1", "default")
        w.bmc.calls.clear()
        w.tap.writes.clear()
        await asyncio.sleep(300)
    assert 5 <= w.bmc.calls.count("power_on") <= 10
    assert w.tap.count("status Server s1") <= 30
