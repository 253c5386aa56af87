"""Reading a machine's report of the erasure of its drives."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.evidence.report import InvalidReport, SanitizationReport, read

DRIVE = {
    "name": "nvme0n1", "serialNumber": "S1", "wwn": "eui.1", "model": "M", "transport": "NVMe", "size": 1000,
    "rotational": False, "slot": "3", "method": "NVMeSanitizeCryptoErase", "class": "Purge",
    "startedAt": "2026-01-01T00:00:00Z", "endedAt": None, "percent": 0, "secondsLeft": None, "samplesRead": 0,
    "samplesDiffer": 0, "result": "Running", "message": "",
}  # fmt: skip


def body(drives: Any = None, **more: Any) -> bytes:
    data = {"done": False, "startedAt": "x", "now": "y", "problems": [], "drives": [DRIVE], **more}
    return json.dumps(data if drives is None else {**data, "drives": drives}).encode()


def test_a_report_is_read_whole() -> None:
    """null means unknown; unknown members are omitted."""
    (drive,) = read(body(problems=["no SES"], more=1)).drives
    assert (drive.serial_number, drive.class_, drive.result, drive.ended_at) == ("S1", "Purge", "Running", None)
    assert drive.started_at is not None
    assert read(body(problems=["no SES"])).problems == ("no SES",)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"result": "Fine"}, r"drives\[0\].result must be one of Pending, Running"),
        ({"class": "Shred"}, r"drives\[0\].class must be Clear, Purge or empty"),
        ({"size": -1}, r"drives\[0\].size is out of range"),
        ({"size": 1 << 70}, "drives"),
        ({"size": "big"}, r"\$.drives\[0\].size"),
        ({"startedAt": "yesterday"}, r"\$.drives\[0\].startedAt"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(change: dict[str, Any], says: str) -> None:
    """No value is quoted, since the report is untrusted."""
    with pytest.raises(InvalidReport, match=says):
        read(body([{**DRIVE, **change}]))


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b'{"done":true}', b'{"done":1,"drives":[]}'])
def test_what_is_no_report_is_refused(raw: bytes) -> None:
    """done and drives are required."""
    with pytest.raises(InvalidReport):
        read(raw)


def test_more_drives_than_any_machine_has_are_refused() -> None:
    """The size of an API object is limited."""
    assert len(read(body([DRIVE] * 512)).drives) == 512
    with pytest.raises(InvalidReport, match="more than 512 drives"):
        read(body([DRIVE] * 513))


def test_texts_are_plain_and_short() -> None:
    """They are printed to terminals: no escape sequences or line breaks; times without a zone are dropped."""
    change = {"serialNumber": " S\x1b[31m1\n ", "message": "x" * 9999, "startedAt": "2026-01-01T00:00:00"}
    (drive,) = read(body([{**DRIVE, **change}])).drives
    assert (drive.serial_number, len(drive.message), drive.started_at) == ("S [31m1", 512, None)


@given(st.binary(max_size=80) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*sorted(DRIVE), "done", "drives"]),
                                                                inner, max_size=6), max_leaves=12,
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_nothing_breaks_the_reader(raw: bytes) -> None:
    """The result is a report or InvalidReport."""
    with suppress(InvalidReport):
        assert isinstance(read(raw), SanitizationReport)
