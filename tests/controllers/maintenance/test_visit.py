"""The server during a maintenance, and its return to the former state."""

import asyncio
from typing import Any

import pytest

from metal.api.boot_window import Phase
from metal.api.server import Server
from metal.bmc.boot import BootOverride
from metal.bmc.errors import BMCForbidden, BMCNotSupported, BMCTimeout
from metal.bmc.power import PowerState
from metal.kube.client.errors import NotFound
from tests.controllers.maintenance.test_queue import until
from tests.controllers.server.steps import claimed_and_booted, condition, maintain, operate, retry
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime
TEMPLATE = {"name": "firmware", "spec": {"serverRef": {"name": "s1"}, "image": "reg/firmware:1"}}


async def _free(w: World, **spec: Any) -> None:
    await w.add_server(**spec)
    await w.discover()


async def _boot(w: World) -> Server:
    """Act as boot operator, boot server and machine for the maintenance's boot."""
    await w.until_true(
        lambda s: s.spec.maintenance_boot_configuration_ref is not None and s.status.state == "Maintenance"
    )
    await w.config_ready("m1", "default")
    await w.until_true(lambda s: s.status.power_state == "On" and _purpose(s) == "Maintenance")
    await w.fetch_script()
    await w.fetch_ignition()
    return await w.until_true(lambda s: s.status.wait is not None and s.status.wait.for_ == "Maintenance")


def _purpose(server: Server) -> str:
    return server.status.boot_window.purpose if server.status.boot_window else ""


@pytest.mark.behaviour(
    "ServerMaintenance",
    "A server that was never on during its maintenance is Available at once.",
    go="Always discovers it again.",
)
async def test_an_untouched_server_is_available_again_without_discovery() -> None:
    """It was neither powered on nor booted, so its hardware cannot have changed."""
    async with world() as w:
        await _free(w)
        await maintain(w)
        await until(w, "InMaintenance", "InMaintenance")
        await maintain(w, on=False)
        server = await w.until("Available")
    assert w.bmc.network_boots == 1
    assert server.status.interruption is None


@pytest.mark.behaviour("ServerMaintenance", "A server that was on during its maintenance is discovered again.")
@pytest.mark.parametrize("by_hand", [False, True])
async def test_a_server_that_was_on_is_discovered_again(by_hand: bool) -> None:
    """It was on by the maintenance or by an administrator: the hardware may have changed."""
    async with world() as w:
        await _free(w)
        await maintain(w, serverPower="" if by_hand else "On")
        await w.until("Maintenance")
        if by_hand:
            w.bmc._arrive(PowerState.ON)
        await w.until_true(lambda s: s.status.power_state == "On")
        await maintain(w, on=False)
        await w.until("Discovery")


@pytest.mark.behaviour(
    "ServerMaintenance",
    "A maintenance decides the power while it lasts, and the claim afterwards.",
    issues=(300, 301, 455),
)
async def test_the_power_is_the_maintenances_and_then_the_claims_again() -> None:
    """It is powered off gracefully, kept off although the claim requests On, then powered on from the disk."""
    async with world() as w:
        await claimed_and_booted(w)
        w.bmc.calls.clear()
        await maintain(w, serverPower="Off")
        await w.until_true(lambda s: s.status.power_state == "Off")
        await asyncio.sleep(300)
        writes, power = w.bmc.writes(), w.bmc.power
        await maintain(w, on=False)
        await w.until_true(lambda s: s.status.state == "Reserved" and s.status.power_state == "On")
    assert (writes, power) == (["graceful_off"], PowerState.OFF)
    assert (w.bmc.network_boots, w.bmc.last_boot) == (2, "disk")


async def test_a_tenants_machine_is_not_switched_on_into_the_network() -> None:
    """A boot override that stays set is a named wait, then Error; it ends when the BMC removes the override."""
    async with world(power_timeout=60.0) as w:
        await claimed_and_booted(w)
        await maintain(w, serverPower="Off")
        await w.until_true(lambda s: s.status.power_state == "Off")
        w.bmc.keeps_override, w.bmc.boot = True, BootOverride("Continuous", "Pxe")
        await asyncio.sleep(5)
        await w.client.patch(KINDS.maintenance, "m1", {"spec": {"serverPower": "On"}}, "default")
        await w.until("Error")
        failed = await until(w, "Failed", "BootOverrideKept")
        w.bmc.keeps_override, w.bmc.boot = False, BootOverride("Disabled", "None")
        await w.until_true(lambda s: s.status.power_state == "On" and s.status.state == "Maintenance")
    assert "override" in failed.status.waiting_for
    assert (w.bmc.network_boots, w.bmc.last_boot) == (2, "disk")


