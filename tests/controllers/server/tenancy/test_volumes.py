"""Cleanup of a server whose drives hide behind a RAID controller: its BMC tells which volume they belong to."""

from dataclasses import replace

import pytest

from metal.api.core import CONFIG_MAP
from metal.bmc.inventory import Drive, Storage, Volume
from metal.evidence.keys import public_keys
from metal.evidence.signing import verify
from tests.controllers.server.steps import claimed_and_booted, retry
from tests.controllers.server.tenancy.test_sanitization import DISK, ERASE, begin_erasing
from tests.controllers.world import KINDS, NS, World, world

pytestmark = pytest.mark.looptime
WWN = "600508b1001c5a3c"
P1, P2 = (Drive(n, capacity_bytes=1 << 40, serial_number=f"P{n}", state="Enabled", health="OK") for n in ("1", "2"))
MIRROR = Volume("vd0", 1 << 40, "Enabled", "RAID1", health="OK", wwn=WWN.upper(), drives=(P1, P2))


def controller(*drives: Drive, volume: Volume = MIRROR) -> tuple[Storage, ...]:
    """A RAID controller with these drives and one volume."""
    return (Storage("RAID", "Enabled", drives, (volume,)),)


async def erased(w: World, *drives: Drive) -> None:
    """The tenant is gone, and the machine has overwritten the one drive that it sees: the volume."""
    w.bmc.storages = controller(*drives)
    w.disks = [{**DISK, "wwid": f"naa.{WWN}"}]
    await claimed_and_booted(w)
    await w.client.delete(KINDS.claim, "c1", "default")
    await begin_erasing(w)


@pytest.mark.behaviour(
    "Cleanup", "Drives of a volume that was overwritten whole count as erased; the evidence holds the volume."
)
async def test_the_drives_of_an_overwritten_volume_owe_nothing() -> None:
    """The BMC is asked once, with the machine on; the signed evidence has the volume with its drives."""
    async with world(**ERASE) as w:
        await erased(w, P1, P2)
        w.bmc.calls.clear()
        await w.erase(wwn=f"naa.{WWN}")
        server = await w.until("Available")
        (proof,) = await w.evidence()
        verify(proof, public_keys((await w.client.list(CONFIG_MAP, NS)).items))
    assert [call for call in w.bmc.calls if call in ("inventory", "graceful_off")] == ["inventory", "graceful_off"]
    assert [d.serial_number for v in proof.status.volumes for d in v.drives] == ["P1", "P2"]
    assert "drive serial P1, slot 1 belongs to volume vd0 (RAID1: P1, P2) as sda" in proof.status.remarks[0]
    assert server.status.tenancy.sanitization == "Clear"
    assert {drive.serial_number for drive in server.status.drives} == {"D1", "P1", "P2"}


async def test_a_drive_that_failed_in_its_volume_is_owed_until_the_volume_is_whole() -> None:
    """What is true when the erasure has ended counts, not what was inventoried."""
    async with world(**ERASE) as w:
        await erased(w, P1, P2)
        w.bmc.storages = controller(P1, P2, volume=replace(MIRROR, health="Warning"))
        await w.erase(wwn=f"naa.{WWN}")
        broken = await w.until("Error")
        w.bmc.storages = controller(P1, P2)
        await retry(w)
        await begin_erasing(w)
        await w.erase(wwn=f"naa.{WWN}")
        await w.until("Available")
    assert broken.status.failure is not None
    assert "slot 2 belongs to volume vd0 (RAID1: P1, P2), but the volume is Enabled, Warning" in (
        broken.status.failure.message
    )


async def test_what_the_bmc_could_not_tell_is_in_the_evidence() -> None:
    """The evidence names what the BMC did not report, which explains why drives are owed."""
    async with world(**ERASE) as w:
        await erased(w, P1, P2)
        w.bmc.storages, w.bmc.problems = (), ("Could not read all storage controllers: 503",)
        await w.erase(wwn=f"naa.{WWN}")
        await w.until("Error")
        (proof,) = await w.evidence()
    assert "Could not read all storage controllers: 503" in proof.status.problems
    assert len(proof.status.owed) == 2


async def test_a_bmc_is_not_asked_for_volumes_where_every_drive_was_seen() -> None:
    """Nothing more is asked of it than before."""
    async with world(**ERASE) as w:
        await erased(w)
        w.bmc.calls.clear()
        await w.erase(wwn=f"naa.{WWN}")
        await w.until("Available")
        (proof,) = await w.evidence()
    assert "inventory" not in w.bmc.calls
    assert proof.status.volumes_read_at is None
