"""Bounds of a report."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.machineapi.registry.limits import Limits, Malformed, read

LIMITS = Limits()


def nested(levels: int) -> bytes:
    return b'{"a":' + b"[" * levels + b"]" * levels + b"}"


def test_an_ordinary_report_is_read() -> None:
    """Nothing is changed."""
    assert read(b'{"systemUUID": "x", "data": {"cpu": [1]}}', LIMITS) == {"systemUUID": "x", "data": {"cpu": [1]}}


@pytest.mark.behaviour("Registry and probe", "Depth, entries, texts and size of a report are limited.")
@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "JSON"), (b"{", "JSON"), (b"\xff", "JSON"), (b"[]", "object"), (b'"x"', "object"), (b"NaN", "JSON"),
        (nested(20), "deeper than 20"), (nested(100_000), "JSON"),
        (json.dumps({"a": [0] * 4097}).encode(), "4096 entries"),
        (json.dumps({str(n): 0 for n in range(4097)}).encode(), "4096 entries"),
        (json.dumps({"a": "x" * 65537}).encode(), "65536 characters"),
        (json.dumps({"x" * 65537: 1}).encode(), "65536 characters"),
        (json.dumps({"a": [[0] * 4000] * 60}).encode(), "200000 values"),
    ],
)  # fmt: skip
def test_what_is_too_much_is_refused(body: bytes, says: str) -> None:
    """Depth, entries, strings, and the total number of values."""
    with pytest.raises(Malformed, match=says):
        read(body, LIMITS)


def test_what_is_just_allowed_is_read() -> None:
    """The limits are inclusive."""
    read(nested(LIMITS.depth - 1), LIMITS)
    read(json.dumps({"a": [0] * 4096, "b": "x" * 65536}).encode(), LIMITS)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=4), JSON))
def test_what_is_within_the_limits_is_read_unchanged(value: dict[str, Any]) -> None:
    """Reading is decoding, without changes."""
    assert read(json.dumps(value).encode(), LIMITS) == value


@given(st.binary(max_size=60))
def test_no_bytes_break_the_reader(body: bytes) -> None:
    """Any input gives an object or a refusal."""
    with suppress(Malformed):
        assert isinstance(read(body, LIMITS), dict)