@pytest.mark.behaviour("ServerMaintenance", "The location LED is lit during a maintenance and restored afterwards.")
@pytest.mark.parametrize(("declared", "afterwards"), [("", "Off"), ("Blinking", "Blinking")])
async def test_the_led_is_lit_for_the_maintenance_and_given_back(declared: str, afterwards: str) -> None:
    """Afterwards it is off, or as the server declares."""
    async with world() as w:
        await _free(w, **({"indicatorLED": declared} if declared else {}))
        await maintain(w, locatorLED="Lit")
        await w.until_true(lambda s: s.status.indicator_led == "Lit")
        await maintain(w, on=False)
        await w.until("Available")
        await asyncio.sleep(5)
    assert w.bmc.led == afterwards


async def test_an_led_that_the_bmc_does_not_have_stops_nothing() -> None:
    """A condition is set, and the maintenance continues."""
    async with world() as w:
        await _free(w)
        w.bmc.refuses["led Lit"] = BMCNotSupported("no LED")
        await maintain(w, locatorLED="Lit", serverPower="On")
        server = await w.until_true(lambda s: s.status.power_state == "On")
    assert condition(server, "SettingsApplied") == ("False", "NotSupported")


@pytest.mark.behaviour("ServerMaintenance", "A maintenance's boot template boots once, in its own boot window.")
async def test_a_template_boots_once_in_a_window_of_its_own() -> None:
    """The maintenance owns an SBC of its name; further boots are from disk; afterwards the SBC is deleted."""
    async with world() as w:
        await _free(w)
        await maintain(w, serverBootConfigurationTemplate=TEMPLATE, serverPower="On")
        server = await _boot(w)
        config = await w.config("m1", "default")
        owner = await w.client.get(KINDS.maintenance, "m1", "default")
        w.bmc.lose_power()
        await w.until_true(lambda s: s.status.power_state == "Off")
        await w.until_true(lambda s: s.status.power_state == "On")
        boots = (w.bmc.network_boots, w.bmc.last_boot)
        await maintain(w, on=False)
        after = await w.until_true(lambda s: s.spec.maintenance_boot_configuration_ref is None)
        with pytest.raises(NotFound):
            await w.config("m1", "default")
        await w.until("Discovery")
    assert server.status.boot_window is not None
    assert (_purpose(server), server.status.boot_window.phase) == ("Maintenance", Phase.SUCCEEDED)
    assert (config.spec.image, config.metadata.owner_references[0].uid) == ("reg/firmware:1", owner.metadata.uid)
    assert boots == (2, "disk")
    assert after.spec.server_maintenance_ref is None


@pytest.mark.behaviour(
    "ServerMaintenance",
    "After a maintenance with its own boot the claimed machine boots from its disk, not the network.",
)
async def test_a_claimed_machine_comes_back_as_it_was_after_a_boot_of_the_maintenance() -> None:
    """The maintenance's system is powered off, then the tenant's boots from the disk, without a network boot."""
    async with world() as w:
        before = await claimed_and_booted(w)
        await maintain(w, serverBootConfigurationTemplate=TEMPLATE)
        during = await _boot(w)
        await maintain(w, on=False)
        after = await w.until_true(lambda s: s.status.state == "Reserved" and s.status.power_state == "On")
        await asyncio.sleep(200)
    assert during.status.tenancy.boot == before.status.tenancy.boot == after.status.tenancy.boot
    assert (w.bmc.network_boots, w.bmc.last_boot) == (3, "disk")


@pytest.mark.behaviour("ServerMaintenance", "A claim's boot that succeeded as the maintenance began is recorded.")
async def test_a_claims_boot_that_nobody_took_note_of_is_not_forgotten_over_the_maintenances() -> None:
    """The claim's Ignition was served at the moment in which the maintenance was created."""
    async with world() as w:
        await _free(w)
        claim = await w.add_claim()
        await w.until_true(lambda s: s.spec.boot_configuration_ref is not None)
        await w.settle()
        await w.config_ready("c1", "default")
        await w.until_true(lambda s: s.status.power_state == "On" and s.status.state == "Reserved")
        await w.fetch_script()
        await w.runtime.stop(grace=0.0)
        await w.fetch_ignition()
        await maintain(w, serverBootConfigurationTemplate=TEMPLATE)
        await w.client.patch(
            KINDS.server, "s1", {"spec": {"serverMaintenanceRef": {"namespace": "default", "name": "m1"}}}
        )
        await w.restart()
        server = await _boot(w)
    assert server.status.tenancy.boot is not None
    assert server.status.tenancy.boot.claim_uid == claim.metadata.uid


