"""Selectors: both notations mean the same, and refuse nonsense with a sentence."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metal.kube.meta.selector_syntax import parse
from metal.kube.meta.selectors import Operator, Requirement, Selector, from_object

LABELS = {"app": "web", "tier": "a", "example.com/cores": "16", "empty": ""}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        (" app = web , tier in ( a , b ) ", True),
        ("app=db", False),
        ("app!=db", True),
        ("app!=web", False),
        ("absent!=x", True),
        ("tier in (a,b)", True),
        ("tier notin (a,b)", False),
        ("absent notin (a)", True),
        ("absent in (a)", False),
        ("app", True),
        ("!app", False),
        ("!absent", True),
        ("absent", False),
        ("example.com/cores>8", True),
        ("example.com/cores<8", False),
        ("app>8", False),
        ("empty=", True),
        ("app=web,tier=b", False),
        ("in=x", False),
        ("inner=x,app", False),
    ],
)
def test_kubectl_syntax(text: str, matches: bool) -> None:
    """All operators of `kubectl -l`, alone and together."""
    assert parse(text).matches(LABELS) is matches


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a b", "found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a=b,", "found '', expected: identifier after ','"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a in b", r"found 'b' expected: '\('"),
        ("a in (b", r"found '', expected: ',' or '\)'"),
        ("=b", "found '=', expected: !, identifier, or 'end of string'"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("-a=b", 'Invalid value: "-a": name part must consist of alphanumeric characters'),
        ("UPPER.com/x", 'Invalid value: "UPPER.com/x": prefix part a lowercase RFC 1123 subdomain must consist of'),
        ("a/b/c=d", 'Invalid value: "a/b/c": prefix part a lowercase RFC 1123 subdomain must consist of'),
        ("a=ö", r'values\[0\]\[a\]: Invalid value: "ö": a valid label must be an empty string or consist of'),
        (f"a={'x' * 64}", r"values\[0\]\[a\]: .*: must be no more than 63 bytes"),
        ("a>b", r'values\[0\]: Invalid value: "b": .* the value must be an integer'),
        ("a>9223372036854775808", r"values\[0\]: .* the value must be an integer"),
    ],
)
def test_nonsense_is_refused_with_a_sentence(text: str, problem: str) -> None:
    """The message says what is wrong."""
    with pytest.raises(ValueError, match=problem):
        parse(text)


def test_an_object_selector_needs_all_its_parts() -> None:
    """matchLabels and matchExpressions are combined with "and"."""
    selector = {
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["a", "b"]},
            {"key": "absent", "operator": "DoesNotExist"},
        ],
    }

    assert from_object(selector).matches(LABELS)
    assert not from_object(selector).matches({**LABELS, "absent": ""})
    assert not from_object(selector).matches({**LABELS, "app": "db"})


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ({"key": "a", "operator": "Is"}, r"matchExpressions\[0\].operator is 'Is'"),
        ({"key": "a", "operator": "In"}, r"matchExpressions\[0\]: In needs at least one value"),
        ({"key": "a", "operator": "Exists", "values": ["x"]}, "takes no values"),
        ({"operator": "Exists"}, "not a label key"),
        ({"key": "a", "operator": "In", "values": [1]}, "not a label value"),
    ],
)
def test_a_broken_expression_names_its_field(expression: dict[str, Any], problem: str) -> None:
    """Users see which expression to repair."""
    with pytest.raises(ValueError, match=problem):
        from_object({"matchExpressions": [expression]})


def test_an_empty_selector_matches_everything() -> None:
    """{} selects all, as in Kubernetes."""
    assert from_object({}).matches({})


NAMES = st.from_regex(r"[a-z]([a-z0-9.-]{0,4}[a-z0-9])?", fullmatch=True)
VALUES = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
REQUIREMENTS = (
    st.builds(Requirement, NAMES, st.sampled_from([Operator.IN, Operator.NOT_IN]), VALUES)
    | st.builds(Requirement, NAMES, st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST]))
    | st.builds(
        Requirement,
        NAMES,
        st.sampled_from([Operator.GREATER, Operator.LESS]),
        st.integers(0, 99).map(lambda n: (str(n),)),
    )
)


@given(st.lists(REQUIREMENTS, max_size=4).map(lambda requirements: Selector(tuple(requirements))))
@settings(max_examples=100)
def test_a_selector_written_out_reads_back(selector: Selector) -> None:
    """str() and parse() are inverse."""
    assert parse(str(selector)) == selector


@given(st.text(max_size=30))
@settings(max_examples=100)
def test_any_text_is_read_or_refused(text: str) -> None:
    """No input raises anything but ValueError."""
    with suppress(ValueError):
        assert parse(text).matches(LABELS) in {True, False}
