"""The Bearer challenge of a registry."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.boot.auth_challenge import Challenge, parse_bearer


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ('Bearer realm="https://a/token",service="reg",scope="x"', Challenge("https://a/token", "reg")),
        ('bearer realm="https://a/token"', Challenge("https://a/token")),
        ('Bearer service="a, b", realm="https://a/t?x=1"', Challenge("https://a/t?x=1", "a, b")),
        ("Bearer realm=https://a/t", Challenge("https://a/t")),
        ('Basic realm="x"', None),
        ("Bearer", None),
        ("", None),
        ('Bearer realm="/relative"', None),
        ('Bearer realm="file:///etc/passwd"', None),
    ],
)
def test_only_a_bearer_challenge_with_a_usable_realm_counts(header: str, expected: Challenge | None) -> None:
    """Any other header means that anonymous access is not available."""
    assert parse_bearer(header) == expected


@given(st.text(max_size=60))
def test_no_header_breaks_the_parser(text: str) -> None:
    """A registry may send anything."""
    found = parse_bearer(f"Bearer {text}")
    assert found is None or found.realm.startswith("http")
