"""The methods of each family of drives, their hidden areas, and their failures."""

from typing import Any

import pytest

from metal.probe.erase.methods import CLEAR, PURGE
from tests.probe.erase.controllers import Ata, Nvme, Scsi, add_sas
from tests.probe.erase.machine import MIB, Machine, is_zero

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
    """Every namespace of the controller is erased, and Sanitize ran once for all of them."""
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
    """A method that is Purge on a disk is not always Purge on flash (SP 800-88r1, tables A-5 and A-8)."""
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


@pytest.mark.parametrize(("supports", "rotational", "method", "reaches"), SCSI)
def test_a_sas_drive_sanitizes_itself(
    machine: Machine, supports: tuple[int, ...], rotational: str, method: str, reaches: str
) -> None:
    """REPORT SUPPORTED OPERATION CODES lists what it supports."""
    medium = add_sas(machine, rotational)
    Scsi(machine, supports=supports)

    told = machine.told(PURGE)

    assert (told["transport"], told["method"], told["class"]) == ("SAS", method, reaches)
    assert told["result"] == ("Succeeded" if reaches == PURGE else "Failed")
    assert b"tenant" not in medium.read_bytes()


def test_a_drive_locked_by_a_strange_password_is_locked(machine: Machine) -> None:
    """Nothing is written; the probe's own password was tried once."""
    medium = machine.add("sda", transport="ATA")
    Ata(machine, security=0x27, password="theirs")

    told = machine.told()

    assert told["result"] == "Locked"
    assert "password" in told["message"]
    assert b"tenant" in medium.read_bytes()


def test_a_drive_that_an_interrupted_run_locked_is_unlocked(machine: Machine) -> None:
    """Power was lost during SECURITY ERASE UNIT: the password is the probe's."""
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
    """The message names the cause, which firmware settings can change."""
    machine.add("sda", transport="ATA", queue__rotational="1")
    Ata(machine, **abilities)

    told = machine.told(PURGE)

    assert (told["result"], told["class"], told["method"]) == ("Locked", "Clear", "Overwrite")
    assert "firmware has frozen" in told["message"]
    assert machine.told(CLEAR)["result"] == "Succeeded"


def test_a_host_protected_area_is_shown_and_erased(machine: Machine) -> None:
    """The drive is larger afterwards, and is overwritten completely."""
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


def test_an_area_that_the_kernel_has_not_taken_up_is_owed(machine: Machine) -> None:
    """It was exposed just now: the next boot would show its content."""
    machine.add("sda", transport="ATA")
    Ata(machine, sectors=(2048, 4096), kernel_is_blind=True)

    first = machine.told(CLEAR)

    assert first["result"] == "Failed"
    assert "does not see 1048576 bytes" in first["message"]


def test_a_namespace_that_is_not_attached_is_reached_by_sanitize_alone(machine: Machine) -> None:
    """Attaching it would expose its data: no policy accepts that."""
    controller = Nvme(machine, formats=True, allocated=(1, 7))
    controller.add("nvme0n1")

    formatted = machine.told(CLEAR)
    controller.sanitizes = 1
    sanitized = machine.told(CLEAR)

    assert (formatted["result"], sanitized["result"]) == ("Failed", "Succeeded")
    assert "unattached namespaces, which may hold data: 7" in formatted["message"]


def test_a_failed_sanitize_is_left_behind(machine: Machine) -> None:
    """The controller leaves its failure mode, and the next method succeeds."""
    controller = Nvme(machine, sanitizes=1, formats=True, fails=True)
    controller.add("nvme0n1")

    told = machine.told(PURGE)

    assert ("nvme", "sanitize", "/dev/nvme0", "--sanact=1") in machine.commands
    assert (told["result"], told["method"]) == ("Succeeded", "NVMeFormatUserDataErase")
    assert "NVMeSanitizeCryptoErase: the drive reports that the operation failed" in told["message"]


def test_a_method_that_never_ends_is_left_at_its_deadline(machine: Machine) -> None:
    """At three times the drive's own estimate and some minutes the next method is tried."""
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


@pytest.mark.parametrize(
    ("characteristics", "result"), [(0x20, "Succeeded"), (0x30, "Succeeded"), (0x10, "Failed"), (0x80, "Failed")]
)
def test_a_drive_that_answers_no_reads_after_its_erasure_has_to_say_so_before(
    machine: Machine, characteristics: int, result: str
) -> None:
    """WACEREQ of VPD page B1h; for any other drive an unreadable sector is not verified."""
    add_sas(machine)
    machine.host.write("/sys/block/sda/device/vpd_pgb1", bytes([0, 0xB1, 0, 60, 0, 1, 0, characteristics]))
    drive = Scsi(machine, supports=(3,))
    drive.unreadable_afterwards = True

    told = machine.told(PURGE)

    assert told["result"] == result
    assert (told["method"] == "SCSISanitizeCryptoErase") == (result == "Succeeded")


def test_an_nvme_question_without_an_answer_costs_no_method(machine: Machine) -> None:
    """Estimates and the list of namespaces are optional; Format needs neither."""
    controller = Nvme(machine, sanitizes=1, formats=True, allocated=(1,), refuses=("sanitize-log", "admin-passthru"))
    controller.add("nvme0n1")

    told = machine.told(PURGE)

    assert (told["result"], told["method"]) == ("Succeeded", "NVMeFormatUserDataErase")
    assert "NVMeSanitizeCryptoErase: nvme ended with exit code 5" in told["message"]
    assert "unattached namespaces cannot be listed" in told["message"]


def test_a_sanitize_status_without_an_answer_leaves_security_erase(machine: Machine) -> None:
    """The message has the tool's output."""
    machine.add("sda", transport="ATA", queue__rotational="1")
    Ata(machine, sanitize=7 << 13, security=0x21, refuses_status=True)

    told = machine.told(PURGE)

    assert (told["result"], told["method"]) == ("Succeeded", "ATASecurityEraseEnhanced")
    assert "Input/output error" in told["message"]
