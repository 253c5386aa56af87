"""Every wait has a name, a deadline and a way out, and none makes the reconciler spin."""

import asyncio
from datetime import timedelta

import msgspec
import pytest

from metal.api.boot_window import BootWindow
from metal.bmc.boot import BootOverride
from metal.bmc.errors import BMCBadRequest, BMCNotSupported, BMCServerError, BMCTimeout
from metal.bmc.power import PowerState
from metal.machine import boot_window
from tests.controllers.server.steps import claimed_and_booted, condition, retry
from tests.controllers.world import KINDS, world

pytestmark = pytest.mark.looptime


async def test_a_boot_configuration_that_never_comes_leads_to_error_and_not_into_a_spin() -> None:
    """The claim controller writes none: named wait, deadline, Error; the reconciler stays calm all the time."""
    async with world(boot_config_timeout=120.0) as w:
        await w.add_server()
        await w.discover()
        await w.runtime.stop(grace=0.0)
        claim = await w.add_claim()
        ref = {"namespace": "default", "name": "c1"}
        await w.client.patch(KINDS.server, "s1", {"spec": {"serverClaimRef": ref}})
        await w.client.patch(KINDS.claim, "c1", {"metadata": {"annotations": {KINDS.key("operation"): "ignore"}}},
                             "default")  # fmt: skip
        await w.restart()
        waiting = await w.until_true(lambda s: s.status.wait is not None and s.status.state == "Reserved")
        failed = await w.until("Error", within=200)
        before = w.passes()
        await asyncio.sleep(600)
        spent = w.passes() - before
    assert waiting.status.wait is not None
    assert (waiting.status.wait.for_, waiting.status.wait.until is not None) == ("BootConfiguration", True)
    assert waiting.status.tenancy.uid == claim.metadata.uid
    assert failed.status.failure is not None
    assert failed.status.failure.reason == "BootConfigurationNotReady"
    assert spent < 40


async def test_a_kept_override_holds_the_power_on_back_until_the_bmc_drops_it() -> None:
    """A tenant's machine is not switched on into the network; past the deadline Error, and out again by itself."""
    async with world(power_timeout=120.0) as w:
        await claimed_and_booted(w)
        w.bmc.keeps_override, w.bmc.boot = True, BootOverride("Continuous", "Pxe")
        w.bmc.lose_power()
        failed = await w.until("Error", within=600)
        spent = w.passes()
        await asyncio.sleep(300)
        spent = w.passes() - spent
        boots = w.bmc.network_boots
        w.bmc.keeps_override = False
        w.bmc.boot = BootOverride("Disabled", "None")
        await w.until_true(lambda s: s.status.power_state == "On", within=600)
        server = await w.until_true(lambda s: s.status.state == "Reserved" and not s.status.waiting_for)
    assert failed.status.failure is not None
    assert failed.status.failure.reason == "BootOverrideKept"
    assert spent < 40
    assert boots == w.bmc.network_boots == 2
    assert condition(server, "BootOverrideCleared") == ("True", "Cleared")


async def test_a_contested_boot_leaves_no_deadline_of_the_boot_before() -> None:
    """The wait of the second boot ends with the second window; until then no pass repeats in a loop."""
    async with world(discovery_timeout=300.0) as w:
        await w.add_server()
        await w.until("Discovery")
        await w.config_ready("s1")
        await w.until_true(lambda s: s.status.power_state == "On")
        await asyncio.sleep(200)
        await w.window(boot_window.contest)
        await w.until_true(lambda s: s.status.boot_attempts == 1 and s.status.power_state == "On")
        before = w.passes()
        await asyncio.sleep(250)
        spent, server = w.passes() - before, await w.server()
    assert spent < 20
    assert server.status.boot_window is not None
    assert server.status.wait is not None
    assert server.status.wait.until == server.status.boot_window.expires_at


