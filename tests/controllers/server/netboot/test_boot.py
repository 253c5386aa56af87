"""A boot window belongs to one claim and to one version of its boot configuration, and its success is never lost."""

import asyncio
from dataclasses import replace

import pytest

from metal.api.boot_window import Phase
from metal.bmc.errors import BMCTimeout
from metal.machine import boot_window
from tests.controllers.server.steps import claimed_and_booting
from tests.controllers.world import KINDS, NS, World, world

pytestmark = pytest.mark.looptime


@pytest.mark.behaviour(
    "Server: network boot",
    "An image that changes while the boot window is open stops that boot; the new image is booted.",
)
async def test_an_image_changed_while_the_window_is_open_stops_that_boot() -> None:
    """Nothing of the old image is served any more; the machine is cut off and boots the new one, once."""
    async with world() as w:
        old = (await claimed_and_booting(w)).status.boot_window
        await w.fetch_script()
        await w.client.patch(KINDS.claim, "c1", {"spec": {"image": "reg/os:2"}}, "default")
        await w.settle()
        await w.config_ready("c1", "default")
        await w.until_true(lambda s: s.status.power_state == "Off")
        server = await w.boot_claim()
    assert old is not None
    assert "force_off" in w.bmc.calls
    assert server.status.boot_window is not None
    assert server.status.boot_window.id != old.id
    assert server.status.tenancy.boot is not None
    assert server.status.tenancy.boot.image == "reg/os:2"


async def test_the_window_of_a_changed_configuration_is_closed_before_the_power_is_touched() -> None:
    """A dead BMC does not keep the old boot's door open."""
    async with world() as w:
        await claimed_and_booting(w)
        w.bmc.failure = BMCTimeout("no answer")
        await w.client.patch(KINDS.claim, "c1", {"spec": {"image": "reg/os:2"}}, "default")
        await w.settle()
        await w.config_ready("c1", "default")
        await asyncio.sleep(1)
        server = await w.server()
    assert server.status.boot_window is not None
    assert server.status.boot_window.phase == Phase.CLOSED


async def test_a_success_counts_although_the_claim_changed_in_the_same_moment() -> None:
    """The tenant's system runs: a newer image is for the next claim, and the old one is what status tells."""
    async with world() as w:
        await claimed_and_booting(w)
        await w.fetch_script()
        await w.runtime.stop(grace=0.0)
        await w.fetch_ignition()
        await w.client.patch(KINDS.claim, "c1", {"spec": {"image": "reg/os:2"}}, "default")
        await w.restart()
        await asyncio.sleep(300)
        server = await w.server()
        claim = await w.claim()
    assert server.status.tenancy.boot is not None
    assert server.status.tenancy.boot.image == "reg/os:1"
    assert w.bmc.network_boots == 2
    assert next(c.reason for c in claim.status.conditions if c.type == "Current") == "ChangedAfterBoot"


async def test_a_success_counts_although_the_boot_configuration_was_recreated() -> None:
    """A boot configuration with another UID must not boot the same claim's machine a second time."""
    async with world() as w:
        await claimed_and_booting(w)
        await w.fetch_script()
        await w.runtime.stop(grace=0.0)
        await w.fetch_ignition()
        await w.client.delete(KINDS.boot_config, "c1", "default")
        await w.restart()
        await w.settle()
        server = await w.until_true(lambda s: s.status.tenancy.boot is not None)
        await asyncio.sleep(600)
    assert w.bmc.network_boots == 2
    assert server.status.state == "Reserved"


@pytest.mark.behaviour(
    "Server: network boot",
    "A claim that goes off during its first boot keeps that boot, and boots its disk afterwards.",
)
async def test_a_success_counts_although_the_claim_went_off_in_the_same_moment() -> None:
    """Off and on again brings the tenant's system back from its disk."""
    async with world() as w:
        await claimed_and_booting(w)
        await w.fetch_script()
        await w.runtime.stop(grace=0.0)
        await w.fetch_ignition()
        await w.client.patch(KINDS.claim, "c1", {"spec": {"power": "Off"}}, "default")
        await w.restart()
        await w.until_true(lambda s: s.status.power_state == "Off")
        await w.client.patch(KINDS.claim, "c1", {"spec": {"power": "On"}}, "default")
        await w.until_true(lambda s: s.status.power_state == "On")
        await asyncio.sleep(60)
    assert (w.bmc.network_boots, w.bmc.disk_boots) == (2, 1)


async def test_a_claim_that_goes_off_and_on_during_its_first_boot_boots_afterwards() -> None:
    """The unfinished boot is cut off, nothing of it is served, and On begins a new window."""
    async with world() as w:
        first = (await claimed_and_booting(w)).status.boot_window
        await w.fetch_script()
        await w.client.patch(KINDS.claim, "c1", {"spec": {"power": "Off"}}, "default")
        off = await w.until_true(lambda s: s.status.power_state == "Off" and not s.status.waiting_for)
        await w.client.patch(KINDS.claim, "c1", {"spec": {"power": "On"}}, "default")
        server = await w.boot_claim()
    assert off.status.boot_window is not None
    assert off.status.boot_window.phase == Phase.CLOSED
    assert first is not None
    assert server.status.boot_window is not None
    assert server.status.boot_window.id != first.id


