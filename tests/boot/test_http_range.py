"""Byte ranges."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.boot.http_range import Unsatisfiable, parse_range


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-", (0, 10)), ("bytes=0-0", (0, 1)), ("bytes=3-5", (3, 3)), ("bytes=8-99", (8, 2)),
        ("bytes=-3", (7, 3)), ("bytes=-99", (0, 10)), ("Bytes=1-2", (1, 2)),
    ],
)  # fmt: skip
def test_single_ranges_are_understood(header: str, expected: tuple[int, int]) -> None:
    """First to last, first to end, and a suffix."""
    assert parse_range(header, 10) == expected


@pytest.mark.parametrize("header", ["", "bytes=-", "bytes=5-3", "bytes=0-1,3-4", "lines=1-2", "bytes=a-b", "bytes=1"])
def test_what_is_not_understood_gets_everything(header: str) -> None:
    """A server may ignore a Range that it does not support."""
    assert parse_range(header, 10) is None


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=10-12", "bytes=-0"])
def test_a_range_outside_is_unsatisfiable(header: str) -> None:
    """The status is 416."""
    with pytest.raises(Unsatisfiable):
        parse_range(header, 10)


@given(st.binary(min_size=1, max_size=50), st.integers(0, 60), st.integers(0, 60))
def test_a_range_never_leaves_the_content(content: bytes, first: int, last: int) -> None:
    """Offset and length describe the result of slicing."""
    try:
        part = parse_range(f"bytes={first}-{last}", len(content))
    except Unsatisfiable:
        assert first >= len(content)
        return
    if part is not None:
        assert content[part[0] : part[0] + part[1]] == content[first : last + 1]
        assert part[1] > 0