@pytest.mark.behaviour("Server: network boot", "A clock that was set back does not keep a boot window open.")
async def test_a_clock_that_was_set_back_does_not_keep_a_window_open() -> None:
    """A window never lasts longer than a boot may take, also when the clock was set back after it was opened."""
    async with world(discovery_timeout=100.0) as w:
        await w.add_server()
        await w.until("Discovery")
        await w.config_ready("s1")
        await w.until_true(lambda s: s.status.power_state == "On")
        await w.window(_an_hour_later)
        await w.until_true(lambda s: s.status.boot_attempts == 1, within=250)


def _an_hour_later(window: BootWindow) -> BootWindow:
    hour = timedelta(hours=1)
    return msgspec.structs.replace(window, opened_at=window.opened_at + hour, expires_at=window.expires_at + hour)


async def test_a_power_request_from_the_future_is_made_again() -> None:
    """After a clock jump backwards the request's time says nothing; it gets a new one and a new deadline."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        w.bmc.ignores_graceful = True
        w.bmc._arrive(PowerState.ON)
        await w.until_true(lambda s: s.status.power_request is not None)
        request = {"requestedAt": "2026-01-02T00:00:00Z", "deadline": "2026-01-02T00:10:00Z"}
        await w.client.patch_status(KINDS.server, "s1", {"status": {"powerRequest": request}})
        server = await w.until_true(lambda s: s.status.power_state == "Off" and s.status.power_request is None)
    assert server.status.state == "Available"


async def test_a_power_change_during_an_outage_gets_its_time_after_it() -> None:
    """The deadline of a power request passed while the BMC was away: it had no chance, so it gets one now."""
    async with world(power_timeout=60.0, bmc_timeout=600.0) as w:
        await claimed_and_booted(w)
        w.bmc.ignores_graceful = True
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until_true(lambda s: s.status.power_request is not None)
        w.bmc.failure = BMCTimeout("no answer")
        await asyncio.sleep(200)
        w.bmc.failure = None
        await w.until("Available", within=300)
        reasons = {e.reason for e in await w.events()}
    assert "Error" not in reasons


@pytest.mark.parametrize("shown", [PowerState.UNKNOWN, PowerState.PAUSED, PowerState.POWERING_ON])
async def test_a_power_state_that_is_neither_on_nor_off_is_waited_for_and_then_named(shown: PowerState) -> None:
    """The boot's power-on ends in Error with what the BMC reports; when the BMC tells the truth again it goes on."""
    async with world(power_timeout=120.0) as w:
        await w.add_server()
        await w.until("Discovery")
        await w.config_ready("s1")
        await w.until_true(lambda s: s.status.boot_window is not None)
        w.bmc.shows = shown
        failed = await w.until("Error", within=300)
        w.bmc.shows = None
        await w.until("Discovery", within=300)
    assert failed.status.failure is not None
    assert failed.status.failure.reason == "PowerOnTimeout"
    assert f"the BMC reports {shown.value}" in failed.status.failure.message


async def test_a_bmc_that_shows_a_running_machine_as_off_does_not_fail_its_boot() -> None:
    """A request of the machine proves that it is on, also while the BMC still reports Off."""
    async with world() as w:
        await w.add_server()
        await w.until("Discovery")
        await w.config_ready("s1")
        w.bmc.shows = PowerState.OFF
        await w.until_true(lambda s: s.status.boot_window is not None)
        await asyncio.sleep(10)
        await w.fetch_script()
        await asyncio.sleep(20)
        await w.fetch_ignition()
        w.bmc.shows = None
        await w.report()
        server = await w.until("Available")
    assert server.status.boot_attempts == 0
    assert w.bmc.network_boots == 1


@pytest.mark.behaviour("Server: power and resets", "A BMC without graceful shutdown has the power cut at once.")
async def test_a_bmc_without_graceful_shutdown_has_the_power_cut_at_once() -> None:
    """What cannot be asked for is not waited for."""
    async with world() as w:
        await claimed_and_booted(w)
        w.bmc.refuses["graceful_off"] = BMCNotSupported("this BMC lists no GracefulShutdown")
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until("Available", within=30)
        reasons = {e.reason for e in await w.events()}
    assert "ForcedOff" in reasons