async def test_a_discovery_that_somebody_else_reported_is_done_again() -> None:
    """A free server whose discovery turns out to be contested goes through it again."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await w.window(boot_window.contest)
        await w.until("Discovery")
        await w.discover()
    assert w.bmc.network_boots == 2


async def test_a_lost_report_is_asked_for_again_on_retry() -> None:
    """A window that succeeded before does not count: retry boots the probe again."""
    async with world() as w:
        await w.add_server()
        await w.until("Discovery")
        await w.config_ready("s1")
        await w.until_true(lambda s: s.status.power_state == "On")
        await w.fetch_script()
        await w.fetch_ignition()
        await w.window(lambda window: boot_window.accept_report(window, w.clock(), token="r"))
        failed = await w.until("Error")
        await w.client.patch(KINDS.server, "s1", {"metadata": {"annotations": {KINDS.key("operation"): "retry"}}})
        await w.discover()
    assert failed.status.failure is not None
    assert failed.status.failure.reason == "ReportLost"
    assert w.bmc.network_boots == 2


async def test_a_corrected_probe_image_reaches_servers_that_wait_for_the_wrong_one() -> None:
    """The manager restarts with another probe image: waiting and failed discoveries take it."""
    async with world(boot_config_timeout=60.0) as w:
        await w.add_server()
        await w.until("Error")
        await _with_image(w, "reg/probe:2")
        await w.until("Discovery")
        waiting = await w.config("s1", NS)
        await _with_image(w, "reg/probe:3")
        await w.until_true(lambda s: s.status.state == "Discovery")
        await asyncio.sleep(5)
        config = await w.config("s1", NS)
    assert waiting.spec.image == "reg/probe:2"
    assert config.spec.image == "reg/probe:3"


async def _with_image(w: World, image: str) -> None:
    w.settings = replace(w.settings, probe_image=image)
    await w.restart()


@pytest.mark.behaviour(
    "Cleanup",
    "A claim deleted while its BMC is dead is cleaned up when the BMC answers; until then it waits for Off.",
    issues=(1039, 1048),
)
async def test_a_claim_deleted_while_its_bmc_is_dead_is_cleaned_up_when_it_is_back() -> None:
    """The window closes at once; the power follows when it can."""
    async with world(bmc_timeout=120.0) as w:
        await claimed_and_booting(w)
        w.bmc.failure = BMCTimeout("no answer")
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.settle()
        closed = await w.server()
        unreachable = await w.until("Error", within=600)
        w.bmc.failure = None
        off = await w.until_true(lambda s: s.status.wait is not None and s.status.wait.for_ == "PowerOff", within=600)
        server = await w.until("Available", within=600)
    assert closed.status.state == "Cleanup"
    assert all(s.spec.server_claim_ref is not None and s.status.tenancy.uid for s in (closed, unreachable, off))
    assert (server.spec.server_claim_ref, server.status.power_state) == (None, "Off")
    assert closed.status.boot_window is not None
    assert closed.status.boot_window.phase == Phase.CLOSED
    assert server.status.tenancy.uid == ""
    assert not w.bmc.boot.is_network


@pytest.mark.parametrize("step", ["bound", "ready", "power", "on", "script", "ignition", "booted"])
async def test_a_claim_deleted_at_any_step_of_its_first_boot_frees_the_server(step: str) -> None:
    """Off, no override, no window, no tenant; the next claim gets it."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await w.add_claim()
        await w.until_true(lambda s: s.spec.boot_configuration_ref is not None)
        await _up_to(w, step)
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until("Available")
        server = await w.until_true(lambda s: s.spec.server_claim_ref is None and not s.status.waiting_for)
        await w.add_claim("c2")
        await w.boot_claim("c2")
    assert server.status.power_state == "Off"
    assert (server.status.tenancy.uid, server.status.boot_window, server.status.tenancy.boot) == ("", None, None)
    assert server.status.tenancy.sanitization == "None"


async def _up_to(w: World, step: str) -> None:
    if step == "bound":
        return
    await w.settle()
    await w.config_ready("c1", "default")
    if step == "ready":
        return
    await w.until_true(lambda s: s.status.power_request is not None)
    if step == "power":
        return
    await w.until_true(lambda s: s.status.power_state == "On")
    if step == "on":
        return
    await w.fetch_script()
    if step == "script":
        return
    await w.fetch_ignition()
    if step == "booted":
        await w.until_true(lambda s: s.status.tenancy.boot is not None)