async def test_with_power_off_nothing_is_booted() -> None:
    """serverPower Off overrides the template until it changes."""
    async with world() as w:
        await _free(w)
        await maintain(w, serverBootConfigurationTemplate=TEMPLATE, serverPower="Off")
        await until(w, "InMaintenance", "InMaintenance")
        await w.config_ready("m1", "default")
        await asyncio.sleep(200)
        off = (w.bmc.network_boots, w.bmc.power)
        await w.client.patch(KINDS.maintenance, "m1", {"spec": {"serverPower": "On"}}, "default")
        await _boot(w)
    assert off == (1, PowerState.OFF)


@pytest.mark.behaviour(
    "ServerMaintenance", "A failed boot is Error and Failed without flapping; it can be tried again or ended."
)
async def test_a_boot_that_fails_is_error_and_failed_until_it_is_tried_again() -> None:
    """The states do not alternate; retry starts again; the maintenance can be deleted."""
    async with world(claim_boot_timeout=30.0, boot_retry=5.0) as w:
        await _free(w)
        await maintain(w, serverBootConfigurationTemplate=TEMPLATE)
        await w.until_true(lambda s: s.spec.maintenance_boot_configuration_ref is not None)
        await w.config_ready("m1", "default")
        await w.until("Error", within=600)
        await until(w, "Failed", "NetworkBootFailed")
        before = w.passes()
        await asyncio.sleep(600)
        spent, boots = w.passes() - before, w.bmc.network_boots
        await retry(w)
        await w.until_true(lambda s: s.status.state == "Maintenance" and w.bmc.network_boots > boots)
        await w.until("Error", within=600)
        await maintain(w, on=False)
        await w.until("Discovery")
    assert spent < 40


@pytest.mark.behaviour(
    "ServerMaintenance", "A boot configuration in Error fails the maintenance, with its message, until it is Ready."
)
async def test_a_boot_configuration_in_error_fails_the_maintenance_until_it_is_ready() -> None:
    """The maintenance repeats the message of the boot configuration."""
    async with world() as w:
        await _free(w)
        await maintain(w, serverBootConfigurationTemplate=TEMPLATE)
        await w.until_true(
            lambda s: s.spec.maintenance_boot_configuration_ref is not None and s.status.state == "Maintenance"
        )
        await w.config_ready("m1", "default", state="Error", message="no such image")
        failed = await until(w, "Failed", "BootConfigurationError")
        await _boot(w)
        await until(w, "InMaintenance", "InMaintenance")
    assert "no such image" in failed.status.waiting_for


async def test_a_boot_configuration_of_somebody_else_is_not_touched() -> None:
    """A claim of the same name owns it; the maintenance fails and reports it."""
    async with world() as w:
        await _free(w)
        await w.add_claim("m1")
        await w.until_true(lambda s: s.spec.boot_configuration_ref is not None and s.status.state == "Reserved")
        await w.settle()
        before = await w.config("m1", "default")
        await maintain(w, serverBootConfigurationTemplate=TEMPLATE)
        failed = await until(w, "Failed", "BootConfigurationNameTaken")
        after = await w.config("m1", "default")
    assert "another name" in failed.status.waiting_for
    assert after.spec == before.spec


async def test_a_claim_does_not_touch_what_a_maintenance_boots() -> None:
    """In the opposite case the claim names the owner."""
    async with world() as w:
        await _free(w)
        await maintain(w, serverBootConfigurationTemplate=TEMPLATE)
        await _boot(w)
        before = await w.config("m1", "default")
        await w.client.patch(KINDS.server, "s1", {"spec": {"serverClaimRef": {"namespace": "default", "name": "m1"}}})
        await w.add_claim("m1", serverRef={"name": "s1"})
        claim = await w.until_claim(
            lambda c: any(x.reason == "BootConfigurationNameTaken" for x in c.status.conditions), "m1"
        )
        after = await w.config("m1", "default")
    assert claim.metadata.name == "m1"
    assert after.metadata.uid == before.metadata.uid


