"""How one drive is erased: what proves it, what is tried next, and what is told when nothing helps."""

from pathlib import Path
from typing import Any

import pytest

from metal.probe.erase.methods import CLEAR, PURGE
from tests.probe.erase.controllers import Ata, Nvme, Scsi
from tests.probe.erase.machine import MIB, Faults, Machine, is_zero


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "root")


def test_a_drive_that_can_nothing_is_overwritten(machine: Machine) -> None:
    """Every byte of it, whatever its size; that is Clear."""
    medium = machine.add("vda", size=3 * MIB + 512)

    told = machine.told()

    assert is_zero(medium)
    assert (told["result"], told["method"], told["class"]) == ("Succeeded", "Overwrite", "Clear")
    assert (told["samplesRead"], told["samplesDiffer"], told["percent"]) == (4, 0, 100)
    assert told["startedAt"] == told["endedAt"] == "1970-01-01T00:00:00Z"


def test_a_large_drive_is_overwritten_between_its_samples_too(machine: Machine) -> None:
    """Samples prove, and do not bound, what is erased."""
    medium = machine.add("vda", size=70 * MIB)

    told = machine.told()

    assert is_zero(medium)
    assert told["samplesRead"] == 130


def test_purge_is_owed_by_a_drive_that_can_only_be_overwritten(machine: Machine) -> None:
    """It is overwritten all the same, and the class says what was reached."""
    medium = machine.add("vda")

    told = machine.told(PURGE)

    assert is_zero(medium)
    assert (told["result"], told["class"]) == ("Failed", "Clear")
    assert "asks for Purge" in told["message"]


NVME = [
    ({"sanitizes": 1}, "NVMeSanitizeCryptoErase"),
    ({"sanitizes": 2}, "NVMeSanitizeBlockErase"),
    ({"sanitizes": 4}, "NVMeSanitizeOverwrite"),
    ({"sanitizes": 7, "formats": True, "crypto_format": True}, "NVMeSanitizeCryptoErase"),
    ({"formats": True, "crypto_format": True}, "NVMeFormatCryptoErase"),
    ({"formats": True}, "NVMeFormatUserDataErase"),
]


@pytest.mark.parametrize(("abilities", "method"), NVME)
def test_an_nvme_drive_purges_by_the_best_that_it_offers(
    machine: Machine, abilities: dict[str, Any], method: str
) -> None:
    """Every namespace of the controller is gone, and Sanitize ran once for all of them."""
    controller = Nvme(machine, **abilities)
    controller.add("nvme0n1")
    controller.add("nvme0n2")

    told = machine.erase(PURGE).wire(done=True)["drives"]

    assert [(each["result"], each["method"], each["class"]) for each in told] == [("Succeeded", method, PURGE)] * 2
    assert controller.sanitized == ("Sanitize" in method)
    assert not any(b"tenant" in machine.medium(name).read_bytes() for name in controller.namespaces)


ATA = [
    ({"sanitize": 1 << 13}, "1", "ATASanitizeCryptoScramble", PURGE),
    ({"sanitize": 1 << 15}, "0", "ATASanitizeBlockErase", PURGE),
    ({"sanitize": 1 << 14}, "1", "ATASanitizeOverwrite", PURGE),
    ({"sanitize": 1 << 14}, "0", "ATASanitizeOverwrite", CLEAR),
    ({"security": 0x21}, "1", "ATASecurityEraseEnhanced", PURGE),
    ({"security": 0x21}, "0", "ATASecurityEraseEnhanced", CLEAR),
    ({"security": 0x01}, "1", "ATASecurityErase", CLEAR),
]


@pytest.mark.parametrize(("abilities", "rotational", "method", "reaches"), ATA)
def test_a_sata_drive_erases_itself_by_the_best_that_it_offers(
    machine: Machine, abilities: dict[str, Any], rotational: str, method: str, reaches: str
) -> None:
    """What is Purge on a disk is not always Purge on flash (SP 800-88r1, tables A-5 and A-8)."""
    medium = machine.add("sda", transport="ATA", queue__rotational=rotational)
    drive = Ata(machine, **abilities)

    told = machine.told(PURGE)

    assert (told["transport"], told["method"], told["class"]) == ("SATA", method, reaches)
    assert told["result"] == ("Succeeded" if reaches == PURGE else "Failed")
    assert b"tenant" not in medium.read_bytes()
    assert drive.security & 2 == 0


