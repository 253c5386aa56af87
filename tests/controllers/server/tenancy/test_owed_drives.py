"""A drive is recognized in another server: a living claim's data is not touched, a former one's is erased first."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from metal.api.boot_window import Trust
from metal.api.server import Server
from metal.bmc.inventory import Drive, Inventory, Storage
from metal.bmc.systems import SystemInfo
from tests.controllers.fakebmc import FakeBMC
from tests.controllers.server.steps import claimed_and_booted, condition, maintain, operate, reasons, retry
from tests.controllers.server.tenancy.adoption.test_recreated import key_lost_after_verdict
from tests.controllers.server.tenancy.test_sanitization import ERASE, disks, released
from tests.controllers.world import KINDS, NS, World, world

pytestmark = pytest.mark.looptime

TRUSTED: dict[str, Any] = {**ERASE, "race_window": 1.0}
"""No lease of the second machine is known, so its boots are confirmed by time alone."""
OTHER, OTHER_MAC = "4c4c4544-0042-4410-8030-b4c04f4d3132", "52:54:00:77:00:22"


class OtherBMC(FakeBMC):
    """Another machine: other UUID, serial number and network card."""

    def _info(self) -> SystemInfo:
        return replace(super()._info(), serial_number="S2")

    async def inventory(self, uri: str) -> Inventory:
        found = await super().inventory(uri)
        nics = tuple(replace(nic, mac_address=OTHER_MAC) for nic in found.network_interfaces)
        return replace(found, network_interfaces=nics)


def shows(bmc: FakeBMC, *serials: str) -> None:
    """The BMC lists these drives, in its own spelling."""
    drives = tuple(Drive(name=f"Bay {serial}", serial_number=f" {serial.upper()} ") for serial in serials)
    bmc.storages = (Storage(name="RAID", state="Enabled", drives=drives),)


async def other_server(w: World, *serials: str) -> FakeBMC:
    """A second machine with these drives gets a Server."""
    bmc = OtherBMC(uuid=OTHER)
    w.pool.bmcs["10.0.0.10"] = bmc
    shows(bmc, *serials)
    await w.add_server("s2", uuid=OTHER, address="10.0.0.10")
    return bmc


async def gone(w: World) -> None:
    """The first Server is deleted; its machine, and the record of its outstanding erasure, remain."""
    await w.client.delete(KINDS.server, "s1")
    await w.until_gone(KINDS.server, "s1")


async def erase(w: World, name: str, *, trust: Trust = Trust.LEASE, **more: Any) -> None:
    """Play boot operator, boot server and machine of one cleanup; `more` is said of each drive."""
    await w.until_true(lambda s: s.status.state == "Cleanup" and s.spec.boot_configuration_ref is not None
                       and s.spec.boot_configuration_ref.namespace == NS, name)  # fmt: skip
    await w.settle()
    await w.config_ready(name)
    await w.until_true(_is_erasing, name)
    await w.fetch_script(name, trust=trust)
    await w.fetch_ignition(name)
    await w.erase(name, **more)


def _is_erasing(server: Server) -> bool:
    window = server.status.boot_window
    return (
        window is not None
        and (window.purpose, window.phase) == ("Sanitization", "Open")
        and (server.status.power_state == "On")
    )


def is_waiting(server: Server) -> bool:
    return server.status.wait is not None and server.status.wait.for_ == "DriveOwed"


async def deleted_while_dirty(w: World) -> None:
    await released(w)
    await w.until("Cleanup")
    await gone(w)


async def still_there_and_dirty(w: World) -> None:
    await released(w)
    await w.until("Cleanup")


@pytest.mark.behaviour(
    "Cleanup",
    "A drive with data of a former claim is recognized in another server, which is erased before it is Available.",
)
@pytest.mark.parametrize("begin", [deleted_while_dirty, still_there_and_dirty])
async def test_a_moved_drive_is_erased_before_its_new_server_is_available(
    begin: Callable[[World], Awaitable[None]],
) -> None:
    """The condition names drive, former server and evidence; the open record is closed with the erasure's evidence."""
    async with world(**TRUSTED) as w:
        await begin(w)
        await other_server(w, "serial-sda")
        await w.boot_probe("s2")
        found = await w.until("Cleanup", "s2")
        await erase(w, "s2")
        await w.discover("s2")
        server = await w.server("s2")
        records = {one.metadata.name: one for one in await w.evidence()}
    assert condition(found, "DriveOwed") == ("True", "NotErased")
    (owed,) = found.status.owed_drives
    assert (owed.server, owed.claim, owed.drive.serial_number.casefold()) == ("s1", "", "serial-sda")
    assert condition(server, "DriveOwed") == ("False", "Erased")
    assert server.status.tenancy.sanitization == "Clear"
    if begin is deleted_while_dirty:
        closed = records[owed.evidence]
        assert (closed.status.phase, closed.status.drives[0].result) == ("Succeeded", "Succeeded")
        assert KINDS.key("owed-by") not in closed.metadata.labels