async def test_error_before_a_maintenance_is_mended_by_it() -> None:
    """The server goes from Error to Maintenance, and then to discovery: the machine may have been repaired."""
    async with world(power_timeout=30.0) as w:
        await _free(w)
        w.bmc.ignores_power = True
        w.bmc._arrive(PowerState.ON)
        await w.until("Error", within=600)
        await maintain(w)
        await w.until("Maintenance")
        w.bmc.ignores_power = False
        await maintain(w, on=False)
        await w.discover()


async def test_power_that_is_not_reached_is_error_and_ends_when_it_is() -> None:
    """Until then the maintenance is Failed, and names what to check."""
    async with world(power_timeout=60.0) as w:
        await _free(w)
        w.bmc.ignores_power = True
        await maintain(w, serverPower="On")
        await w.until("Error")
        await until(w, "Failed", "PowerOnTimeout")
        w.bmc._arrive(PowerState.ON)
        await w.until("Maintenance")
        await until(w, "InMaintenance", "InMaintenance")


async def test_a_reset_in_a_maintenance_makes_the_hardware_worth_a_look() -> None:
    """The hardware may have changed before the machine was powered on."""
    async with world() as w:
        await _free(w)
        await maintain(w)
        await w.until("Maintenance")
        await operate(w, "force-on-server")
        await w.until_true(lambda s: s.status.interruption is not None and s.status.interruption.touched)
        w.bmc._arrive(PowerState.OFF)
        await maintain(w, on=False)
        await w.until("Discovery")


async def test_a_refusal_of_the_bmc_is_error_and_not_a_silent_wait() -> None:
    """A missing privilege of the account fails the maintenance; after its deletion the claim has its server again."""
    async with world() as w:
        await claimed_and_booted(w)
        w.bmc.refuses["graceful_off"] = BMCForbidden("the account may not reset systems")
        await maintain(w, serverPower="Off")
        await w.until("Error")
        await until(w, "Failed", "Forbidden")
        await maintain(w, on=False)
        await w.until("Reserved")


@pytest.mark.behaviour(
    "ServerMaintenance",
    "A maintenance's system that cannot be switched off is an Error, and never counts as the claim's system.",
)
async def test_a_maintenances_system_that_cannot_be_switched_off_never_passes_for_the_claims() -> None:
    """The server is in Error until the machine is off; then the tenant's disk boots."""
    async with world() as w:
        await claimed_and_booted(w)
        await maintain(w, serverBootConfigurationTemplate=TEMPLATE)
        await _boot(w)
        w.bmc.refuses["graceful_off"] = BMCForbidden("the account may not reset systems")
        await maintain(w, on=False)
        await w.until("Error")
        before = w.passes()
        await asyncio.sleep(600)
        spent, held = w.passes() - before, await w.server()
        w.bmc.lose_power()
        await w.until_true(lambda s: s.status.state == "Reserved" and s.status.power_state == "On")
    assert (held.status.state, spent < 20) == ("Error", True)
    assert (w.bmc.network_boots, w.bmc.last_boot) == (3, "disk")


async def test_a_lost_bmc_is_told_to_the_maintenance() -> None:
    """The server stays in Maintenance; the maintenance has the reason why nothing happens."""
    async with world() as w:
        await _free(w)
        await maintain(w)
        await until(w, "InMaintenance", "InMaintenance")
        w.bmc.failure = BMCTimeout("no answer")
        await asyncio.sleep(300)
        found = await w.client.get(KINDS.maintenance, "m1", "default")
    assert (found.status.state, "no answer" in found.status.waiting_for) == ("InMaintenance", True)


async def test_a_released_server_is_not_cleaned_twice_for_a_maintenance_that_did_nothing() -> None:
    """The server is Released before and after."""
    async with world() as w:
        await w.add_server(reclaimPolicy="Retain")
        await w.discover()
        await w.add_claim()
        await w.boot_claim()
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until("Released")
        await maintain(w)
        await w.until("Maintenance")
        before = len([e for e in await w.events() if e.reason == "Cleanup"])
        await maintain(w, on=False)
        await w.until("Released")
        await asyncio.sleep(5)
        after = len([e for e in await w.events() if e.reason == "Cleanup"])
    assert before == after == 1