SCSI = [
    ((3,), "1", "SCSISanitizeCryptoErase", PURGE),
    ((2, 1), "0", "SCSISanitizeBlockErase", PURGE),
    ((1,), "1", "SCSISanitizeOverwrite", PURGE),
    ((1,), "0", "SCSISanitizeOverwrite", CLEAR),
]


def add_sas(machine: Machine, rotational: str = "1") -> Path:
    """The SAS drive sda."""
    medium = machine.add("sdx", queue__rotational=rotational)
    target = machine.host.path("/sys/devices/host0/end_device-0:0/sda")
    target.parent.mkdir(parents=True)
    machine.host.path("/sys/block/sdx").rename(target)
    machine.host.path("/sys/block/sda").symlink_to(target)
    machine.faults["sda"] = machine.faults.pop("sdx")
    return medium.rename(medium.with_name("sda"))


@pytest.mark.parametrize(("supports", "rotational", "method", "reaches"), SCSI)
def test_a_sas_drive_sanitizes_itself(
    machine: Machine, supports: tuple[int, ...], rotational: str, method: str, reaches: str
) -> None:
    """REPORT SUPPORTED OPERATION CODES says what it knows."""
    medium = add_sas(machine, rotational)
    Scsi(machine, supports=supports)

    told = machine.told(PURGE)

    assert (told["transport"], told["method"], told["class"]) == ("SAS", method, reaches)
    assert told["result"] == ("Succeeded" if reaches == PURGE else "Failed")
    assert b"tenant" not in medium.read_bytes()


def test_discard_counts_where_the_drive_then_reads_zeroes(machine: Machine) -> None:
    """It is quick, and Clear."""
    medium = machine.add("vda", queue__discard_max_bytes="1073741824")

    told = machine.told()

    assert is_zero(medium)
    assert (told["method"], told["class"]) == ("Discard", "Clear")


def test_a_drive_that_keeps_what_was_discarded_is_overwritten(machine: Machine) -> None:
    """The message says what was tried before."""
    medium = machine.add("vda", queue__discard_max_bytes="1", faults=Faults(keeps_discarded=True))

    told = machine.told()

    assert is_zero(medium)
    assert (told["result"], told["method"], told["samplesDiffer"]) == ("Succeeded", "Overwrite", 0)
    assert "Discard: 1 of 1 samples are not erased" in told["message"]


def test_a_lying_drive_is_caught_and_the_next_method_tried(machine: Machine) -> None:
    """It said success and kept the data: a marker written before was still there."""
    controller = Nvme(machine, sanitizes=3, formats=True, lies=True)
    controller.add("nvme0n1")

    told = machine.told(PURGE)

    assert (told["result"], told["method"], told["class"]) == ("Failed", "Overwrite", "Clear")
    assert is_zero(machine.medium("nvme0n1"))
    for tried in ("NVMeSanitizeCryptoErase", "NVMeSanitizeBlockErase", "NVMeFormatUserDataErase"):
        assert f"{tried}: 1 of 1 samples are not erased" in told["message"]


@pytest.mark.parametrize("drive", [Ata, Scsi])
def test_no_lie_of_any_family_is_believed(machine: Machine, drive: type[Ata | Scsi]) -> None:
    """The drive ends overwritten, and owes Purge."""
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
    """The sentence has the kernel's word for it."""
    machine.add("vda", size=6 * MIB, faults=Faults(dies_at=4 * MIB))

    told = machine.told()

    assert (told["result"], told["class"]) == ("Failed", "")
    assert "Input/output error" in told["message"]


def test_a_drive_with_bad_sectors_may_still_erase_itself(machine: Machine) -> None:
    """What cannot be written can lose its key."""
    controller = Nvme(machine, sanitizes=1)
    controller.add("nvme0n1", size=20 * MIB)
    machine.faults["nvme0n1"] = Faults(dies_at=19 * MIB)

    told = machine.told(PURGE)

    assert "Input/output error" in told["message"]
    assert told["result"] == "Failed"
    assert b"tenant" not in machine.medium("nvme0n1").read_bytes()


