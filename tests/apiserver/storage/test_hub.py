"""What the logs behind watches keep."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.apiserver.machinery.records import Change, Event, ObjectKey, Record, ResourceKey
from metal.apiserver.machinery.status import StatusError
from metal.apiserver.storage.hub import FEWEST, STEP, Log


def _event(version: int, size: int) -> Event:
    key = ObjectKey(ResourceKey("", "things"), "", f"t{version}")
    record = Record(key, version, f"u{version}", "v1", {}, (), (), False, b"x" * size)
    return Event(Change.ADDED, record, None, version)


def test_small_objects_are_kept_by_number() -> None:
    """Their bytes do not matter."""
    log = Log(limit=1000, floor=0, max_bytes=1_000_000)
    for version in range(1, 1001):
        log.publish(_event(version, 10))
    assert log.floor == 0
    assert len(log.read(0)) == STEP  # a bounded number at a time


def test_large_objects_are_kept_by_bytes() -> None:
    """A thousand Secrets of 60 KB that were written three times do not stay in memory three times."""
    log = Log(limit=5000, floor=0, max_bytes=20_000_000)
    for version in range(1, 3001):
        log.publish(_event(version, 60_000))
    assert log.floor >= 3000 - FEWEST - FEWEST // 4
    assert log.open(log.floor).take()[0].resource_version == log.floor + 1


def test_some_events_are_kept_however_large_they_are() -> None:
    """Events of large objects are kept too, so that a watch of them is possible."""
    log = Log(limit=5000, floor=0, max_bytes=1)
    for version in range(1, 2001):
        log.publish(_event(version, 100))
    assert 2000 - log.floor >= FEWEST


def test_a_watcher_that_was_passed_is_told_so() -> None:
    """It lists again, as if the log were too short in number."""
    log = Log(limit=5000, floor=0, max_bytes=1)
    cursor = log.open(0)
    for version in range(1, 2001):
        log.publish(_event(version, 100))
    with pytest.raises(StatusError, match="slower than the changes"):
        cursor.take()
    with pytest.raises(StatusError, match="too old resource version"):
        log.open(1)


@given(st.lists(st.integers(0, 5000), max_size=60), st.integers(1, 40), st.integers(1, 20_000))
def test_a_watcher_misses_nothing_above_the_floor(sizes: list[int], limit: int, room: int) -> None:
    """After events were dropped by number or by size, every event after the floor is present, in order."""
    log = Log(limit=limit, floor=0, max_bytes=room)
    for version, size in enumerate(sizes, start=1):
        log.publish(_event(version, size))
    assert [e.resource_version for e in log.open(log.floor).take()] == list(range(log.floor + 1, len(sizes) + 1))
