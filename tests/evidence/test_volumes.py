"""A drive that only the BMC sees is either erased with its volume, or owed."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.api.sanitization import RAIDVolume, VolumeDrive
from metal.evidence.verdict import judge
from tests.evidence.drives import erased, known

TB = 1_000_000_000_000
WWN = "600508b1001c5a3c"


def member(serial: str, **more: Any) -> VolumeDrive:
    """A drive of a volume."""
    return VolumeDrive(serial_number=serial, **{"size": TB, "state": "Enabled", "health": "OK", **more})


def volume(*serials: str, **more: Any) -> RAIDVolume:
    """A RAID1 that spans its drives."""
    told = {"raid_type": "RAID1", "size": TB - (1 << 29), "wwn": WWN.upper(), "state": "Enabled", "health": "OK"}
    drives = tuple(member(serial) for serial in serials or ("P1", "P2"))
    return RAIDVolume(**{"name": "vd0", "drives": drives, **told, **more})


def seen(**more: Any) -> Any:
    """The volume as the system saw and overwrote it."""
    return erased("V1", **{"wwn": f"naa.{WWN}", "size": TB - (1 << 29), **more})


HIDDEN = [known(serial, name="", wwn="", size=0, slot=f"Bay {serial[-1]}") for serial in ("P1", "P2")]
BASELINE = [known("V1", wwn=f"naa.{WWN}", size=TB - (1 << 29)), *HIDDEN]


def test_drives_of_a_volume_that_was_overwritten_are_erased() -> None:
    """The evidence names the volume, its drives and the method; they stay drives of the server."""
    verdict = judge("Clear", BASELINE, [seen(class_="Purge")], volumes=[volume()])
    assert verdict.owed == ()
    assert verdict.remarks == (
        "drive serial P1, slot Bay 1 belongs to volume vd0 (RAID1: P1, P2) as sda, which was overwritten: Clear",
        "drive serial P2, slot Bay 2 belongs to volume vd0 (RAID1: P1, P2) as sda, which was overwritten: Clear",
    )
    assert verdict.reached == "Clear", "independent of what the volume reached"
    assert {drive.serial_number for drive in verdict.drives} == {"V1", "P1", "P2"}


def test_a_missing_drive_in_the_report_is_covered_as_well() -> None:
    """The task lists it, so the probe reports it as missing."""
    lost = erased("p1", name="", wwn="", size=0, result="Missing", samples_read=0, class_="")
    assert judge("Clear", BASELINE, [seen(), lost], volumes=[volume()]).owed == ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"state": "StandbyOffline"}, "the volume is StandbyOffline, OK"),
        ({"health": "Warning"}, "the volume is Enabled, Warning"),
        ({"health": ""}, "the volume is Enabled, unknown"),
        ({"wwn": ""}, "the report has no drive with its identifier"),
        ({"wwn": "600508b1001cffff"}, "the report has no drive with its identifier"),
        ({"size": TB // 2}, "leaves 500000000000 bytes of the drive free"),
        ({"size": 2 * TB}, "sda is smaller than the volume"),
        ({"raid_type": "RAID50"}, "the share of the drive that it uses is unknown"),
        ({"drives": (member("P1"), member("P2", health="Critical"))}, "the drive is Enabled, Critical"),
        ({"drives": (member("P1"), member("P2", state="UnavailableOffline"))}, "the drive is UnavailableOffline"),
        ({"drives": (member("P1"), member("P2", size=0))}, "the share of the drive that it uses is unknown"),
        ({"drives": (member("P1"), member("P2", size=2 * TB))}, "leaves 1000"),
    ],
)
def test_what_a_volume_does_not_prove_stays_owed(change: dict[str, Any], said: str) -> None:
    """The message has the drive, its slot, the volume and the reason."""
    verdict = judge("Clear", BASELINE, [seen()], volumes=[msgspec.structs.replace(volume(), **change)])
    (sentence,) = [text for text in verdict.owed if "P2, slot Bay 2" in text]
    assert sentence.startswith("drive serial P2, slot Bay 2 belongs to volume vd0 (")
    assert said in sentence


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"result": "Failed"}, "sda is not erased"),
        ({"samples_differ": 1}, "sda is not erased"),
        ({"samples_read": 0}, "sda is not erased"),
        ({"method": "Discard"}, "was erased by Discard, which may not reach the drives behind it"),
        ({"method": "SCSISanitizeCryptoErase"}, "which may not reach the drives behind it"),
    ],
)
def test_a_volume_that_was_not_overwritten_proves_nothing(change: dict[str, Any], said: str) -> None:
    """Only writing every block reaches the drives; other commands may end at the controller."""
    owed = judge("Clear", BASELINE, [seen(**change)], volumes=[volume()]).owed
    assert len([text for text in owed if "slot Bay" in text and said in text]) == 2


def test_a_spare_and_a_drive_in_no_volume_stay_owed() -> None:
    """A spare may contain data from before it became one."""
    spare = known("P3", name="", wwn="", slot="Bay 3")
    assert judge("Clear", [*BASELINE, spare], [seen()], volumes=[volume()]).owed == (
        "drive serial P3, slot Bay 3 was in the server and is missing",
    )


def test_a_drive_that_took_the_place_of_another_is_judged_with_its_volume() -> None:
    """It was present while the tenant was, and is known from then on."""
    swapped = volume("P1", "P9")
    verdict = judge("Clear", BASELINE, [seen()], volumes=[swapped])
    assert verdict.owed == ("drive serial P2, slot Bay 2 was in the server and is missing",)
    assert {drive.serial_number for drive in verdict.drives} == {"V1", "P1", "P9"}
    ill = msgspec.structs.replace(swapped, drives=(member("P1"), member("P9", health="Warning")))
    assert "drive serial P9 belongs to volume" in judge("Clear", BASELINE, [seen()], volumes=[ill]).owed[1]


def test_no_volume_reaches_purge() -> None:
    """Overwriting through a controller is Clear at most."""
    owed = judge("Purge", BASELINE, [seen(class_="Purge")], volumes=[volume()]).owed
    assert len([text for text in owed if "overwriting it reaches Clear where Purge is required" in text]) == 2


def test_two_volumes_on_the_same_drives_have_to_be_overwritten_both() -> None:
    """Together they must cover the drives."""
    first = volume(size=TB // 2)
    second = volume(name="vd1", size=TB // 2, wwn="600508b1001c0002")
    halves = [seen(size=TB // 2), erased("V2", name="sdb", wwn="naa.600508b1001c0002", size=TB // 2)]
    baseline = [known("V2", wwn="naa.600508b1001c0002"), *BASELINE]
    both = judge("Clear", baseline, halves, volumes=[first, second])
    assert both.owed == ()
    assert "vd0 (RAID1: P1, P2) as sda and vd1 (RAID1: P1, P2) as sdb" in both.remarks[0]
    one = judge("Clear", baseline, halves[:1], volumes=[first, second])
    assert len([text for text in one.owed if "the report has no drive with its identifier" in text]) == 2


LEVELS = {"RAID0": (4, 4), "RAID1": (2, 1), "RAID5": (4, 3), "RAID6": (4, 2), "RAID10": (4, 2), "None": (1, 1)}


@given(st.sampled_from(sorted(LEVELS)), st.integers(0, 4 << 30))
def test_a_volume_spans_its_drives_but_for_what_controllers_reserve(level: str, left: int) -> None:
    """2 GiB of each drive may be free, for every RAID level."""
    count, data = LEVELS[level]
    serials = [f"P{n}" for n in range(count)]
    size = (TB - left) * data
    told = volume(*serials, raid_type=level, size=size)
    baseline = [known(serial, name="", wwn="") for serial in serials]
    owed = judge("Clear", baseline, [seen(size=size)], volumes=[told]).owed
    assert (owed == ()) is (left <= 2 << 30)
