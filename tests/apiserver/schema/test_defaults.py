"""Defaulting and null."""

import copy
from typing import Any

import pytest

from metal.apiserver.schema.schema import Compiled
from tests.apiserver.schema.schemas import STRING, compiled, obj

FIVE = {"type": "integer", "default": 5}


@pytest.mark.parametrize(
    ("schema", "given", "wanted"),
    [
        ({"a": FIVE}, {}, {"a": 5}),
        ({"a": FIVE}, {"a": 0}, {"a": 0}),
        ({"a": FIVE}, {"a": None}, {"a": 5}),
        ({"a": {**FIVE, "nullable": True}}, {"a": None}, {"a": None}),
        ({"a": STRING}, {"a": None}, {}),
        ({"a": {**STRING, "nullable": True}}, {"a": None}, {"a": None}),
        ({"a": {"type": "object", "properties": {"b": FIVE}}}, {}, {}),
        ({"a": {"type": "object", "properties": {"b": FIVE}}}, {"a": {}}, {"a": {"b": 5}}),
        ({"a": {"type": "object", "default": {}, "properties": {"b": FIVE}}}, {}, {"a": {"b": 5}}),
        (
            {"a": {"type": "array", "items": {"type": "object", "properties": {"b": FIVE}}}},
            {"a": [{}, {"b": 1}]},
            {"a": [{"b": 5}, {"b": 1}]},
        ),
        (
            {"a": {"type": "object", "additionalProperties": {"type": "object", "properties": {"b": FIVE}}}},
            {"a": {"x": {}}},
            {"a": {"x": {"b": 5}}},
        ),
        ({"a": {"type": "object", "additionalProperties": FIVE}}, {"a": {"x": None}}, {"a": {"x": 5}}),
        ({"a": {"x-kubernetes-preserve-unknown-fields": True}}, {"a": None}, {"a": None}),
    ],
)
def test_defaults_fill_what_is_missing(schema: dict[str, Any], given: Any, wanted: Any) -> None:
    """A missing field takes its default; null counts as missing where null is not allowed."""
    before = copy.deepcopy(given)
    assert compiled(schema).default(obj(given))["spec"] == wanted
    assert given == before


def test_a_default_is_not_shared_between_objects() -> None:
    """Two objects that took the same default can be changed apart."""
    thing = compiled({"a": {"type": "object", "default": {"l": [1]}, "x-kubernetes-preserve-unknown-fields": True}})
    one, other = thing.default(obj({})), thing.default(obj({}))
    one["spec"]["a"]["l"].append(2)
    assert other["spec"]["a"] == {"l": [1]}


def test_a_whole_default_spec_can_appear() -> None:
    """A default at the top fills in a part that the user left out."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "default": {}, "properties": {"a": FIVE}}}}
    assert Compiled(schema).default({"kind": "Thing"}) == {"kind": "Thing", "spec": {"a": 5}}


def test_an_object_with_nothing_to_default_comes_back_equal() -> None:
    """Defaulting twice changes nothing more, and the result is another dict."""
    thing = compiled({"a": FIVE, "l": {"type": "array", "items": {"type": "object", "properties": {"b": FIVE}}}})
    once = thing.default(obj({"l": [{}, {"b": 2}]}))
    assert thing.default(once) == once
    assert thing.default(once) is not once