def test_what_cannot_be_read_back_is_not_proven(machine: Machine) -> None:
    """A drive that takes writes and answers no reads has failed."""
    machine.add("vda", faults=Faults(unreadable=True))

    assert machine.told()["result"] in ("Failed", "ReadOnly")


@pytest.mark.parametrize(
    ("faults", "result", "word"),
    [
        (Faults(protected=True), "ReadOnly", "takes no writes"),
        (Faults(swallows=True), "ReadOnly", "does not keep"),
        (Faults(opal=True), "Locked", "PSID"),
        (Faults(busy=1000), "Failed", "in use"),
    ],
)
def test_what_cannot_be_touched_is_told(machine: Machine, faults: Faults, result: str, word: str) -> None:
    """Each with a result and a sentence of its own; no class was reached."""
    machine.add("vda", faults=faults)

    told = machine.told()

    assert (told["result"], told["class"], told["endedAt"] is None) == (result, "", False)
    assert word in told["message"]


def test_a_drive_that_is_busy_for_a_moment_is_waited_for(machine: Machine) -> None:
    """udev looks at every drive that was closed after writing."""
    machine.add("vda", faults=Faults(busy=5))

    assert machine.told()["result"] == "Succeeded"


def test_a_write_protected_drive_is_read_only(machine: Machine) -> None:
    """The kernel's word stands when the protection cannot be taken away."""
    medium = machine.add("sda", ro="1\n")

    assert machine.told()["result"] == "ReadOnly"
    assert b"tenant" in medium.read_bytes()


def test_a_boot_partition_of_an_emmc_is_made_writable(machine: Machine) -> None:
    """The kernel protects it until somebody asks."""
    medium = machine.add("mmcblk0boot0", force_ro="1\n")

    told = machine.told()

    assert machine.host.text("/sys/block/mmcblk0boot0/force_ro") == "0"
    assert (told["result"], told["transport"]) == ("Succeeded", "MMC")
    assert is_zero(medium)


def test_a_drive_locked_by_a_strange_password_is_locked(machine: Machine) -> None:
    """Nothing is written; our own password was tried once."""
    medium = machine.add("sda", transport="ATA")
    Ata(machine, security=0x27, password="theirs")

    told = machine.told()

    assert told["result"] == "Locked"
    assert "password" in told["message"]
    assert b"tenant" in medium.read_bytes()


def test_a_drive_that_an_interrupted_run_locked_is_unlocked(machine: Machine) -> None:
    """Power was lost within SECURITY ERASE UNIT: the password is ours."""
    medium = machine.add("sda", transport="ATA", queue__rotational="1")
    drive = Ata(machine, security=0x27, password="metalprobe")

    told = machine.told(PURGE)

    assert (told["result"], told["method"]) == ("Succeeded", "ATASecurityEraseEnhanced")
    assert drive.security == 0x21
    assert b"tenant" not in medium.read_bytes()


def test_a_failed_security_erase_leaves_no_password(machine: Machine) -> None:
    """Otherwise the drive would be locked at the next power-on."""
    machine.add("sda", transport="ATA")
    drive = Ata(machine, security=0x01, erase_fails=True)

    told = machine.told()

    assert drive.security == 0x01
    assert (told["method"], told["result"]) == ("Overwrite", "Succeeded")
    assert "ATASecurityErase: hdparm ended with exit code 5" in told["message"]


@pytest.mark.parametrize("abilities", [{"security": 0x29}, {"sanitize": 1 << 15, "sanitize_frozen": True}])
def test_a_frozen_drive_owes_purge_as_locked_and_can_be_cleared(machine: Machine, abilities: dict[str, Any]) -> None:
    """Who froze it is named: firmware settings can change that."""
    machine.add("sda", transport="ATA", queue__rotational="1")
    Ata(machine, **abilities)

    told = machine.told(PURGE)

    assert (told["result"], told["class"], told["method"]) == ("Locked", "Clear", "Overwrite")
    assert "firmware has frozen" in told["message"]
    assert machine.told(CLEAR)["result"] == "Succeeded"


