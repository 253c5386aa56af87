"""Validation of values: reasons, paths and sentences of Kubernetes."""

from typing import Any

import jsonschema_rs
import pytest

from metal.apiserver.machinery.causes import Cause
from tests.apiserver.schema.schemas import ATOMIC, PORTS, STRING, TAGS, compiled, obj

STATES = {"type": "string", "enum": ["On", "Off"]}


def causes(schema: dict[str, Any], spec: Any, **more: Any) -> list[Cause]:
    """What a spec is told."""
    return compiled(schema, **more).validate(obj(spec))


@pytest.mark.parametrize(
    ("schema", "value", "reason", "message"),
    [
        (STATES, "Maybe", "FieldValueNotSupported", 'Unsupported value: "Maybe": supported values: "On", "Off"'),
        (
            STRING, 5, "FieldValueTypeInvalid",
            'Invalid value: "integer": spec.a in body must be of type string: "integer"',
        ),
        (
            {"type": "integer"}, "5", "FieldValueTypeInvalid",
            'Invalid value: "string": spec.a in body must be of type integer: "string"',
        ),
        (
            {"type": "boolean"}, None, "FieldValueTypeInvalid",
            'Invalid value: "null": spec.a in body must be of type boolean: "null"',
        ),
        (
            {"type": "integer", "minimum": 1}, 0, "FieldValueInvalid",
            "Invalid value: 0: spec.a in body should be greater than or equal to 1",
        ),
        (
            {"type": "integer", "maximum": 3}, 4, "FieldValueInvalid",
            "Invalid value: 4: spec.a in body should be less than or equal to 3",
        ),
        (
            {"type": "integer", "maximum": 3, "exclusiveMaximum": True}, 3, "FieldValueInvalid",
            "Invalid value: 3: spec.a in body should be less than 3",
        ),
        (
            {"type": "integer", "multipleOf": 2}, 3, "FieldValueInvalid",
            "Invalid value: 3: spec.a in body should be a multiple of 2",
        ),
        (
            {"type": "string", "pattern": "^[a-f]+$"}, "xyz", "FieldValueInvalid",
            "Invalid value: \"xyz\": spec.a in body should match '^[a-f]+$'",
        ),
        (
            {"type": "string", "minLength": 1}, "", "FieldValueInvalid",
            'Invalid value: "": spec.a in body should be at least 1 chars long',
        ),
        ({"type": "string", "maxLength": 2}, "abc", "FieldValueTooLong", "Too long: may not be more than 2 bytes"),
        (
            {"type": "array", "maxItems": 1, "items": STRING}, ["a", "b"], "FieldValueTooMany",
            "Too many: 2: must have at most 1 items",
        ),
        (
            {"type": "array", "minItems": 1, "items": STRING}, [], "FieldValueInvalid",
            "Invalid value: []: spec.a in body should have at least 1 items",
        ),
        (
            {"type": "string", "format": "date-time"}, "today", "FieldValueTypeInvalid",
            'Invalid value: "today": spec.a in body must be of type date-time: "today"',
        ),
        (
            {"type": "integer", "format": "int32"}, 2**31, "FieldValueInvalid",
            "Invalid value: 2147483648: spec.a in body should be less than or equal to 2147483647",
        ),
    ],
)  # fmt: skip
def test_a_fault_reads_as_in_kubernetes(schema: dict[str, Any], value: Any, reason: str, message: str) -> None:
    """Each keyword has its reason and its sentence."""
    found = causes({"a": schema}, {"a": value})
    assert found == [Cause("spec.a", reason, message)]


def test_a_missing_field_is_required_at_its_own_path() -> None:
    """The path of a required field ends in the field itself, also inside lists."""
    item = {"type": "object", "required": ["name"], "properties": {"name": STRING}}
    found = causes({"l": {"type": "array", "items": item}}, {"l": [{"name": "x"}, {}]}, required=["power"])
    assert {str(cause) for cause in found} == {"spec.power: Required value", "spec.l[1].name: Required value"}
    assert {cause.reason for cause in found} == {"FieldValueRequired"}


@pytest.mark.parametrize("value", [8080, "http"])
def test_int_or_string_takes_both(value: Any) -> None:
    """x-kubernetes-int-or-string stands in for a type."""
    assert causes({"a": {"x-kubernetes-int-or-string": True}}, {"a": value}) == []


def test_int_or_string_refuses_the_rest() -> None:
    """Neither a boolean nor a fraction is an int or a string."""
    refused: tuple[object, ...] = (True, 1.5, [])
    for value in refused:
        assert causes({"a": {"x-kubernetes-int-or-string": True}}, {"a": value})


def test_null_passes_where_it_is_allowed() -> None:
    """nullable reaches enumerations too."""
    assert causes({"a": {**STATES, "nullable": True}}, {"a": None}) == []
    assert causes({"a": STATES}, {"a": None}) != []


@pytest.mark.parametrize(
    ("keyword", "message"),
    [
        ("oneOf", "must validate one and only one schema (oneOf)"),
        ("anyOf", "must validate at least one schema (anyOf)"),
    ],
)
def test_alternatives_are_named_by_their_keyword(keyword: str, message: str) -> None:
    """A value that fits no alternative says which keyword refused it."""
    found = causes({"a": STRING, "b": STRING}, {}, **{keyword: [{"required": ["a"]}, {"required": ["b"]}]})
    assert [cause.field for cause in found] == ["spec"]
    assert message in found[0].message


