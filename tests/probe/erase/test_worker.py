"""The erasure of one drive: verification, the next method, and the message when all methods fail."""

import pytest

from metal.probe.erase.methods import PURGE
from tests.probe.erase.controllers import Ata, Nvme, Scsi, add_sas
from tests.probe.erase.machine import MIB, Faults, Machine, is_zero


def test_a_drive_that_can_nothing_is_overwritten(machine: Machine) -> None:
    """Every byte of it, for any size; the class is Clear."""
    medium = machine.add("vda", size=3 * MIB + 512)

    told = machine.told()

    assert is_zero(medium)
    assert (told["result"], told["method"], told["class"]) == ("Succeeded", "Overwrite", "Clear")
    assert (told["samplesRead"], told["samplesDiffer"], told["percent"]) == (4, 0, 100)
    assert told["startedAt"] == told["endedAt"] == "1970-01-01T00:00:00Z"


def test_a_large_drive_is_overwritten_between_its_samples_too(machine: Machine) -> None:
    """Samples verify, and do not limit, the erasure."""
    medium = machine.add("vda", size=70 * MIB)

    told = machine.told()

    assert is_zero(medium)
    assert told["samplesRead"] == 130


def test_purge_is_owed_by_a_drive_that_can_only_be_overwritten(machine: Machine) -> None:
    """It is overwritten anyway, and the class is the one that was reached."""
    medium = machine.add("vda")

    told = machine.told(PURGE)

    assert is_zero(medium)
    assert (told["result"], told["class"]) == ("Failed", "Clear")
    assert "requires Purge" in told["message"]


def test_discard_counts_where_the_drive_then_reads_zeroes(machine: Machine) -> None:
    """It is fast, and Clear."""
    medium = machine.add("vda", queue__discard_max_bytes="1073741824")

    told = machine.told()

    assert is_zero(medium)
    assert (told["method"], told["class"]) == ("Discard", "Clear")


def test_a_drive_that_keeps_what_was_discarded_is_overwritten(machine: Machine) -> None:
    """The message names the method that failed before."""
    medium = machine.add("vda", queue__discard_max_bytes="1", faults=Faults(keeps_discarded=True))

    told = machine.told()

    assert is_zero(medium)
    assert (told["result"], told["method"], told["samplesDiffer"]) == ("Succeeded", "Overwrite", 0)
    assert "Discard: 1 of 1 samples are not erased" in told["message"]


def test_a_lying_drive_is_caught_and_the_next_method_tried(machine: Machine) -> None:
    """It reported success and kept the data: the marker remained."""
    controller = Nvme(machine, sanitizes=3, formats=True, lies=True)
    controller.add("nvme0n1")

    told = machine.told(PURGE)

    assert (told["result"], told["method"], told["class"]) == ("Failed", "Overwrite", "Clear")
    assert is_zero(machine.medium("nvme0n1"))
    for tried in ("NVMeSanitizeCryptoErase", "NVMeSanitizeBlockErase", "NVMeFormatUserDataErase"):
        assert f"{tried}: 1 of 1 samples are not erased" in told["message"]


@pytest.mark.parametrize("drive", [Ata, Scsi])
def test_no_lie_of_any_family_is_believed(machine: Machine, drive: type[Ata | Scsi]) -> None:
    """The drive is overwritten in the end, and Purge is not reached."""
    if drive is Ata:
        medium = machine.add("sda", transport="ATA", queue__rotational="1")
        Ata(machine, sanitize=7 << 13, security=0x21, lies=True)
    else:
        medium = add_sas(machine)
        Scsi(machine, supports=(1, 2, 3), lies=True)

    told = machine.told(PURGE)

    assert (told["result"], told["method"], told["class"]) == ("Failed", "Overwrite", "Clear")
    assert is_zero(medium)
    assert told["message"].count("samples are not erased") == (5 if drive is Ata else 3)


def test_a_drive_that_dies_in_the_middle_has_failed(machine: Machine) -> None:
    """The message has the kernel's error."""
    machine.add("vda", size=6 * MIB, faults=Faults(dies_at=4 * MIB))

    told = machine.told()

    assert (told["result"], told["class"]) == ("Failed", "")
    assert "Input/output error" in told["message"]


