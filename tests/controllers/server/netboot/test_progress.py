"""Without a DHCP lease of the machine, a boot counts only after no other client has requested its script."""

import asyncio
from typing import Any

import pytest

from metal.api.boot_window import Trust
from metal.api.core import CONFIG_MAP
from metal.api.server import Server
from metal.machine import boot_window
from tests.controllers.world import CLIENT, KINDS, NS, World, world

pytestmark = pytest.mark.looptime


FIRST: dict[str, Any] = {"minimum_trust": "FirstRequest"}


async def _without_lease(w: World) -> None:
    await w.add_server()
    await w.client.delete(KINDS.endpoint, "lease")


async def _script(w: World) -> None:
    await w.until("Discovery")
    await w.config_ready("s1")
    await w.until_true(lambda s: s.status.power_state == "On" and s.status.boot_window is not None)
    await w.fetch_script(trust=Trust.FIRST_REQUEST)
    await asyncio.sleep(20)


async def _claim_has_fetched_all(w: World) -> Server:
    """A claim without Ignition has fetched its image, without a lease that shows who that was."""
    await w.add_server()
    await w.discover()
    await w.client.delete(KINDS.endpoint, "lease")
    await w.add_claim()
    await _claim_boots(w)
    return await w.server()


async def test_a_boot_without_a_lease_waits_and_says_why() -> None:
    """The wait for the Ignition says how long and how to avoid it; after it the report counts at once."""
    async with world(**FIRST) as w:
        await _without_lease(w)
        await _script(w)
        server = await w.server()
        await asyncio.sleep(w.settings.race_window)
        await w.fetch_ignition()
        await w.report()
        await w.until("Available", within=30)
    assert server.status.state == "Discovery"
    assert server.status.wait is not None
    assert (server.status.wait.for_, server.status.wait.until is None) == ("ProbeReport", False)
    assert f"no DHCP lease shows that {CLIENT} is this machine" in server.status.waiting_for
    assert "its Ignition is served only after 300 s" in server.status.waiting_for
    assert "metalctl lease-hook" in server.status.waiting_for


async def test_a_boot_without_ignition_and_lease_waits_and_says_why() -> None:
    """The wait has a name, a deadline, and a sentence that tells how to be rid of it."""
    async with world(**FIRST) as w:
        server = await _claim_has_fetched_all(w)
        await w.until_true(lambda s: s.status.tenancy.boot is not None, within=400)
    assert server.status.wait is not None
    assert server.status.wait.for_ == "BootConfirmation"
    assert server.status.wait.until is not None
    assert CLIENT in server.status.waiting_for
    assert "report the leases" in server.status.waiting_for


async def test_a_lease_of_the_machine_is_proof_at_once() -> None:
    """The lease hook's report wakes the server."""
    async with world(**FIRST) as w:
        doubtful = await _claim_has_fetched_all(w)
        await w.client.create(
            KINDS.endpoint,
            {"metadata": {"name": "late"}, "spec": {"macAddress": "52-54-00-77-00-11", "ip": CLIENT}},
        )
        server = await w.until_true(lambda s: s.status.tenancy.boot is not None, within=30)
    assert doubtful.status.tenancy.boot is None
    assert server.status.tenancy.boot is not None
    assert (server.status.tenancy.boot.method, server.status.tenancy.boot.trust) == ("IPXE", "FirstRequest")


async def test_a_lease_at_another_address_proves_nothing() -> None:
    """Another client was served: the machine's address is another one."""
    async with world(**FIRST) as w:
        await _claim_has_fetched_all(w)
        await w.client.create(
            KINDS.endpoint,
            {"metadata": {"name": "real"}, "spec": {"macAddress": "52:54:00:77:00:11", "ip": "10.9.9.10"}},
        )
        await asyncio.sleep(30)
        server = await w.server()
    assert server.status.tenancy.boot is None


async def test_a_false_request_is_thrown_away_when_the_machine_asks_for_its_script() -> None:
    """A neighbour was first; the machine's own request stops that boot and it starts again."""
    async with world(**FIRST) as w:
        await _without_lease(w)
        await _script(w)
        before = w.bmc.network_boots
        await w.window(boot_window.contest)
        again = await w.until_true(lambda s: w.bmc.network_boots == before + 1)
        reasons = {e.reason for e in await w.events()}
    assert again.status.state == "Discovery"
    assert "BootContested" in reasons


@pytest.mark.behaviour(
    "Server: network boot",
    "A contested boot starts again before it is verified; afterwards no request affects the machine.",
)
async def test_a_claims_boot_in_doubt_starts_again_and_a_proved_one_is_never_stopped() -> None:
    """Before the proof a contest restarts the boot; afterwards no request of anybody touches the tenant's machine."""
    async with world(**FIRST) as w:
        doubtful = await _claim_has_fetched_all(w)
        await w.window(boot_window.contest)
        await w.until_true(lambda s: w.bmc.network_boots == 3)
        await _claim_boots(w)
        await w.until_true(lambda s: s.status.tenancy.boot is not None, within=400)
        w.bmc.calls.clear()
        await w.window(boot_window.contest)
        await asyncio.sleep(300)
        server = await w.server()
    assert doubtful.status.tenancy.boot is None
    assert w.bmc.writes() == []
    assert server.status.tenancy.boot is not None
    assert server.status.power_state == "On"


async def _claim_boots(w: World) -> None:
    """The machine, or another client in its place, gets script and image."""
    await w.until_true(lambda s: s.spec.boot_configuration_ref is not None)
    await asyncio.sleep(0.5)
    await w.config_ready("c1", "default")
    await w.until_true(
        lambda s: (
            s.status.power_state == "On" and s.status.boot_window is not None and s.status.boot_window.phase == "Open"
        )
    )
    await w.fetch_script(trust=Trust.FIRST_REQUEST)
    await w.window(boot_window.succeed)
    await asyncio.sleep(10)


@pytest.mark.behaviour(
    "Server: discovery",
    "A stored inventory of another boot does not count: the discovery ends with ReportLost.",
    go="Deletes reports before and after a discovery.",
)
async def test_an_old_inventory_is_not_taken_for_a_new_one() -> None:
    """A report that is not of this very boot does not become the server's inventory."""
    async with world() as w:
        await w.add_server()
        await w.until("Discovery")
        await w.config_ready("s1")
        await w.until_true(lambda s: s.status.power_state == "On" and s.status.boot_window is not None)
        await w.fetch_script()
        await w.fetch_ignition()
        body = {
            "metadata": {"name": "inventory-s1", "namespace": NS, "annotations": {KINDS.key("boot"): "another"}},
            "data": {"report.json": "{}"},
        }
        await w.client.apply(CONFIG_MAP, body, manager="registry")
        await w.window(lambda window: boot_window.accept_report(window, w.clock(), token="r"))
        failed = await w.until("Error")
    assert failed.status.failure is not None
    assert failed.status.failure.reason == "ReportLost"
    assert "is from another boot" in failed.status.failure.message


async def test_a_claim_does_not_get_a_server_whose_discovery_is_in_doubt() -> None:
    """Another client may have sent the report, so discovery runs again before a claim gets the server."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await w.window(boot_window.contest)
        await w.add_claim()
        server = await w.until("Discovery")
    assert server.spec.server_claim_ref is None