def test_a_host_protected_area_is_shown_and_erased(machine: Machine) -> None:
    """The drive is larger afterwards, and all of it is overwritten."""
    medium = machine.add("sda", size=MIB, transport="ATA")
    Ata(machine, sectors=(2048, 4096))

    told = machine.told()

    assert told["size"] == medium.stat().st_size == 2 * MIB
    assert told["result"] == "Succeeded"
    assert is_zero(medium)


@pytest.mark.parametrize("abilities", [{"sectors": (2048, 4096), "keeps_hidden": True}, {"real_sectors": 4096}])
def test_a_hidden_area_that_stays_is_no_purge(machine: Machine, abilities: dict[str, Any]) -> None:
    """The message has its size; Clear succeeds and mentions it."""
    machine.add("sda", transport="ATA", queue__rotational="1")
    Ata(machine, sanitize=7 << 13, **abilities)

    purged, cleared = machine.told(PURGE), machine.told(CLEAR)

    assert (purged["result"], cleared["result"]) == ("Failed", "Succeeded")
    assert "hides 2048 sectors" in purged["message"]
    assert "hides 2048 sectors" in cleared["message"]


def test_a_namespace_that_is_not_attached_is_reached_by_sanitize_alone(machine: Machine) -> None:
    """Whoever attaches it next would find what it holds: no policy lets that pass."""
    controller = Nvme(machine, formats=True, allocated=(1, 7))
    controller.add("nvme0n1")

    formatted = machine.told(CLEAR)
    controller.sanitizes = 1
    sanitized = machine.told(CLEAR)

    assert (formatted["result"], sanitized["result"]) == ("Failed", "Succeeded")
    assert "not attached, with data that nobody sees: 7" in formatted["message"]


def test_a_failed_sanitize_is_left_behind(machine: Machine) -> None:
    """The controller leaves its failure mode, and the next method does."""
    controller = Nvme(machine, sanitizes=1, formats=True, fails=True)
    controller.add("nvme0n1")

    told = machine.told(PURGE)

    assert ("nvme", "sanitize", "/dev/nvme0", "--sanact=1") in machine.commands
    assert (told["result"], told["method"]) == ("Succeeded", "NVMeFormatUserDataErase")
    assert "NVMeSanitizeCryptoErase: the drive says that the operation failed" in told["message"]


def test_a_method_that_never_ends_is_left_at_its_deadline(machine: Machine) -> None:
    """Thrice the drive's own estimate and some minutes: then the next method has its turn."""
    controller = Nvme(machine, sanitizes=1, formats=True, never_ends=True)
    controller.add("nvme0n1")

    told = machine.told(PURGE)

    assert "NVMeSanitizeCryptoErase: did not end in 606 s" in told["message"]
    assert told["result"] == "Succeeded"


def test_a_scsi_operation_that_fails_is_left_behind(machine: Machine) -> None:
    """The drive leaves its failure mode before it is overwritten."""
    medium = add_sas(machine)
    Scsi(machine, supports=(2,), fails=True)

    told = machine.told()

    assert ("sg_sanitize", "--quick", "--fail", "/dev/sda") in machine.commands
    assert (told["method"], told["result"]) == ("Overwrite", "Succeeded")
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
    """A lost key leaves noise: where it could be taken for a partition table there are zeroes."""
    controller = Nvme(machine, sanitizes=1)
    controller.add("nvme0n1", size=40 * MIB)

    machine.told(PURGE)

    content = machine.medium("nvme0n1").read_bytes()
    assert not any(content[: 16 * MIB])
    assert any(content[16 * MIB : 24 * MIB])
    assert not any(content[24 * MIB :])


def test_a_second_path_that_shows_other_data_is_no_second_path(machine: Machine) -> None:
    """Two drives of one name and number: what only looked like a twin is not taken for erased."""
    for name in ("sda", "sdb"):
        machine.add(name, wwid="naa.5000c500a1b2c3d4", device__serial="S1")

    (told,) = machine.erase().wire(done=True)["drives"]

    assert told["result"] == "Failed"
    assert "/dev/sdb has the names of /dev/sda and leads to another drive" in told["message"]