def test_a_drive_with_bad_sectors_may_still_erase_itself(machine: Machine) -> None:
    """A drive that cannot be written can still destroy its key."""
    controller = Nvme(machine, sanitizes=1)
    controller.add("nvme0n1", size=20 * MIB)
    machine.faults["nvme0n1"] = Faults(dies_at=19 * MIB)

    told = machine.told(PURGE)

    assert "Input/output error" in told["message"]
    assert told["result"] == "Failed"
    assert b"tenant" not in machine.medium("nvme0n1").read_bytes()


def test_what_cannot_be_read_back_is_not_proven(machine: Machine) -> None:
    """A drive that accepts writes and cannot be read has failed."""
    machine.add("vda", faults=Faults(unreadable=True))

    told = machine.told()

    assert (told["result"], told["samplesDiffer"]) == ("Failed", 1)
    assert "could not be read back" in told["message"]


@pytest.mark.parametrize(
    ("faults", "result", "word"),
    [
        (Faults(protected=True), "ReadOnly", "writes to the drive fail"),
        (Faults(swallows=True), "ReadOnly", "but does not store"),
        (Faults(opal=True), "Locked", "PSID"),
        (Faults(busy=1000), "Failed", "in use"),
    ],
)
def test_what_cannot_be_touched_is_told(machine: Machine, faults: Faults, result: str, word: str) -> None:
    """Each with a result and a message of its own; no class was reached."""
    machine.add("vda", faults=faults)

    told = machine.told()

    assert (told["result"], told["class"], told["endedAt"] is None) == (result, "", False)
    assert word in told["message"]


def test_a_drive_that_is_busy_for_a_moment_is_waited_for(machine: Machine) -> None:
    """udev opens every drive that was closed after writing."""
    machine.add("vda", faults=Faults(busy=5))

    assert machine.told()["result"] == "Succeeded"


def test_a_write_protected_drive_is_read_only(machine: Machine) -> None:
    """The result is ReadOnly when the protection cannot be removed."""
    medium = machine.add("sda", ro="1\n")

    assert machine.told()["result"] == "ReadOnly"
    assert b"tenant" in medium.read_bytes()


def test_a_boot_partition_of_an_emmc_is_made_writable(machine: Machine) -> None:
    """The kernel protects it by default."""
    medium = machine.add("mmcblk0boot0", force_ro="1\n")

    told = machine.told()

    assert machine.host.text("/sys/block/mmcblk0boot0/force_ro") == "0"
    assert (told["result"], told["transport"]) == ("Succeeded", "MMC")
    assert is_zero(medium)


def test_a_missing_tool_costs_its_methods_only(machine: Machine) -> None:
    """The drive is overwritten, and the message names the tool."""
    machine.add("sda", transport="ATA")

    told = machine.told(PURGE)

    assert (told["class"], told["method"]) == ("Clear", "Overwrite")
    assert "hdparm" in told["message"]


def test_one_drive_that_fails_stops_no_other(machine: Machine) -> None:
    """Each has its own result."""
    machine.add("vda", faults=Faults(dies_at=0))
    machine.add("vdb")

    told = machine.erase().wire(done=True)["drives"]

    assert [each["result"] for each in told] == ["Failed", "Succeeded"]


def test_signatures_are_gone_whatever_the_method_leaves(machine: Machine) -> None:
    """A lost key leaves noise: positions of partition tables have zeroes."""
    controller = Nvme(machine, sanitizes=1)
    controller.add("nvme0n1", size=40 * MIB)

    machine.told(PURGE)

    content = machine.medium("nvme0n1").read_bytes()
    assert not any(content[: 16 * MIB])
    assert any(content[16 * MIB : 24 * MIB])
    assert not any(content[24 * MIB :])


def test_a_second_path_that_shows_other_data_is_no_second_path(machine: Machine) -> None:
    """Two drives with the same name and serial number: the second one does not count as erased."""
    for name in ("sda", "sdb"):
        machine.add(name, wwid="naa.5000c500a1b2c3d4", device__serial="S1")

    (told,) = machine.erase().wire(done=True)["drives"]

    assert told["result"] == "Failed"
    assert "/dev/sdb has the names of /dev/sda and leads to another drive" in told["message"]
