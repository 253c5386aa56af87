"""Sets of fields and what changed between objects."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.apiserver.patching.field_diff import compare
from metal.apiserver.patching.field_set import difference, fields_of, intersection, merge_roots, paths
from metal.apiserver.schema.schema import Compiled
from tests.apiserver.schema.schemas import THING, obj

ROOT = Compiled(THING).root

Set = dict[str, Any]


def tree(depth: int) -> st.SearchStrategy[Set]:
    """Well-formed sets below the root: a leaf is empty, an inner place may belong to the set itself."""
    if depth == 0:
        return st.just({})
    inner = st.dictionaries(
        st.sampled_from(["f:a", "f:b", 'k:{"n":"x"}', 'v:"s"']), tree(depth - 1), min_size=1, max_size=3
    )
    return st.just({}) | st.tuples(inner, st.booleans()).map(lambda pair: {".": {}, **pair[0]} if pair[1] else pair[0])


sets = st.dictionaries(st.sampled_from(["f:a", "f:b", "f:c"]), tree(3), max_size=3)


def members(fields: Set) -> set[str]:
    """The set as paths."""
    return set(paths(fields))


@given(sets, sets)
def test_sets_behave_like_sets_of_paths(one: Set, other: Set) -> None:
    """Union, difference and intersection are those of the paths."""
    assert members(merge_roots(one, other)) == members(one) | members(other)
    if one and other:
        assert members(difference(one, other) or {}) == members(one) - members(other)
        assert members(intersection(one, other) or {}) == members(one) & members(other)


@given(sets)
def test_operations_keep_sets_well_formed(one: Set) -> None:
    """Taking a set from itself leaves nothing; joining it with itself changes nothing."""
    assert merge_roots(one, one) == one
    if one:
        assert difference(one, one) is None
        assert intersection(one, one) == one


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"text": "x"}, {"f:text": {}}),
        ({"nested": {"text": "x"}}, {"f:nested": {".": {}, "f:text": {}}}),
        ({"nested": {}}, {"f:nested": {}}),
        ({"list": ["a"]}, {"f:list": {}}),
        ({"atomic": {"a": "1"}}, {"f:atomic": {}}),
        ({"tags": ["b", "a"]}, {"f:tags": {".": {}, 'v:"b"': {}, 'v:"a"': {}}}),
        (
            {"ports": [{"protocol": "UDP", "port": 5, "name": "x"}]},
            {"f:ports": {
                ".": {},
                'k:{"port":5,"protocol":"UDP"}': {".": {}, "f:protocol": {}, "f:port": {}, "f:name": {}},
            }},
        ),
        ({"ports": [{"port": 5}]}, {"f:ports": {".": {}, 'k:{"port":5,"protocol":"TCP"}': {".": {}, "f:port": {}}}}),
        ({"open": {"any": {"l": [1]}}}, {"f:open": {".": {}, "f:any": {".": {}, "f:l": {}}}}),
        ({"map": {"k.x/y": "v"}}, {"f:map": {".": {}, "f:k.x/y": {}}}),
        ({"ports": [{"name": "keyless"}]}, {"f:ports": {}}),
    ],
)  # fmt: skip
def test_the_schema_says_what_is_owned_one_by_one(spec: Set, fields: Set) -> None:
    """Maps, sets and keyed lists fall apart; atomic maps, plain lists and lists with broken keys do not."""
    assert fields_of(ROOT.fields["spec"], spec) == {".": {}, **fields}


def test_an_applied_configuration_owns_its_leaves_only() -> None:
    """Maps and lists that an applier merely passes through are not its own; list items are."""
    spec = {"nested": {"text": "x"}, "map": {}, "ports": [{"port": 5}]}
    assert fields_of(ROOT.fields["spec"], spec, applied=True) == {
        "f:nested": {"f:text": {}},
        "f:map": {},
        "f:ports": {'k:{"port":5,"protocol":"TCP"}': {".": {}, "f:port": {}}},
    }


def test_paths_read_as_in_conflict_messages() -> None:
    """Fields by dot, items by key or value."""
    spec = {"ports": [{"port": 5, "name": "x"}], "tags": ["a"]}
    assert list(paths({"f:spec": fields_of(ROOT.fields["spec"], spec, applied=True)})) == [
        '.spec.ports[port=5,protocol="TCP"]',
        '.spec.ports[port=5,protocol="TCP"].name',
        '.spec.ports[port=5,protocol="TCP"].port',
        '.spec.tags[="a"]',
    ]


@pytest.mark.parametrize(
    ("old", "new", "written", "removed"),
    [
        ({"text": "a"}, {"text": "a"}, set(), set()),
        ({"text": "a"}, {"text": "b"}, {".spec.text"}, set()),
        ({"text": "a"}, {}, set(), {".spec.text"}),
        ({"open": {"x": 1}}, {"open": {"x": "1"}}, {".spec.open.x"}, set()),
        ({"list": ["a"]}, {"list": ["a", "b"]}, {".spec.list"}, set()),
        ({"atomic": {"a": "1"}}, {"atomic": {"a": "1", "b": "2"}}, {".spec.atomic"}, set()),
        ({"tags": ["a", "b"]}, {"tags": ["b", "c"]}, {'.spec.tags[="c"]'}, {'.spec.tags[="a"]'}),
        ({"map": {"a": "1", "b": "2"}}, {"map": {"a": "1"}}, set(), {".spec.map.b"}),
        ({"map": {"a": "1"}}, {"map": {}}, set(), {".spec.map.a"}),
        ({"map": {}}, {"map": {"a": "1"}}, {".spec.map.a"}, set()),
        ({"nested": {"text": "a"}}, {}, set(), {".spec.nested", ".spec.nested.text"}),
        (
            {"ports": [{"port": 1, "name": "a"}, {"port": 2}]},
            {"ports": [{"port": 2}, {"port": 1, "name": "b"}]},
            {'.spec.ports[port=1,protocol="TCP"].name'},
            set(),
        ),
        ({"open": {"x": 1}}, {"open": {"x": {"y": 2}}}, {".spec.open.x", ".spec.open.x.y"}, set()),
        ({"open": {"x": {"y": 2}}}, {"open": {"x": 1}}, {".spec.open.x"}, {".spec.open.x.y"}),
    ],
)
def test_only_what_changed_is_reported(old: Set, new: Set, written: set[str], removed: set[str]) -> None:
    """The order of keyed lists is no change; another type of a value is one."""
    changes = compare(ROOT, obj(old), obj(new))
    assert members(changes.written) == written
    assert members(changes.removed) == removed