def test_both_alternatives_at_once_break_one_of() -> None:
    """oneOf refuses two matches as well as none."""
    found = causes({"a": STRING, "b": STRING}, {"a": "", "b": ""}, oneOf=[{"required": ["a"]}, {"required": ["b"]}])
    assert len(found) == 1


@pytest.mark.parametrize(
    ("schema", "value", "field", "shown"),
    [
        (TAGS, ["a", "b", "a"], "spec.a[2]", '"a"'),
        (PORTS, [{"port": 1}, {"port": 2}, {"port": 1, "protocol": "TCP"}], "spec.a[2]", '{"port":1,"protocol":"TCP"}'),
        (
            {"type": "array", "x-kubernetes-list-type": "set", "items": ATOMIC},
            [{"a": "1"}, {"a": "1"}],
            "spec.a[1]",
            '{"a":"1"}',
        ),
    ],
)
def test_sets_and_maps_hold_no_duplicates(schema: dict[str, Any], value: Any, field: str, shown: str) -> None:
    """A repeated item is reported at its second place; missing keys count with their defaults."""
    assert causes({"a": schema}, {"a": value}) == [Cause(field, "FieldValueDuplicate", f"Duplicate value: {shown}")]


def test_the_same_port_twice_under_two_protocols_is_fine() -> None:
    """Items differ when any of their keys differs."""
    assert causes({"a": PORTS}, {"a": [{"port": 53}, {"port": 53, "protocol": "UDP"}]}) == []


def test_types_of_metadata_are_checked_for_every_kind() -> None:
    """A label that is no string is refused even if the CRD says nothing of metadata."""
    given = {**obj({}), "metadata": {"name": "one", "labels": {"a": 5}}}
    assert [cause.field for cause in compiled({}).validate(given)] == ["metadata.labels.a"]


def test_a_fault_that_was_there_before_lets_an_update_pass() -> None:
    """Ratcheting: a stricter schema does not block updates that leave the old fault alone."""
    thing = compiled({"a": STATES, "b": STRING})
    old = obj({"a": "Maybe", "b": "1"})
    assert thing.validate(obj({"a": "Maybe", "b": "2"}), old) == []
    assert [cause.field for cause in thing.validate(obj({"a": "Perhaps", "b": "2"}), old)] == ["spec.a"]
    assert [cause.field for cause in thing.validate(obj({"a": "Maybe"}))] == ["spec.a"]


def test_a_missing_field_that_was_missing_before_needs_an_unchanged_parent() -> None:
    """Required belongs to the parent: touching the parent asks for the field."""
    thing = compiled({"a": STRING, "b": STRING}, required=["a"])
    old = obj({"b": "1"})
    assert thing.validate({**obj({"b": "1"}), "metadata": {"name": "one", "labels": {"x": "y"}}}, old) == []
    assert [cause.field for cause in thing.validate(obj({"b": "2"}), old)] == ["spec.a"]


def test_items_of_a_map_list_are_matched_by_key_when_ratcheting() -> None:
    """An old fault moves along with its item."""
    ports = {**PORTS, "items": {**PORTS["items"], "properties": {**PORTS["items"]["properties"], "name": STATES}}}
    thing = compiled({"a": ports})
    old = obj({"a": [{"port": 1, "name": "bad"}]})
    assert thing.validate(obj({"a": [{"port": 2, "name": "On"}, {"port": 1, "name": "bad"}]}), old) == []
    assert thing.validate(obj({"a": [{"port": 2, "name": "bad"}]}), old) != []


def test_a_list_of_many_wrong_items_is_not_searched_to_its_end() -> None:
    """A million violations are neither collected nor listed; the first one is named."""
    schema = {"type": "array", "items": {"type": "object", "properties": {"b": {"type": "string"}}}}
    found = causes({"a": schema}, {"a": [1] * 1_000_000})
    assert [cause.field for cause in found] == ["spec.a[0]"]


def test_of_many_violations_some_more_than_a_hundred_are_collected() -> None:
    """The Status cuts them to a hundred and says so."""
    found = causes({"a": {"type": "array", "items": {"type": "object"}}}, {"a": [1] * 4000})
    assert [cause.field for cause in found] == [f"spec.a[{number}]" for number in range(101)]


def test_a_new_violation_behind_many_old_ones_is_found() -> None:
    """An update may keep a thousand invalid values, and not add one; also where the value is large."""
    schema = compiled({"l": {"type": "array", "items": {"type": "integer"}}, "z": STRING})
    for size in (1000, 10_000):
        before, after = obj({"l": ["x"] * size, "z": "x"}), obj({"l": ["x"] * size, "z": 1})
        assert schema.validate(obj({"l": ["x"] * size, "z": "y"}), before) == []
        assert [cause.field for cause in schema.validate(after, before)] == ["spec.z"]


@pytest.mark.parametrize("pattern", ["^(?=a)a", r"^(a)\1$", "a(?!b)"])
def test_patterns_need_linear_time(pattern: str) -> None:
    """Lookaround and backreferences, which need backtracking, do not compile; Kubernetes refuses them, too."""
    with pytest.raises((ValueError, jsonschema_rs.ValidationError)):
        compiled({"a": {"type": "string", "pattern": pattern}})


def test_a_value_in_a_message_is_cut() -> None:
    """A wrong text of megabytes is repeated in part."""
    [found] = causes({"a": {"type": "string", "enum": ["x"]}}, {"a": "y" * 3_000_000})
    assert len(found.message) < 5000
