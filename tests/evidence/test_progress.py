"""Progress and time left of an erasure, as `kubectl get servers -o wide` shows them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from metal.api.sanitization import DriveErasure, SanitizationEvidence, SanitizationEvidenceStatus
from metal.evidence.progress import progress
from tests.evidence.drives import erased

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def running(percent: int, *, minutes: float = 60, **more: Any) -> DriveErasure:
    """A drive whose erasure began this many minutes ago."""
    begun = NOW - timedelta(minutes=minutes)
    return erased("S2", **{"result": "Running", "percent": percent, "class_": "", "started_at": begun, **more})


def of(*drives: DriveErasure) -> tuple[int, str]:
    """Percent and time left."""
    found = progress(SanitizationEvidence(status=SanitizationEvidenceStatus(drives=drives, updated_at=NOW)))
    assert (found.time_left in found.message) is True
    return found.percent, found.time_left


@pytest.mark.parametrize(
    ("drive", "left"),
    [
        (running(25), "3h0m"),
        (running(50), "1h0m"),
        (running(99), "1m"),
        (running(25, seconds_left=90), "2m"),
        (running(0), ""),
        (running(0, seconds_left=7200), "2h0m"),
        (running(100, minutes=5), ""),
        (running(50, minutes=-5), ""),
        (running(50, started_at=None), ""),
    ],
)
def test_a_drive_says_how_long_it_takes_or_its_pace_does(drive: DriveErasure, left: str) -> None:
    """If neither is known, the time left is empty."""
    assert of(drive)[1] == left


def test_the_slowest_drive_counts() -> None:
    """Drives are erased in parallel; one with an unknown time leaves the time left empty."""
    slow, fast = running(25, size=3000), running(75, seconds_left=600)
    assert of(erased(), slow, fast) == ((1000 * 100 + 3000 * 25 + 1000 * 75) // 5000, "3h0m")
    assert of(slow, running(0))[1] == ""


def test_failed_drives_are_not_waited_for() -> None:
    """The time left is that of the drives that are still being erased."""
    assert of(erased(), erased("S3", result="Failed", percent=10)) == (55, "")
    assert progress(SanitizationEvidence()).message == "0 of 0 drives erased"