async def test_a_reset_that_failed_is_asked_for_again_soon() -> None:
    """An HTTP 500 on the reset is no shutdown: it is repeated when the BMC answers, not after the grace."""
    async with world(graceful_timeout=600.0) as w:
        await claimed_and_booted(w)
        w.bmc.refuses["graceful_off"] = BMCServerError("500")
        await w.client.delete(KINDS.claim, "c1", "default")
        await asyncio.sleep(40)
        del w.bmc.refuses["graceful_off"]
        await w.until("Available", within=60)
    assert "force_off" not in w.bmc.calls


async def test_a_boot_order_that_the_bmc_refuses_costs_nobody_his_machine() -> None:
    """A wrong device in spec.bootOrder is a condition; the claim's power is followed all the same."""
    async with world() as w:
        await claimed_and_booted(w)
        w.bmc.refuses["set_boot_order Boot0009"] = BMCBadRequest("bootOrder names Boot0009, which is not there")
        order = [{"name": "net", "priority": 1, "device": "Boot0009"}]
        await w.client.patch(KINDS.server, "s1", {"spec": {"bootOrder": order}})
        server = await w.until_true(lambda s: any(c.type == "SettingsApplied" for c in s.status.conditions))
        await w.client.patch(KINDS.claim, "c1", {"spec": {"power": "Off"}}, "default")
        off = await w.until_true(lambda s: s.status.power_state == "Off")
    assert condition(server, "SettingsApplied") == ("False", "BadRequest")
    assert off.status.state == "Reserved"


@pytest.mark.behaviour(
    "Server: power and resets", "The boot order is sorted by priority and written only when it differs."
)
async def test_boot_order_is_sorted_and_written_only_when_it_differs() -> None:
    """Lower priority first; a second look writes nothing."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        order = [{"name": "b", "priority": 2, "device": "B"}, {"name": "a", "priority": 1, "device": "A"}]
        await w.client.patch(KINDS.server, "s1", {"spec": {"bootOrder": order}})
        await asyncio.sleep(600)
    assert [c for c in w.bmc.calls if c.startswith("set_boot_order")] == ["set_boot_order A,B"]


@pytest.mark.behaviour("Server: power and resets", "The location LED is set and read back.")
@pytest.mark.parametrize(("deaf", "expected"), [(False, ("True", "Applied")), (True, ("False", "NotTaken"))])
async def test_the_location_led_is_applied_and_read_back(deaf: bool, expected: tuple[str, str]) -> None:
    """Status shows what the BMC shows, not what was asked for."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        w.bmc.ignores_led = deaf
        await w.client.patch(KINDS.server, "s1", {"spec": {"indicatorLED": "Blinking"}})
        server = await w.until_true(lambda s: any(c.type == "SettingsApplied" for c in s.status.conditions))
    assert server.status.indicator_led == ("Off" if deaf else "Blinking")
    assert condition(server, "SettingsApplied") == expected


async def test_a_window_that_expires_while_the_machine_never_came_on_starts_afresh_on_retry() -> None:
    """PowerOnTimeout, retry: a new window with its full time, not the rest of the old one."""
    async with world(power_timeout=60.0, discovery_timeout=100.0) as w:
        await w.add_server()
        await w.until("Discovery")
        await w.config_ready("s1")
        w.bmc.ignores_power = True
        failed = await w.until("Error")
        w.bmc.ignores_power = False
        await asyncio.sleep(300)
        await retry(w)
        server = await w.until_true(lambda s: s.status.power_state == "On")
    assert failed.status.failure is not None
    assert failed.status.failure.reason == "PowerOnTimeout"
    assert server.status.boot_attempts == 0
    assert server.status.boot_window is not None
    assert boot_window.is_open(server.status.boot_window, w.clock())


async def test_waits_say_that_the_server_is_not_ready() -> None:
    """kubectl wait --for=condition=Ready does not return while something is awaited."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        ready = await w.server()
        w.bmc._arrive(PowerState.ON)
        w.bmc.ignores_graceful = True
        waiting = await w.until_true(lambda s: s.status.wait is not None)
    assert condition(ready, "Ready") == ("True", "Available")
    assert condition(waiting, "Ready") == ("False", "PowerOff")