@pytest.mark.behaviour(
    "Cleanup", "The record of a moved drive stays open where only a report below the trust OutOfBand names the drive."
)
@pytest.mark.parametrize(("trust", "closed"), [("Lease", False), ("OutOfBand", True)])
async def test_a_report_does_not_show_which_drives_a_server_has(trust: str, closed: bool) -> None:
    """A neighbour could name drives of any server as erased; an Event says which record stays open."""
    async with world(**TRUSTED) as w:
        await deleted_while_dirty(w)
        await other_server(w)
        await w.boot_probe("s2")
        await w.until("Cleanup", "s2")
        await erase(w, "s2", trust=Trust(trust))
        await w.discover("s2")
        records = [one for one in await w.evidence() if one.metadata.name.startswith("owed-")]
        told = [one.message for one in await w.events() if one.reason == "DriveNotIdentified"]
    assert [one.status.phase for one in records] == ["Succeeded" if closed else ""]
    assert bool(told) is not closed
    assert all(message.startswith(f"SanitizationEvidence {records[0].metadata.name} stays open") for message in told)


async def test_the_record_of_a_moved_drive_that_cannot_be_signed_stays_open_and_an_event_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server that has erased the drive becomes Available."""
    async with world(**TRUSTED) as w:
        await deleted_while_dirty(w)
        await other_server(w, "serial-sda")
        await w.boot_probe("s2")
        await w.until("Cleanup", "s2")
        key_lost_after_verdict(w, monkeypatch)
        await erase(w, "s2")
        await w.discover("s2")
        (still,) = [one for one in await w.evidence() if one.metadata.name.startswith("owed-")]
        told = [one for one in await w.events() if one.reason == "SigningKeyUnusable"]
    (event,) = told
    assert event.message.startswith(f"SanitizationEvidence {still.metadata.name} stays open")
    assert (event.count, event.involved_object.name, still.status.phase) == (1, "s2", "")


@pytest.mark.behaviour(
    "Cleanup", "A server with a drive whose claim exists is not booted, erased or given away until a decision."
)
async def test_a_living_claims_drive_that_its_bmc_shows_is_not_even_booted() -> None:
    """A replaced mainboard: the new Server waits in Initial, its machine is unchanged; the message has the ways out."""
    async with world(**TRUSTED) as w:
        disks(w, "sda")
        await claimed_and_booted(w)
        bmc = await other_server(w, "serial-sda")
        server = await w.until_true(is_waiting, "s2")
        await asyncio.sleep(600)
        server = await w.server("s2")
        writes = bmc.writes()
    assert (server.status.state, writes) == ("Initial", [])
    assert condition(server, "DriveOwed") == ("True", "ClaimExists")
    for word in ("default/c1", "s1", "spec.systemUUID", OTHER, "accept-owed-drives"):
        assert word in server.status.waiting_for


async def test_a_living_claims_drive_that_only_the_probe_sees_is_not_given_away() -> None:
    """The server stays in Discovery, powered off; when the claim is gone, its drive is erased here."""
    async with world(**TRUSTED) as w:
        disks(w, "sda")
        await claimed_and_booted(w)
        await other_server(w)
        await w.boot_probe("s2")
        server = await w.until_true(is_waiting, "s2")
        assert (server.status.state, server.status.power_state) == ("Discovery", "Off")
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until("Cleanup", "s2", within=600)


async def test_a_claim_that_outlives_its_server_keeps_its_drive() -> None:
    """The record of the deleted Server names the claim, which is found in the API by its UID."""
    async with world(**TRUSTED) as w:
        disks(w, "sda")
        await claimed_and_booted(w)
        await gone(w)
        await other_server(w, "serial-sda")
        server = await w.until_true(is_waiting, "s2")
    (owed,) = server.status.owed_drives
    assert (owed.claim, owed.server, owed.evidence) == ("default/c1", "s1", f"owed-{owed.evidence[5:]}")


async def test_a_restored_claim_keeps_its_drive_in_another_server() -> None:
    """It has the name of the recorded tenant and names its server, under another UID: the drive is not erased."""
    async with world(**TRUSTED) as w:
        disks(w, "sda")
        await claimed_and_booted(w)
        await w.runtime.stop(grace=0.0)
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.add_claim(serverRef={"name": "s1"})
        await w.restart()
        await other_server(w)
        await w.boot_probe("s2")
        server = await w.until_true(is_waiting, "s2")
        await asyncio.sleep(600)
        state = (await w.server("s2")).status.state
    (owed,) = server.status.owed_drives
    assert (owed.claim, state) == ("default/c1", "Discovery")


async def test_an_administrator_accepts_a_moved_drive() -> None:
    """The server continues without an erasure; the status and an Event say when and what was accepted."""
    async with world(**TRUSTED) as w:
        disks(w, "sda")
        await claimed_and_booted(w)
        await other_server(w, "serial-sda")
        await w.until_true(is_waiting, "s2")
        await operate(w, "accept-owed-drives", "s2")
        await w.discover("s2")
        server, seen = await w.server("s2"), await reasons(w)
        await operate(w, "accept-owed-drives", "s2")
        again = await reasons(w)
    assert (condition(server, "DriveOwed"), "DriveAccepted" in seen) == (("False", "Accepted"), True)
    assert server.status.owed_drives[0].accepted_at is not None
    assert "NothingOwed" in again - seen


async def test_a_drive_that_was_returned_holds_nobody_up() -> None:
    """The wait ends when neither BMC nor probe finds the drive any more."""
    async with world(**TRUSTED) as w:
        disks(w, "sda")
        await claimed_and_booted(w)
        bmc = await other_server(w, "serial-sda")
        await w.until_true(is_waiting, "s2")
        shows(bmc)
        disks(w, "sdb")
        server = await w.discover("s2")
    assert (condition(server, "DriveOwed"), server.status.owed_drives) == (("False", "NothingOwed"), ())


async def test_an_erasure_does_not_begin_while_a_living_claims_drive_is_in_the_server() -> None:
    """The drive came while a tenant used the server, so only the BMC's inventory shows it before the erasure."""
    async with world(**TRUSTED) as w:
        disks(w, "sdz")
        other = await other_server(w)
        await w.discover("s2")
        await w.add_claim("c2", serverRef={"name": "s2"})
        await w.boot_claim("c2", "s2")
        disks(w, "sda")
        await claimed_and_booted(w, serverRef={"name": "s1"})
        shows(other, "serial-sda")
        await w.client.delete(KINDS.claim, "c2", "default")
        server = await w.until_true(is_waiting, "s2", within=900)
        boots = other.network_boots
        await asyncio.sleep(600)
        assert other.network_boots == boots
        await operate(w, "accept-owed-drives", "s2")
        disks(w, "sdz", "sda")
        await erase(w, "s2")
        await w.until("Available", "s2")
    assert server.status.state == "Cleanup"


