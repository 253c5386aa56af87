"""Drives that are moved while tenants use the servers: swapped, put in, or reported in another spelling."""

import asyncio

import pytest

from metal.bmc.inventory import Drive, Storage
from tests.controllers.fakebmc import FakeBMC
from tests.controllers.server.steps import condition, operate
from tests.controllers.server.tenancy.test_owed_drives import TRUSTED, erase, is_waiting, other_server, shows
from tests.controllers.server.tenancy.test_sanitization import disks
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime
WWN = "naa.5000c500a1b2c301"


async def two_tenants(w: World) -> FakeBMC:
    """Claim c1 has s1 with the drive sda, claim c2 has s2 with the drive sdb."""
    disks(w, "sda")
    shows(w.bmc, "serial-sda")
    await w.add_server()
    await w.discover()
    disks(w, "sdb")
    other = await other_server(w, "serial-sdb")
    await w.discover("s2")
    for claim, server in (("c1", "s1"), ("c2", "s2")):
        await w.add_claim(claim, serverRef={"name": server})
        await w.boot_claim(claim, server)
    await w.settle()
    return other


@pytest.mark.behaviour(
    "Cleanup", "Drives that were swapped between two servers with tenants: neither is erased while its claim exists."
)
async def test_drives_that_were_swapped_between_two_tenants_are_not_erased() -> None:
    """Running systems are left alone; the first server that is released waits with the name of the other claim."""
    async with world(**TRUSTED) as w:
        other = await two_tenants(w)
        shows(w.bmc, "serial-sdb")
        shows(other, "serial-sda")
        boots = w.bmc.network_boots, other.network_boots
        await asyncio.sleep(1800)
        running = [(await w.server(name)).status for name in ("s1", "s2")]
        await w.client.delete(KINDS.claim, "c1", "default")
        first = await w.until_true(is_waiting, "s1", within=900)
        await asyncio.sleep(600)
        assert (w.bmc.network_boots, other.network_boots) == boots
        await w.client.delete(KINDS.claim, "c2", "default")
        disks(w, "sdb")
        await erase(w, "s1")
        ended = await w.until("Error", "s1")
    assert [(one.state, one.power_state) for one in running] == [("Reserved", "On"), ("Reserved", "On")]
    assert "default/c2" in first.status.waiting_for
    assert "serial-sda" in ended.status.waiting_for


async def test_a_drive_that_was_put_into_a_tenants_server_is_erased_with_the_others() -> None:
    """No record knows it, so it may have the tenant's data."""
    async with world(**TRUSTED) as w:
        await two_tenants(w)
        shows(w.bmc, "serial-sda", "serial-new")
        disks(w, "sda", "new")
        await w.client.delete(KINDS.claim, "c1", "default")
        await erase(w, "s1")
        server = await w.until("Available", "s1")
        (evidence,) = [one for one in await w.evidence() if one.spec.server_ref.name == "s1"]
    assert server.status.tenancy.sanitization == "Clear"
    assert {one.serial_number for one in evidence.status.drives} == {"serial-sda", "serial-new"}


@pytest.mark.behaviour(
    "Cleanup",
    "A drive that was put into a server since its discovery must be erased, too, also if only the BMC shows it.",
)
async def test_a_drive_that_was_put_into_a_tenants_server_and_is_not_erased_holds_the_server() -> None:
    """The BMC lists it, and the probe does not see it."""
    async with world(**TRUSTED) as w:
        await two_tenants(w)
        shows(w.bmc, "serial-sda", "serial-new")
        disks(w, "sda")
        await w.client.delete(KINDS.claim, "c1", "default")
        await erase(w, "s1")
        server = await w.until("Error", "s1")
    assert "SERIAL-NEW" in server.status.waiting_for.upper()


async def test_a_tenants_drive_that_is_put_into_another_tenants_server_stops_the_next_boot() -> None:
    """A second boot of the claim is a network boot of the other system's installer, which may write to any drive."""
    async with world(**TRUSTED) as w:
        other = await two_tenants(w)
        shows(w.bmc)
        shows(other, "serial-sdb", "serial-sda")
        boots = other.network_boots
        await w.client.patch(KINDS.claim, "c2", {"spec": {"bootGeneration": 1}}, "default")
        server = await w.until_true(is_waiting, "s2", within=900)
        assert other.network_boots == boots
        await operate(w, "accept-owed-drives", "s2")
        await w.until_true(lambda s: not is_waiting(s), "s2")
    assert (server.status.state, condition(server, "DriveOwed")) == ("Reserved", ("True", "ClaimExists"))


@pytest.mark.parametrize(
    ("listed", "wwn", "state"),
    [("  SERIAL-sda ", "", "Available"), ("esirlas-ad", WWN, "Available"), ("esirlas-ad", "", "Error")],
    ids=["padding and case", "exchanged bytes and a WWN", "exchanged bytes only"],
)
async def test_a_drive_that_the_bmc_spells_in_another_way_is_one_drive(listed: str, wwn: str, state: str) -> None:
    """BMC and probe report one drive. Without a WWN exchanged bytes are another drive, which is not erased: Error."""
    async with world(**TRUSTED) as w:
        disks(w, "sda")
        w.disks = [{**w.disks[0], "wwid": WWN}]
        drive = Drive(name="Bay 1", serial_number=listed, wwn=wwn)
        w.bmc.storages = (Storage(name="RAID", state="Enabled", drives=(drive,)),)
        await w.add_server()
        await w.discover()
        await w.add_claim()
        await w.boot_claim()
        await w.client.delete(KINDS.claim, "c1", "default")
        await erase(w, "s1")
        server = await w.until(state, "s1")
    assert len(server.status.drives) == (1 if state == "Available" else 2)
