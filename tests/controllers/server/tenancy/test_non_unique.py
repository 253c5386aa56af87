"""Drives with one serial number in several servers: none is given away, and a site can say which identify nothing."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from metal.api.boot_window import Trust
from metal.bmc.errors import BMCUnreachable
from tests.controllers.server.steps import claimed_and_booted, condition
from tests.controllers.server.tenancy.test_owed_drives import (
    OTHER_MAC,
    TRUSTED,
    OtherBMC,
    erase,
    gone,
    is_waiting,
    other_server,
    shows,
)
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime

LISTED: dict[str, Any] = {**TRUSTED, "non_unique_drives": frozenset({"cheap0001"})}
ONE, TWO = "5000c500a1b2c301", "5000c500a1b2c302"
THIRD, THIRD_MAC = "4c4c4544-0042-4410-8030-b4c04f4d3133", "52:54:00:77:00:33"


def disk(wwn: str = "", serial: str = "CHEAP0001") -> dict[str, Any]:
    return {"name": "sda", "rotational": False, "sizeBytes": 1 << 40, "serial": serial, "model": "Cheap SSD",
            "wwid": f"naa.{wwn}" if wwn else ""}  # fmt: skip


class ThirdBMC(OtherBMC):
    """A third machine."""

    async def inventory(self, uri: str) -> Any:
        found = await super().inventory(uri)
        nics = tuple(replace(nic, mac_address=THIRD_MAC) for nic in found.network_interfaces)
        assert OTHER_MAC not in {nic.mac_address for nic in nics}
        return replace(found, network_interfaces=nics)


async def third_server(w: World) -> None:
    w.pool.bmcs["10.0.0.11"] = bmc = ThirdBMC(uuid=THIRD)
    shows(bmc)
    await w.add_server("s3", uuid=THIRD, address="10.0.0.11")


@pytest.mark.parametrize("serial", ["QM00001", "0123456789", "0000000000"])
async def test_drives_of_emulators_hold_nothing_up(serial: str) -> None:
    """Values in the list of the program identify nothing."""
    async with world(**TRUSTED) as w:
        w.disks = [disk(serial=serial)]
        await claimed_and_booted(w)
        await other_server(w)
        server = await w.discover("s2")
    assert server.status.owed_drives == ()


@pytest.mark.behaviour(
    "Cleanup",
    "A drive whose serial number a drive of a tenant's server has, too, is held (`DriveOwed`); the message names the "
    "option `identity.nonUniqueDrives`.",
)
@pytest.mark.parametrize("wwn", ["", TWO])
async def test_a_serial_number_in_two_servers_is_held_and_the_way_out_is_named(wwn: str) -> None:
    """Also with another WWN, because controllers report different ones for one drive: only the site knows."""
    async with world(**TRUSTED) as w:
        w.disks = [disk(wwn and ONE)]
        await claimed_and_booted(w)
        w.disks = [disk(wwn)]
        await other_server(w)
        await w.boot_probe("s2")
        server = await w.until_true(is_waiting, "s2")
        await asyncio.sleep(600)
        server = await w.server("s2")
    assert server.status.state == "Discovery"
    for words in ("CHEAP0001 does not identify a drive", "identity.nonUniqueDrives", "accept-owed-drives"):
        assert words in server.status.waiting_for


@pytest.mark.parametrize("wwn", ["", TWO])
async def test_a_serial_number_that_the_site_lists_holds_nothing_up(wwn: str) -> None:
    """The WWN decides, as far as there is one."""
    async with world(**LISTED) as w:
        w.disks = [disk(wwn and ONE)]
        await claimed_and_booted(w)
        w.disks = [disk(wwn)]
        await other_server(w)
        server = await w.discover("s2")
    assert server.status.owed_drives == ()


async def test_a_drive_with_a_listed_serial_number_is_recognized_by_its_wwn() -> None:
    """It was moved: the claim's data is protected as that of any other drive."""
    async with world(**LISTED) as w:
        w.disks = [disk(ONE)]
        await claimed_and_booted(w)
        await other_server(w)
        await w.boot_probe("s2")
        server = await w.until_true(is_waiting, "s2")
    assert condition(server, "DriveOwed") == ("True", "ClaimExists")
    assert "nonUniqueDrives" not in server.status.waiting_for


async def test_a_listed_serial_number_is_no_reason_to_suspect_a_replaced_mainboard() -> None:
    """The other Server has a tenant, and its BMC does not answer."""
    async with world(**LISTED) as w:
        w.disks = [disk()]
        await claimed_and_booted(w)
        w.bmc.failure = BMCUnreachable("dead")
        await w.until_true(lambda s: condition(s, "BMCReachable")[0] == "False")
        await other_server(w, "CHEAP0001")
        await w.until("Discovery", "s2")


@pytest.mark.behaviour(
    "Cleanup", "The erasure of a drive does not close the record of a drive of another server with its serial number."
)
@pytest.mark.parametrize("listed", [False, True])
async def test_the_erasure_of_another_drive_with_this_serial_number_settles_nothing(listed: bool) -> None:
    """The machine of the deleted Server is erased when it gets a Server again."""
    async with world(**(LISTED if listed else TRUSTED)) as w:
        w.disks = [disk()]
        await released_dirty(w)
        await w.client.delete(KINDS.claim, "c2", "default")
        await erase(w, "s2", trust=Trust.OUT_OF_BAND)
        await w.until("Available", "s2")
        (record,) = [one for one in await w.evidence() if one.metadata.name.startswith("owed-")]
        assert record.status.phase == ""
        await w.client.delete(KINDS.bmc_secret, "s1-secret")
        await w.add_server()
        await w.until("Cleanup", "s1")


async def released_dirty(w: World) -> None:
    """Three machines have such a drive: that of a deleted Server, one with the claim c2, and an Available one."""
    await w.add_server()
    await w.discover()
    await other_server(w)
    await w.discover("s2")
    await third_server(w)
    await w.discover("s3")
    for claim, server in (("c1", "s1"), ("c2", "s2")):
        await w.add_claim(claim, serverRef={"name": server})
        await w.boot_claim(claim, server)
    await w.client.delete(KINDS.claim, "c1", "default")
    await w.until("Cleanup", "s1")
    await gone(w)