async def maintained(w: World, name: str) -> None:
    """A maintenance begins and ends."""
    await maintain(w, serverRef={"name": name})
    await w.until("Maintenance", name)
    await maintain(w, on=False)


@pytest.mark.behaviour(
    "Cleanup", "Before each boot that erases, a drive that was inserted since the last one is looked up again."
)
@pytest.mark.parametrize("again", [retry, maintained])
async def test_an_erasure_that_begins_again_looks_the_drives_up_again(
    again: Callable[[World, str], Awaitable[None]],
) -> None:
    """A living claim's drive, inserted after an erasure failed, is not erased by a retry nor after a maintenance."""
    async with world(**TRUSTED) as w:
        disks(w, "sdz")
        other = await other_server(w, "serial-sdz")
        await w.discover("s2")
        await w.add_claim("c2", serverRef={"name": "s2"})
        await w.boot_claim("c2", "s2")
        disks(w, "sda")
        await claimed_and_booted(w, serverRef={"name": "s1"})
        await w.client.delete(KINDS.claim, "c2", "default")
        disks(w, "sdz")
        await erase(w, "s2", result="Failed", message="I/O error")
        await w.until("Error", "s2")
        boots = other.network_boots
        shows(other, "serial-sdz", "serial-sda")
        await again(w, "s2")
        server = await w.until_true(is_waiting, "s2", within=900)
        await asyncio.sleep(600)
    assert (server.status.state, other.network_boots) == ("Cleanup", boots)
    assert condition(server, "DriveOwed") == ("True", "ClaimExists")


