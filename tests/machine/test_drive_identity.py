"""Drives are recognized in every spelling of kernel and BMC, and never by a value that identifies nothing."""

from dataclasses import dataclass

import pytest

from metal.api.sanitization import KnownDrive
from metal.machine import drive_identity
from metal.machine.drive_identity import keys, same, serial, with_unique_serial, wwn
from metal.machine.placeholders import plain


@dataclass(frozen=True)
class Disk:
    serial_number: str = ""
    wwn: str = ""
    model: str = ""


@pytest.mark.parametrize(
    "text",
    ["naa.5002538E40B3F8A1", "0x5002538e40b3f8a1", "50:02:53:8e:40:b3:f8:a1", "wwn-0x5002538e40b3f8a1",
     "5002538E-40B3-F8A1", " 5002538e40b3f8a1 ", "eui.5002538e40b3f8a1", "scsi-35002538e40b3f8a1"],
)  # fmt: skip
def test_spellings_of_a_world_wide_name_are_one(text: str) -> None:
    """Prefixes, case, blanks and separators do not matter."""
    assert wwn(text) == "5002538e40b3f8a1"


@pytest.mark.parametrize("text", ["eui.000000000000001000080d03001b2c3d", "nguid.00000000-00000010-00080d03-001b2c3d"])
def test_an_nguid_is_a_world_wide_name(text: str) -> None:
    """NVMe namespaces have 128 bits, which Linux prints after `eui.`."""
    assert wwn(text) == "000000000000001000080d03001b2c3d"


@pytest.mark.parametrize(
    "text",
    ["", "0000000000000000", "ffffffffffffffff", "naa.0", "t10.ATA     QEMU HARDDISK   QM00001", "none",
     "nvme.1b36-44454d4f-51454d55204e564d65-00000001", "0x5002538e40b3f8"],
)  # fmt: skip
def test_what_is_no_world_wide_name_identifies_nothing(text: str) -> None:
    """Nor does a name that the kernel made of model and serial number."""
    assert wwn(text) == ""


@pytest.mark.parametrize(
    "text",
    ["", "   ", "0000000000", "N/A", "Unknown", "To Be Filled By O.E.M.", "QM00001", "QM00003", "Default string",
     "drive-scsi0-0-0", "123456789", "S1", "0123456789", "VB00000000-00000000", "System Serial Number"],
)  # fmt: skip
def test_placeholder_serial_numbers_identify_nothing(text: str) -> None:
    """Firmware and emulators give them to drives of many machines."""
    assert serial(text) == ""
    assert keys(Disk(text)) == ()
    assert not same(Disk(text), Disk(text))


def test_blanks_and_case_of_a_serial_number_do_not_matter() -> None:
    """NVMe pads it to 20 characters, and some BMCs write it in upper case."""
    assert same(Disk("s4ynne0n801309      "), Disk("S4YNNE0N801309"))


@pytest.mark.parametrize(
    ("one", "other", "are_one"),
    [
        ("SAMSUNG MZ7LH480", "MZ7LH480HAHQ0D3", True), ("", "KXG60ZNV256G", True),
        ("INTEL SSDSC2KB48", "SSDSC2KB480G8", True), ("KXG60ZNV256G TOSHIBA", "SAMSUNG MZ7LH480", False),
        ("ST4000NM0035", "WDC WD4003FRYZ-01F0DB0", False), ("Virtual Disk", "SAMSUNG MZ7LH480", True),
    ],
)  # fmt: skip
def test_one_serial_number_with_two_models_is_two_drives(one: str, other: str, are_one: bool) -> None:
    """A serial number is unique within a manufacturer; shortened models and common words do not contradict."""
    assert same(Disk("S4YNNE0N801309", model=one), Disk("S4YNNE0N801309", model=other)) is are_one


def test_a_world_wide_name_counts_unless_the_serial_numbers_contradict() -> None:
    """Some manufacturers gave a whole series of drives one name, and some BMCs shorten serial numbers."""
    name = "naa.5000c500a1b2c3d4"
    assert same(Disk("", name), Disk("ZC1A2B3C", name.upper()))
    assert same(Disk("ZC1A2B3C", name), Disk("ZC1A2B3C0000C8151234", name))
    assert not same(Disk("ZC1A2B3C", name), Disk("ZC1A2B3D", name))
    assert not same(Disk("ZC1A2B3C"), Disk("ZC1A2B3C0000C8151234"))


@pytest.mark.parametrize(
    ("one", "other"),
    [("WD-WCC4E5HJ1234", "DWW-CCE4H51J32 4"), ("WD-WCC4E5HJ123", "DWW-CCE4H51J32"), ("ZC1A2B3C", "CZA1B2C3"),
     ("  ZC1A2B3C", "CZA1B2C3  ")],
)  # fmt: skip
def test_a_serial_number_with_exchanged_bytes_is_that_of_the_drive_with_the_same_wwn(one: str, other: str) -> None:
    """ATA transfers it in 16-bit words, whose bytes some controllers report in the wrong order, padding included."""
    name = "naa.5000c500a1b2c3d4"
    assert same(Disk(one, name), Disk(other, name))
    assert same(Disk(other, name), Disk(one, name))
    assert not same(Disk(one), Disk(other))


def test_serial_numbers_that_differ_by_exchanged_bytes_are_two_drives() -> None:
    """Consecutive serial numbers may differ so: the erasure of one must not count for the other."""
    assert not same(Disk("0000000012", model="X1000"), Disk("0000000021", model="X1000"))


@pytest.mark.parametrize("text", ["  s4ynne0n801309", "S4YNNE0N801309\t", "S4YN NE0N 801309", "s4ynNE0N801309"])
def test_padding_case_and_blanks_do_not_make_another_drive(text: str) -> None:
    """As BMC and kernel report one drive."""
    assert same(Disk(text), Disk("S4YNNE0N801309"))
    assert keys(Disk(text)) == keys(Disk("S4YNNE0N801309"))


@pytest.mark.parametrize("listed", ["abc-0001", "CHEAP SSD 128G"])
def test_a_serial_number_that_a_site_lists_identifies_nothing(listed: str) -> None:
    """By serial number or by model; the world-wide name still does."""
    drive = KnownDrive(serial_number="ABC0001", wwn="naa.5000c500a1b2c3d4", model="Cheap SSD 128G")
    assert keys(with_unique_serial(drive, {plain(listed)})) == ("wwn:5000c500a1b2c3d4",)
    assert with_unique_serial(drive, {"other"}) is drive


def test_drives_that_are_the_same_share_a_key() -> None:
    """So an index over keys misses none of them."""
    kernel, bmc = Disk("S4YN NE0N801309", "eui.0025385b71b0f5d4"), Disk("S4YNNE0N801309", "00-25-38-5B-71-B0-F5-D4")
    assert keys(kernel) == keys(bmc) == ("serial:s4ynne0n801309", "wwn:0025385b71b0f5d4")
    assert drive_identity.find(kernel, (Disk("other-serial"), bmc)) is bmc


def test_the_union_of_reports_has_each_drive_once_with_its_first_report() -> None:
    """The known drives stay as they are; a drive that two other reports have is added once."""
    known, again, new = Disk("serial-1", model="first"), Disk("SERIAL-1"), Disk("serial-2")
    assert drive_identity.union((known,), (again, new), (Disk("SERIAL-2"), Disk("serial-3"))) == (
        known, new, Disk("serial-3"),
    )  # fmt: skip
