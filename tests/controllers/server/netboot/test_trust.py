"""A machine whose boot cannot reach the minimum trust is not powered on, and the wait says what would raise it."""

import asyncio
from typing import Any

import pytest

from metal.api.network import MACSource
from metal.api.server import Server
from metal.bmc.inventory import NetworkInterface
from metal.kube.client.errors import Invalid
from metal.machine import boot_window
from metal.machine.interfaces import out_of_band
from tests.controllers.fakebmc import MAC
from tests.controllers.server.steps import condition, retry
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime


async def _discovering(w: World) -> None:
    await w.add_server()
    await w.until("Discovery")
    await w.config_ready("s1")


async def _refused_boot(w: World) -> Server:
    return await w.until_true(lambda s: s.status.wait is not None and s.status.wait.for_ == "BootTrust")


@pytest.mark.behaviour(
    "Server: network boot",
    "With minimum Lease a machine whose BMC shows no MAC address stays off: wait BootTrust, at its "
    "deadline Error BootTrustTooLow.",
)
async def test_without_mac_addresses_of_the_bmc_the_machine_stays_off() -> None:
    """The wait has a deadline and says what would raise the trust; the BMC is asked to switch nothing on."""
    async with world() as w:
        w.bmc.interfaces = ()
        await _discovering(w)
        server = await _refused_boot(w)
        failed = await w.until("Error", within=w.settings.boot_config_timeout + 200)
    assert server.status.wait is not None
    assert server.status.wait.until is not None
    assert "shows no MAC address" in server.status.waiting_for
    assert "boot.minimumTrust to FirstRequest" in server.status.waiting_for
    assert failed.status.failure is not None
    assert failed.status.failure.reason == "BootTrustTooLow"
    assert failed.status.boot_window is None
    assert w.bmc.network_boots == 0
    assert failed.status.power_state == "Off"


async def test_a_bmc_that_shows_its_interfaces_later_is_booted() -> None:
    """Some BMCs show them only after the machine was on once: no administrator has to do anything else."""
    async with world() as w:
        w.bmc.interfaces = ()
        await _discovering(w)
        await _refused_boot(w)
        w.bmc.interfaces = (NetworkInterface(name="NIC.1", mac_address=MAC),)
        server = await w.until_true(lambda s: s.status.boot_window is not None, within=400)
    assert out_of_band(server.status.network_interfaces) == {MAC}
    assert server.status.network_interfaces[0].source == MACSource.OUT_OF_BAND


async def test_a_retry_after_the_error_reads_the_interfaces_again() -> None:
    """The discovery starts anew."""
    async with world() as w:
        w.bmc.interfaces = ()
        await _discovering(w)
        await w.until("Error", within=w.settings.boot_config_timeout + 200)
        w.bmc.interfaces = (NetworkInterface(name="NIC.1", mac_address=MAC),)
        await retry(w)
        await w.discover()


async def test_the_error_ends_when_the_site_requires_less() -> None:
    """The option is read at the start of the manager."""
    async with world() as w:
        w.bmc.interfaces = ()
        await _discovering(w)
        await w.until("Error", within=w.settings.boot_config_timeout + 200)
        w.settings = type(w.settings)(**{**vars(w.settings), "minimum_trust": "FirstRequest"})
        await w.restart()
        server = await w.until_true(lambda s: s.status.boot_window is not None)
    assert server.status.boot_window is not None
    assert server.status.boot_window.minimum_trust == "FirstRequest"


@pytest.mark.behaviour(
    "Server: network boot",
    "A boot window has the stricter minimum trust of site and claim; the claim's record and the Event "
    "Booted have method and trust.",
)
@pytest.mark.parametrize(
    ("site", "claim", "minimum"),
    [("Lease", "", "Lease"), ("FirstRequest", "Lease", "Lease"), ("Lease", "FirstRequest", "Lease")],
)
async def test_a_claim_only_raises_the_minimum_of_the_site(site: str, claim: str, minimum: str) -> None:
    """The window has the stricter of both when it opens."""
    async with world(minimum_trust=site) as w:
        await w.add_server()
        await w.discover()
        await w.add_claim(minimumBootTrust=claim)
        server = await w.boot_claim()
        found = {event.reason: event.message for event in await w.events()}
    assert server.status.boot_window is not None
    assert (server.status.boot_window.method, server.status.boot_window.minimum_trust) == ("IPXE", minimum)
    assert server.status.tenancy.boot is not None
    assert (server.status.tenancy.boot.method, server.status.tenancy.boot.trust) == ("IPXE", "Lease")
    assert found["Booted"].endswith("(method IPXE, trust Lease)")
    assert "method IPXE, trust Lease" in next(c.message for c in server.status.conditions if c.type == "Discovered")