@pytest.mark.behaviour(
    "Cleanup", "A drive that is put into an Available server is found before the machine is booted for the next claim."
)
async def test_a_drive_that_came_after_the_discovery_stops_the_boot_of_the_next_claim() -> None:
    """An Available server gets the drive of a claim that exists: the next claim waits until the drive is returned."""
    async with world(**TRUSTED) as w:
        disks(w, "sdz")
        other = await other_server(w)
        await w.discover("s2")
        disks(w, "sda")
        await claimed_and_booted(w, serverRef={"name": "s1"})
        shows(other, "serial-sda")
        server = await _next_claim_waits(w)
        boots = other.network_boots
        await asyncio.sleep(600)
        assert other.network_boots == boots
        shows(other)
        await w.until_true(lambda s: s.status.boot_window is not None, "s2", within=900)
    assert (server.status.state, condition(server, "DriveOwed")) == ("Reserved", ("True", "ClaimExists"))


@pytest.mark.behaviour(
    "Cleanup", "A drive that is put into an Available server is a drive of this server once a claim boots it."
)
async def test_a_drive_that_a_claim_used_is_recognized_in_the_server_from_which_it_came() -> None:
    """Its own Server lists the drives of its discovery only, and gets the drive back after the claim's boot."""
    async with world(**TRUSTED) as w:
        disks(w, "sdz")
        other = await other_server(w)
        await w.discover("s2")
        disks(w, "sda")
        await w.add_server()
        await w.discover()
        shows(w.bmc, "serial-sdz")
        await w.add_claim("c1", serverRef={"name": "s1"})
        await w.boot_claim("c1")
        known = (await w.server()).status.drives
        shows(w.bmc)
        shows(other, "serial-sdz")
        server = await _next_claim_waits(w)
    assert [drive.serial_number for drive in known] == ["serial-sda", "SERIAL-SDZ"]
    assert [(one.server, one.claim) for one in server.status.owed_drives] == [("s1", "default/c1")]


@pytest.mark.parametrize("model", ["SAMSUNG MZ7LH480", ""])
async def test_a_clean_drive_may_move(model: str) -> None:
    """A drive of an Available server, and another model with the same serial number, hold nothing up."""
    async with world(**TRUSTED) as w:
        w.disks = [_disk(model="ST4000NM0035")]
        await (claimed_and_booted(w) if model else _available(w))
        w.disks = [_disk(model=model)]
        await other_server(w)
        server = await w.discover("s2")
    assert server.status.owed_drives == ()


async def _next_claim_waits(w: World) -> Server:
    """A claim gets s2 and could boot it, but for the drives."""
    await w.add_claim("c2", serverRef={"name": "s2"})
    await w.until("Reserved", "s2")
    await w.settle()
    await w.config_ready("c2", "default")
    return await w.until_true(is_waiting, "s2")


async def _available(w: World) -> None:
    await w.add_server()
    await w.discover()


def _disk(**more: Any) -> dict[str, Any]:
    return {"name": "sda", "rotational": False, "sizeBytes": 1 << 40, "serial": "serial-sda", **more}


async def test_an_erasure_does_not_begin_while_the_bmc_cannot_list_all_drives() -> None:
    """A BMC that listed all before fails to read its storage: the drive of a living claim may be among it."""
    async with world(**TRUSTED) as w:
        disks(w, "sdz")
        other = await other_server(w, "serial-sdz")
        await w.discover("s2")
        await w.add_claim("c2", serverRef={"name": "s2"})
        await w.boot_claim("c2", "s2")
        disks(w, "sda")
        await claimed_and_booted(w, serverRef={"name": "s1"})
        shows(other)
        other.problems = ("Could not read all drives: 503",)
        await w.client.delete(KINDS.claim, "c2", "default")
        await w.until("Cleanup", "s2")
        boots = other.network_boots
        server = await w.until("Error", "s2", within=3600)
        assert (other.network_boots, await w.evidence()) == (boots, [])
        assert server.status.failure is not None
        assert "read-inventory" in server.status.failure.message
        shows(other, "serial-sdz", "serial-sda")
        other.problems = ()
        await w.until_true(is_waiting, "s2", within=3600)
