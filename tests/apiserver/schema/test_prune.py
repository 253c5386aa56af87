"""Pruning and the report of unknown fields."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.apiserver.schema.schema import Compiled
from tests.apiserver.schema.schemas import MAP, OPEN, STRING, THING, compiled, obj, resource

EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}}
OPEN_WITH_KNOWN = {**OPEN, "properties": {"known": {"type": "object", "properties": {"a": STRING}}}}


@pytest.mark.parametrize(
    ("schema", "given", "kept", "unknown"),
    [
        ({"a": STRING}, {"a": "x", "b": 1}, {"a": "x"}, ["spec.b"]),
        ({"a": STRING}, {"b": {"c": 1}}, {}, ["spec.b"]),
        ({"m": MAP}, {"m": {"any": "x", "thing": "y"}}, {"m": {"any": "x", "thing": "y"}}, []),
        ({"o": OPEN}, {"o": {"deep": {"er": [1, {"x": 2}]}}}, {"o": {"deep": {"er": [1, {"x": 2}]}}}, []),
        (
            {"o": OPEN_WITH_KNOWN},
            {"o": {"known": {"a": "1", "b": 2}, "free": {"b": 2}}},
            {"o": {"known": {"a": "1"}, "free": {"b": 2}}},
            ["spec.o.known.b"],
        ),
        (
            {"l": {"type": "array", "items": {"type": "object", "properties": {"a": STRING}}}},
            {"l": [{"a": "1"}, {"a": "2", "bar": 3}]},
            {"l": [{"a": "1"}, {"a": "2"}]},
            ["spec.l[1].bar"],
        ),
        (
            {"e": EMBEDDED},
            {"e": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "junk": 1}, "spec": {"y": 1}, "z": 1}},
            {"e": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {}}},
            ["spec.e.metadata.junk", "spec.e.spec.y", "spec.e.z"],
        ),
    ],
)
def test_unknown_fields_are_dropped_and_named(
    schema: dict[str, Any], given: dict[str, Any], kept: dict[str, Any], unknown: list[str]
) -> None:
    """Fields that the schema does not declare are removed, and their paths are reported."""
    thing = compiled(schema)
    assert thing.prune(obj(given))["spec"] == kept
    assert thing.unknown_fields(obj(given)) == unknown


def test_identity_stays_even_if_the_schema_is_empty() -> None:
    """apiVersion, kind and metadata need no mention in the schema."""
    bare = Compiled({"type": "object"})
    assert bare.prune(obj({"a": 1})) == {key: obj({})[key] for key in ("apiVersion", "kind", "metadata")}


def test_metadata_is_pruned_by_its_own_schema() -> None:
    """metadata has its own schema, independent of the CRD."""
    thing = Compiled(resource({}))
    given = {**obj({}), "metadata": {"name": "one", "labels": {"a": "b"}, "colour": "red"}}
    assert thing.prune(given)["metadata"] == {"name": "one", "labels": {"a": "b"}}
    assert thing.unknown_fields(given) == ["metadata.colour"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "text", "ports", "map"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(json_values)
def test_pruning_twice_changes_nothing_more(value: Any) -> None:
    """A pruned object has no unknown fields, and pruning leaves it alone."""
    thing = Compiled(THING)
    once = thing.prune(obj(value))
    assert thing.prune(once) == once
    assert thing.unknown_fields(once) == []


@given(json_values)
def test_fields_are_unknown_exactly_where_pruning_changes_something(value: Any) -> None:
    """The report and the pruning agree, also on objects with nothing to prune."""
    thing = Compiled(THING)
    given = obj(value)
    assert (thing.unknown_fields(given) == []) == (thing.prune(given) == given)
    assert thing.prune(given) is not given
