"""Drives that are moved while tenants use the servers: swapped, put in, or reported in another spelling."""

import asyncio

import pytest

from metal.bmc.inventory import Drive, Storage
from tests.controllers.fakebmc import FakeBMC
from tests.controllers.server.steps import claimed_and_booted, condition, operate
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


@pytest.mark.behaviour(
    "Cleanup",
    "Error `SanitizationOwed` says in which server a missing drive was erased, with the evidence, and how to accept "
    "it.",
)
async def test_an_owed_drive_that_was_erased_in_another_server_is_named_with_its_evidence() -> None:
    """Of two servers whose drives were swapped, each erases the drive that the other one owes."""
    async with world(**TRUSTED) as w:
        other = await two_tenants(w)
        shows(w.bmc, "serial-sdb")
        shows(other, "serial-sda")
        for claim in ("c1", "c2"):
            await w.client.delete(KINDS.claim, claim, "default")
        disks(w, "sdb")
        await erase(w, "s1")
        before = await w.until("Error", "s1")
        disks(w, "sda")
        await erase(w, "s2")
        await w.until("Error", "s2")
        both = [await w.until_true(lambda s: "was erased in server" in s.status.waiting_for, n) for n in ("s1", "s2")]
        names = [server.status.sanitization_evidence for server in both]
        await operate(w, "accept-owed-sanitization")
        await w.until("Discovery", within=900)
    assert "was erased in server" not in before.status.waiting_for
    texts = [server.status.waiting_for for server in both]
    assert "was erased in server s2 at 2026" in texts[0]
    assert f"(Clear, SanitizationEvidence {names[1]})" in texts[0]
    assert "was erased in server s1 at 2026" in texts[1]
    assert f"(Clear, SanitizationEvidence {names[0]})" in texts[1]
    assert "accept this as its erasure: kubectl annotate servers s1" in texts[0]


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


@pytest.mark.behaviour(
    "Server: identity and inventory",
    "A new Server with a drive of one that waits for `FormerTenant` names that decision, and continues after it.",
)
async def test_a_new_server_with_a_drive_of_one_that_waits_for_a_decision_names_the_decision() -> None:
    """The BMC of the Server that waits is not read before the decision, so no repair of it is asked for."""
    async with world(**TRUSTED) as w:
        disks(w, "sda")
        shows(w.bmc, "serial-sda")
        await claimed_and_booted(w)
        await w.runtime.stop(grace=0.0)
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.add_claim(serverRef={"name": "s1"})
        await w.restart()
        await w.until_true(lambda s: s.status.wait is not None and s.status.wait.for_ == "FormerTenant")
        await other_server(w, "serial-sda")
        first = await w.until_true(lambda s: bool(s.status.wait), "s2")
        await asyncio.sleep(120)
        waiting = await w.server("s2")
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until_true(lambda s: s.status.wait is None or s.status.wait.for_ != "MachineIdentity", "s2")
    assert waiting.status.wait is not None
    assert (waiting.status.wait.for_, first.status.wait and first.status.wait.for_) == ("MachineIdentity",) * 2
    assert "the decision for which Server s1 waits (FormerTenant)" in waiting.status.waiting_for
