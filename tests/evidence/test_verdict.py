"""The verdict over a report: nothing is owed only when every drive of the server is erased."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.api.sanitization import FirmwareReset, FirmwareResult, Result
from metal.evidence.verdict import is_weaker, judge, with_firmware
from tests.evidence.drives import erased, known


def test_what_was_there_and_is_erased_owes_nothing() -> None:
    """Serial numbers compare without blanks and case; slots come from the baseline."""
    verdict = judge("Clear", [known(" s1 ", slot="Bay 3")], [erased("S1")])
    assert (verdict.owed, verdict.remarks, verdict.reached) == ((), (), "Clear")
    assert [(drive.serial_number, drive.slot) for drive in verdict.drives] == [("S1", "Bay 3")]


@pytest.mark.parametrize("result", [result for result in FirmwareResult if result != FirmwareResult.SUCCEEDED])
@pytest.mark.parametrize("required", [True, False])
def test_firmware_that_was_not_put_back_is_owed_where_it_is_required(result: FirmwareResult, required: bool) -> None:
    """Otherwise it is a remark; what the drives owe stays owed."""
    drives = judge("Clear", [known("S1")], [])
    verdict = with_firmware(drives, [FirmwareReset(action="ClearTPM", required=required, result=result, message="so")])
    told = f"the TPM is not cleared ({result}): so"
    assert verdict.owed == (*drives.owed, *([told] if required else []))
    assert verdict.remarks == (() if required else (told,))


def test_firmware_that_was_put_back_owes_nothing() -> None:
    """This includes required firmware."""
    good = FirmwareReset(action="ResetBIOS", required=True, result="Succeeded")
    assert with_firmware(judge("Clear", [], []), [good]).owed == ()


def test_the_weakest_drive_counts() -> None:
    """One drive that reached only Clear makes the result Clear."""
    drives = [erased("S1", class_="Purge"), erased("S2", class_="Clear")]
    assert judge("Clear", [], drives).reached == "Clear"
    assert judge("Purge", [], []).reached == "Purge", "a server without drives holds nothing"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"result": "Failed", "message": "broken"}, "is not erased (Failed): broken"),
        ({"result": "Locked"}, "is not erased (Locked)"),
        ({"result": "ReadOnly"}, "is not erased (ReadOnly)"),
        ({"result": "Missing"}, "was in the server and is missing"),
        ({"result": "Running", "percent": 40}, "is not erased, at 40 %: the report ended before completion"),
        ({"result": "Pending", "percent": 0}, "is not erased, at 0 %"),
        ({"samples_differ": 3}, "3 of 8 samples are not"),
        ({"samples_read": 0}, "no sample was read back"),
        ({"class_": ""}, "reached nothing where Clear is required"),
    ],
)
def test_a_drive_that_is_not_erased_is_owed_by_name_serial_and_slot(change: dict[str, Any], said: str) -> None:
    """The message lets an administrator find the drive in the rack."""
    (sentence,) = judge("Clear", [known(slot="Bay 3")], [erased(**change)]).owed
    assert sentence.startswith("drive sda (serial S1, slot Bay 3) ")
    assert said in sentence


def test_a_drive_that_nobody_mentions_is_missing() -> None:
    """A known drive must be in the report."""
    assert judge("Clear", [known("S1"), known("S2", name="sdb")], [erased("S1")]).owed == (
        "drive sdb (serial S2) was in the server and is missing",
    )


def test_a_new_drive_is_remarked_and_known_from_then_on() -> None:
    """It was erased as well, so nothing is owed."""
    verdict = judge("Clear", [known("S1")], [erased("S1"), erased("S9", name="sdx")])
    assert verdict.owed == ()
    assert verdict.remarks == ("drive sdx (serial S9) was not present at discovery, and was erased as well",)
    assert {drive.serial_number for drive in verdict.drives} == {"S1", "S9"}


def test_a_new_drive_that_is_not_erased_is_owed() -> None:
    """It may contain data."""
    assert "S9" in judge("Clear", [], [erased("S9", result="Failed")]).owed[0]


def test_late_says_why_no_more_can_be_expected() -> None:
    """It is added only for drives that were not finished."""
    verdict = judge(
        "Clear", [], [erased("S1"), erased("S2", result="Running", percent=9)], late="2 h were not sufficient"
    )
    assert verdict.owed == ("drive sda (serial S2) is not erased, at 9 %: 2 h were not sufficient",)


def test_namespaces_of_one_drive_are_told_apart() -> None:
    """They share the drive's serial number; WWN or name distinguishes them."""
    baseline = [known("S1", name="nvme0n1", wwn="eui.1"), known("S1", name="nvme0n2", wwn="eui.2")]
    both = [erased("S1", name="nvme0n2", wwn="EUI.2"), erased("S1", name="nvme0n1", wwn="EUI.1")]
    assert judge("Clear", baseline, both).owed == ()
    assert len(judge("Clear", baseline, both[:1]).owed) == 1


