"""find and findAll of CEL: the same matches as a backtracking engine, in linear time."""

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metal.apiserver.cel import pattern_syntax, search
from metal.apiserver.cel.search import PatternError, SearchTooLong, find, find_all

PATTERNS = [
    "a", "a|ab", "ab|a", "(a|ab)(c|bcd)", "a*", "a+?", "a*?b", "a{2}", "a{2,}", "a{1,3}?b", "(ab)+", "^a", "a$", r"\ba",
    r"a\B", "[^ab]", "[a-c]+", r"[\d.]+", r"\w+", r"\s", ".", "(?s).+", "(?i)AB", "(?i:a)b", "x{", "x{,2}",
    r"\x61\x{62}", "(?m)^a$",
    "[]a]", "[^]]", "[a-]", "(?P<n>a)(b)?", "a||b", "", "()", r"\.", r"a\|b", "(a*)*", "(a|b)*?c",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
@settings(max_examples=25)
@given(text=st.text("ab cdAB.1\n|x{,2]", max_size=12))
def test_the_match_is_the_one_that_re_finds(pattern: str, text: str) -> None:
    """Leftmost, by the priority of the alternatives, greedy or lazy."""
    python = pattern.replace("$", r"\Z") if "(?m)" not in pattern else pattern
    python = python.replace(r"\x{62}", r"\x62").replace("x{,2}", r"x\{,2\}")
    python = python if pattern != "(?m)^a$" else "(?m)^a$"
    match = re.search(python, text, re.ASCII)
    assert find(text, pattern) == (match[0] if match else "")


@pytest.mark.parametrize("pattern", [p for p in PATTERNS if p not in ("(?m)^a$", "a*", "(a*)*", "a||b", "", "()")])
@settings(max_examples=25)
@given(text=st.text("ab cd.1\n", max_size=12))
def test_all_matches_are_those_that_re_finds(pattern: str, text: str) -> None:
    """From left to right, without overlap. Empty matches follow Go's rule, which differs from Python's."""
    python = pattern.replace("$", r"\Z").replace(r"\x{62}", r"\x62").replace("x{,2}", r"x\{,2\}")
    assert find_all(text, pattern) == [match[0] for match in re.finditer(python, text, re.ASCII)]


def test_empty_matches_do_not_follow_a_match() -> None:
    """As in Go: `a*` in "baac" has the empty match before b, aa, and the one at the end."""
    assert find_all("baac", "a*") == ["", "aa", ""]
    assert find_all("baac", "a*", 1) == [""]
    assert find_all("baac", "a", 0) == []


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*$", "(a|aa)+b", "(.*)*x"])
def test_cost_grows_with_the_length_of_the_text(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each further character costs the same number of steps, where a backtracking engine doubles them."""
    costs = []
    for length in (22, 24, 26, 28):
        used: list[int] = []
        monkeypatch.setattr(search._Search, "_spend", lambda _, used=used: used.append(1))
        find("a" * length + "!", pattern)
        costs.append(len(used))
    steps = [more - less for less, more in pairwise(costs)]
    assert max(steps) <= 2 * max(1, min(steps)) + 20


def test_a_search_has_a_budget() -> None:
    """A long text fails the rule instead of stopping the server."""
    with pytest.raises(SearchTooLong, match="cost budget"):
        find("a" * 3_000_000, "(a+)+$")


@pytest.mark.parametrize(
    "pattern",
    ["(", ")", "a**", "*a", "[a", "[b-a]", "(?=a)", r"\1", r"\pL", "a{1001}", "a{3,2}", "((a{100}){100}){100}",
     "(" * 60 + ")" * 60, "[[:nope:]]", r"\x{110000}", "\\", "(?<n>a"],
)  # fmt: skip
def test_what_re2_refuses_is_refused(pattern: str) -> None:
    """Malformed and oversized patterns, lookaround and backreferences."""
    with pytest.raises(PatternError):
        find("a", pattern)


def test_classes_of_posix() -> None:
    """Named classes, alone and inverted."""
    assert find("ab12", "[[:digit:]]+") == "12"
    assert find("12ab", "[[:^digit:]]+") == "ab"
    assert find("12aB_", r"[^\d]+") == "aB_"
    assert find("x-y", r"[\w-]+") == "x-y"
    assert set(pattern_syntax._NAMED) >= {"alpha", "word", "xdigit"}