@pytest.mark.behaviour(
    "Server: network boot", "A claim that requires more trust than a network boot of its server can have is not booted."
)
async def test_a_claim_that_requires_a_token_through_the_bmc_waits() -> None:
    """The machine stays off until the deadline; deleting the claim ends it."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        boots = w.bmc.network_boots
        await w.add_claim(minimumBootTrust="OutOfBand")
        await w.until_true(lambda s: s.spec.boot_configuration_ref is not None)
        await w.settle()
        await w.config_ready("c1", "default")
        server = await _refused_boot(w)
        failed = await w.until("Error", within=w.settings.boot_config_timeout + 200)
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until("Available", within=600)
    assert "spec.minimumBootTrust OutOfBand" in server.status.waiting_for
    assert condition(failed, "Ready") == ("False", "BootTrustTooLow")
    assert w.bmc.network_boots == boots


@pytest.mark.behaviour(
    "ServerClaim", "`spec.minimumBootTrust` is immutable once `serverRef` is set, and cannot be removed."
)
@pytest.mark.parametrize(
    ("before", "change", "message"),
    [
        ({"serverRef": {"name": "s1"}, "minimumBootTrust": "Lease"}, "FirstRequest", "immutable once serverRef"),
        ({"serverRef": {"name": "s1"}, "minimumBootTrust": "Lease"}, "", "immutable once serverRef"),
        ({"serverRef": {"name": "s1"}}, "OutOfBand", "immutable once serverRef"),
        ({"minimumBootTrust": "Lease"}, None, "cannot be removed"),
        ({"minimumBootTrust": "Lease"}, "Attested", "minimumBootTrust"),
    ],
)
async def test_the_minimum_of_a_bound_claim_is_kept(before: dict[str, Any], change: str | None, message: str) -> None:
    """The API refuses the change with 422; so the window always has what the claim requires."""
    async with world() as w:
        await w.add_claim(**before)
        with pytest.raises(Invalid, match=message):
            await w.client.patch(KINDS.claim, "c1", {"spec": {"minimumBootTrust": change}}, "default")
        unbound = await w.add_claim("c2", minimumBootTrust="Lease")
        assert unbound.spec.minimum_boot_trust == "Lease"
        await w.client.patch(KINDS.claim, "c2", {"spec": {"minimumBootTrust": ""}}, "default")


async def test_a_machine_without_a_lease_says_what_is_missing() -> None:
    """The wait and the failure after the time-out name its MAC addresses and the lease hook."""
    async with world(discovery_timeout=120.0, boot_retry=30.0, boot_attempts=1) as w:
        await w.add_server()
        await w.client.delete(KINDS.endpoint, "lease")
        await w.until("Discovery")
        await w.config_ready("s1")
        server = await w.until_true(lambda s: "fetch its boot script" in s.status.waiting_for)
        failed = await w.until("Error", within=400)
    assert f"a DHCP lease is reported for one of its MAC addresses ({MAC})" in server.status.waiting_for
    assert "metalctl lease-hook" in server.status.waiting_for
    assert failed.status.failure is not None
    assert failed.status.failure.reason == "NetworkBootFailed"
    assert "a DHCP lease is reported" in failed.status.failure.message


async def test_a_boot_that_began_before_the_upgrade_continues() -> None:
    """Its window has neither minimum nor method; the manager neither closes it nor switches the machine."""
    async with world() as w:
        await _discovering(w)
        await w.until_true(lambda s: s.status.power_state == "On" and s.status.boot_window is not None)
        old = {"bootWindow": {"minimumTrust": None, "method": None}}
        await w.client.patch_status(KINDS.server, "s1", {"status": old})
        boots = w.bmc.network_boots
        await w.restart()
        await asyncio.sleep(5)
        await w.fetch_script()
        await w.window(
            lambda window: boot_window.serve_ignition(
                window, w.clock(), token="t", report_token="r", client="192.0.2.1"
            )
        )
        await w.report()
        await w.until("Available")
    assert w.bmc.network_boots == boots
