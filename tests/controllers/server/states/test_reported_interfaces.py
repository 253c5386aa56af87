"""A discovery report can add no network interface that the BMC does not show."""

from typing import Any

import pytest

from metal.api.server import Server
from tests.controllers.fakebmc import MAC
from tests.controllers.server.steps import condition, operate, reasons, retry
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime
OTHER = "52:54:00:66:66:66"


def entry(mac: str, name: str = "eth0", **more: Any) -> dict[str, Any]:
    return {"name": name, "macAddress": mac, **more}


async def reported(w: World, *entries: dict[str, Any], state: str = "Error") -> Server:
    """Boot the probe; the report has these interfaces."""
    await w.until("Discovery")
    await w.config_ready((await w.until_true(lambda s: s.spec.boot_configuration_ref is not None)).metadata.name)
    await w.until_true(lambda s: s.status.power_state == "On" and s.status.boot_window is not None)
    await w.fetch_script()
    await w.fetch_ignition()
    await w.report(networkInterfaces=list(entries))
    return await w.until(state, within=600)


def macs(server: Server) -> list[tuple[str, str]]:
    return [(nic.mac_address, nic.source) for nic in server.status.network_interfaces]


@pytest.mark.behaviour(
    "Server: discovery",
    "A report with a MAC address that the BMC does not show is not used: IdentityMismatch names both lists.",
)
@pytest.mark.parametrize("entries", [(entry(OTHER),), (entry(MAC), entry(OTHER, "eth1"))], ids=["replaced", "added"])
async def test_a_report_with_a_foreign_interface_is_not_used(entries: tuple[dict[str, Any], ...]) -> None:
    """Both lists are in the condition; what the BMC shows stays, and identifies the machine at later boots."""
    async with world() as w:
        await w.add_server()
        server = await reported(w, *entries)
    assert server.status.failure is not None
    assert server.status.failure.reason == "IdentityMismatch"
    assert condition(server, "IdentityMismatch") == ("True", "ForeignInterfaces")
    message = next(c.message for c in server.status.conditions if c.type == "IdentityMismatch")
    assert f"The BMC shows: NIC.1 {MAC}." in message
    assert OTHER in message
    assert macs(server) == [(MAC, "OutOfBand")]


async def test_a_retry_discovers_the_machine_again() -> None:
    """With a report of the machine itself the server is Available, and the condition is False."""
    async with world() as w:
        await w.add_server()
        await reported(w, entry(OTHER))
        await retry(w)
        server = await reported(w, entry(MAC), state="Available")
    assert condition(server, "IdentityMismatch") == ("False", "InterfacesMatch")
    assert macs(server) == [(MAC, "OutOfBand")]


async def test_interfaces_that_an_administrator_accepts_are_known_in_band() -> None:
    """The next report with the same interfaces is used; the accepted one identifies nothing."""
    async with world() as w:
        await w.add_server()
        await reported(w, entry(MAC), entry(OTHER, "eth1"))
        await operate(w, "accept-reported-interfaces")
        server = await reported(w, entry(MAC), entry(OTHER, "eth1"), state="Available")
        found = await reasons(w)
    assert macs(server) == [(MAC, "OutOfBand"), (OTHER, "InBand")]
    assert "InterfacesAccepted" in found


async def test_nothing_is_accepted_where_no_report_was_refused() -> None:
    """The operation has no effect, and an Event says so."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await operate(w, "accept-reported-interfaces")
        await w.until_true(lambda s: KINDS.key("operation") not in s.metadata.annotations)
        found = await reasons(w)
    assert "NothingToAccept" in found


async def test_where_the_bmc_shows_no_interface_the_report_supplies_them() -> None:
    """They are recorded as known in band."""
    async with world(minimum_trust="FirstRequest") as w:
        w.bmc.interfaces = ()
        await w.add_server()
        server = await reported(w, entry(OTHER), state="Available")
    assert macs(server) == [(OTHER, "InBand")]


async def test_the_usb_interface_of_the_bmc_is_no_mismatch() -> None:
    """Nearly every BMC offers one to the operating system, and lists it nowhere."""
    async with world() as w:
        await w.add_server()
        server = await reported(w, entry(MAC), entry(OTHER, "usb0", bus="usb"), state="Available")
    assert macs(server) == [(MAC, "OutOfBand"), (OTHER, "InBand")]


async def test_interfaces_of_an_earlier_version_are_read_again() -> None:
    """A Discovery that began before an upgrade does not know which interfaces the BMC shows: it returns to Initial."""
    async with world() as w:
        await w.add_server()
        await w.until("Discovery")
        old = [{"name": "eth0", "macAddress": MAC}, {"name": "eth1", "macAddress": OTHER}]
        await w.client.patch_status(KINDS.server, "s1", {"status": {"networkInterfaces": old}})
        server = await reported(w, entry(MAC), entry(OTHER, "eth1"), state="Available")
    assert macs(server) == [(MAC, "OutOfBand"), (OTHER, "InBand")]
