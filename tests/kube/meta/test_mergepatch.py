"""Merge patches: the examples of RFC 7396 and the round trip."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metal.kube.meta.mergepatch import apply, diff

RFC_APPENDIX_A = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "result"), RFC_APPENDIX_A)
def test_the_examples_of_the_rfc(target: Any, patch: Any, result: Any) -> None:
    """Every row of RFC 7396 appendix A."""
    assert apply(target, patch) == result


def test_a_diff_is_as_small_as_can_be() -> None:
    """Equal members are left out, removed ones are null, lists are replaced whole."""
    old = {"same": 1, "gone": 2, "list": [1, 2], "deep": {"same": 1, "changed": 1}}
    new = {"same": 1, "list": [1], "deep": {"same": 1, "changed": 2}, "new": {"x": 1}}

    assert diff(old, new) == {"gone": None, "list": [1], "deep": {"changed": 2}, "new": {"x": 1}}


def test_true_is_not_one() -> None:
    """JSON tells booleans from numbers, also inside lists."""
    assert diff({"a": 1, "b": [0]}, {"a": True, "b": [False]}) == {"a": True, "b": [False]}


SCALARS = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "x"])
KEYS = st.sampled_from("abc")
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))
DOCUMENTS = st.dictionaries(KEYS, JSON, max_size=3)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(member) for key, member in value.items() if member is not None}
    return value


@given(DOCUMENTS, DOCUMENTS)
@settings(max_examples=100)
def test_applying_the_diff_gives_the_new_document(old: dict[str, Any], new: dict[str, Any]) -> None:
    """apply(old, diff(old, new)) is new, but for nulls, which a merge patch cannot set; equal means no patch."""
    assert without_nulls(apply(old, diff(old, new))) == without_nulls(new)
    assert diff(old, old) == {}


@given(DOCUMENTS, DOCUMENTS)
@settings(max_examples=100)
def test_applying_changes_neither_argument(old: dict[str, Any], patch: dict[str, Any]) -> None:
    """Callers may keep what they pass in."""
    before = repr((old, patch))

    apply(old, patch)

    assert repr((old, patch)) == before
