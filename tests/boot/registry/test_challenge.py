"""The Bearer challenge of a registry."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.boot.registry.challenge import Challenge, accepts_basic, parse_bearer


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (['Bearer realm="https://a/token",service="reg",scope="x"'], Challenge("https://a/token", "reg", "x")),
        (['bearer realm="https://a/token"'], Challenge("https://a/token")),
        (['Bearer service="a, b", realm="https://a/t?x=1"'], Challenge("https://a/t?x=1", "a, b")),
        (["Bearer realm=https://a/t"], Challenge("https://a/t")),
        (['Basic realm="x", Bearer realm="https://a/t",service="s"'], Challenge("https://a/t", "s")),
        (['Basic realm="Bearer realm=\\"https://evil/\\"", Bearer realm="https://a/t"'], Challenge("https://a/t")),
        (["Negotiate abc==, Bearer realm=https://a/t"], Challenge("https://a/t")),
        (['Basic realm="x"', 'Bearer realm="https://a/t"'], Challenge("https://a/t")),
        (['Bearer realm="/x"', 'Bearer realm="https://a/t"'], Challenge("https://a/t")),
        (['Basic realm="x"'], None),
        (["Bearer"], None),
        ([], None),
        (['Bearer realm="/relative"'], None),
        (['Bearer realm="file:///etc/passwd"'], None),
    ],
)
def test_only_a_bearer_challenge_with_a_usable_realm_counts(headers: list[str], expected: Challenge | None) -> None:
    """It is found among several challenges, in one header or in several."""
    assert parse_bearer(headers) == expected


@pytest.mark.parametrize(
    ("header", "basic"),
    [
        ('Basic realm="x"', True),
        ("basic", True),
        ('Bearer realm="https://a/t", Basic realm="x"', True),
        ('Bearer realm="Basic "', False),
        ("", False),
    ],
)
def test_basic_is_found_among_several_challenges(header: str, basic: bool) -> None:
    """A quoted text is no challenge."""
    assert accepts_basic([header]) is basic


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("", "repository:team/os:pull"),
        ("repository:team/os:pull", "repository:team/os:pull"),
        ("repository:team/os:pull,push", "repository:team/os:pull"),
        ("registry:catalog:* repository:project/team/os:pull", "repository:project/team/os:pull"),
        ("repository:other:push", "repository:team/os:pull"),
        ("repository:a&b:pull", "repository:team/os:pull"),
    ],
)
def test_a_token_is_requested_to_pull_and_nothing_more(scope: str, expected: str) -> None:
    """A registry may know the repository by another name, and asks for it in the challenge."""
    assert Challenge("https://a/t", scope=scope).scope_for("team/os") == expected


@given(st.text(max_size=60))
def test_no_header_breaks_the_parser(text: str) -> None:
    """A registry may send anything."""
    found = parse_bearer([f"Bearer {text}"])
    assert found is None or found.realm.startswith("http")