def test_a_drive_that_is_called_missing_and_was_found_is_not_missing() -> None:
    """The machine compares serial numbers more strictly than the manager."""
    missing = erased("wd 1", name="", wwn="", size=0, result="Missing", samples_read=0, class_="")
    assert judge("Clear", [known("wd 1", name="", wwn="")], [erased("WD1"), missing]).owed == ()
    assert len(judge("Clear", [known("wd 1", name="", wwn="")], [missing]).owed) == 1


def test_two_paths_to_one_drive_are_one_drive() -> None:
    """Serial number and WWN are equal; a lost path is not a lost drive."""
    baseline = [known("S1", name="sda"), known("S1", name="sdb")]
    assert judge("Clear", baseline, [erased("S1", name="sdb")]).owed == ()
    assert len(judge("Clear", baseline, []).owed) == 1


def test_without_a_serial_number_the_wwn_counts_and_then_name_and_size() -> None:
    """A drive with another serial number is another drive, even if all else is equal."""
    assert judge("Clear", [known("", wwn="eui.1")], [erased("", wwn="EUI.1", name="sdz")]).owed == ()
    assert judge("Clear", [known("", wwn="")], [erased("", wwn="")]).owed == ()
    assert len(judge("Clear", [known("", wwn="")], [erased("", wwn="", size=1)]).owed) == 1
    assert len(judge("Clear", [known("S1", wwn="")], [erased("S2", wwn="")]).owed) == 1


def test_none_is_the_weakest_and_purge_the_strongest() -> None:
    """Claims are compared with the operator's policy by this order."""
    order = ["None", "Clear", "Purge"]
    assert [(a, b) for a in order for b in order if is_weaker(a, b)] == [
        ("None", "Clear"), ("None", "Purge"), ("Clear", "Purge"),
    ]  # fmt: skip


SERIALS = st.sampled_from(["A", "B", "C", "D"])
RESULTS = st.sampled_from([*Result, *[Result.SUCCEEDED] * 20])
REPORTED = st.builds(
    erased, SERIALS, result=RESULTS, class_=st.sampled_from(["", *["Clear", "Purge"] * 5]),
    samples_read=st.sampled_from([0, *[9] * 9]), samples_differ=st.sampled_from([*[0] * 9, 1]),
)  # fmt: skip


@given(st.lists(SERIALS.map(known)), st.lists(REPORTED, unique_by=lambda d: d.serial_number),
       st.sampled_from(["Clear", "Purge"]))  # fmt: skip
def test_nothing_is_owed_only_when_every_drive_is_proved_to_be_erased(
    baseline: list[Any], drives: list[Any], policy: str
) -> None:
    """For any report: each known and each found drive must be erased to the policy and read back."""
    verdict = judge(policy, baseline, drives)
    good = {
        d.serial_number for d in drives
        if d.result == "Succeeded" and d.samples_read and not d.samples_differ and not is_weaker(d.class_, policy)
    }  # fmt: skip
    clean = {d.serial_number for d in drives} <= good and {k.serial_number for k in baseline} <= good
    assert (verdict.owed == ()) is clean
    assert not clean or not is_weaker(verdict.reached, policy)
