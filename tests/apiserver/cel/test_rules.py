"""Rules in CEL."""

from typing import Any

import pytest

from metal.apiserver.cel.rules import RuleError, escape, program
from metal.apiserver.machinery.causes import Cause
from metal.apiserver.machinery.structural import Rule
from tests.apiserver.schema.schemas import CONDITIONS, MAP, STRING, compiled, obj

ANYTHING = {
    "a": STRING,
    "b": STRING,
    "namespace": STRING,
    "x-y": STRING,
    "l": {"type": "array", "items": STRING},
    "m": MAP,
}


def run(rule: str | dict[str, Any], spec: Any, old: Any = None, schema: dict[str, Any] | None = None) -> list[Cause]:
    """What a rule on spec says of a spec."""
    entry = {"rule": rule} if isinstance(rule, str) else rule
    thing = compiled(schema or ANYTHING, **{"x-kubernetes-validations": [entry]})
    return thing.validate(obj(spec), None if old is None else obj(old))


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        ("has(self.a) != has(self.b)", {"a": "1"}, {"a": "1", "b": "2"}),
        ("self.a.startsWith('x') && size(self.a) < 3", {"a": "xy"}, {"a": "xyz"}),
        ("self.a.matches('^[0-9a-f]{2}$')", {"a": "0f"}, {"a": "0g"}),
        ("self.l.all(x, x.size() > 0)", {"l": ["a"]}, {"l": ["a", ""]}),
        ("self.l.exists(x, x == 'a')", {"l": ["b", "a"]}, {"l": ["b"]}),
        ("self.l.exists_one(x, x == 'a')", {"l": ["a"]}, {"l": ["a", "a"]}),
        ("self.l.map(x, x + '!').filter(x, x != '!').size() == 1", {"l": ["a", ""]}, {"l": ["a", "b"]}),
        ("self.a.lowerAscii() == self.a && self.a.split(',').size() == 2", {"a": "x,y"}, {"a": "X,y"}),
        ("self.a in ['x', 'y']", {"a": "x"}, {"a": "z"}),
        ("'k' in self.m && self.m.all(k, self.m[k] != '')", {"m": {"k": "v"}}, {"m": {"k": ""}}),
        ("isURL(self.a) && url(self.a).getScheme() == 'https'", {"a": "https://x/y"}, {"a": "http://x/y"}),
        ("isIP(self.a)", {"a": "fe80::1"}, {"a": "fe80:::1"}),
        ("self.a.find('[0-9]+') == '12'", {"a": "ab12c3"}, {"a": "abc"}),
        ("self.l.isSorted()", {"l": ["a", "b"]}, {"l": ["b", "a"]}),
        ("self.__namespace__ == 'x'", {"namespace": "x"}, {"namespace": "y"}),
        ("self.x__dash__y == 'x'", {"x-y": "x"}, {"x-y": "y"}),
        ("self.l.indexOf('b') == 1", {"l": ["a", "b"]}, {"l": ["b"]}),
    ],
)
def test_rules_accept_and_refuse(rule: str, good: Any, bad: Any) -> None:
    """The functions that CRDs use work, and a rule that does not hold refuses the object."""
    assert run(rule, good) == []
    assert run(rule, bad) == [Cause("spec", "FieldValueInvalid", f"Invalid value: failed rule: {rule}")]


@pytest.mark.parametrize(
    ("more", "field", "reason", "message"),
    [
        ({"message": "a is needed"}, "spec", "FieldValueInvalid", 'Invalid value: a is needed'),
        ({"messageExpression": "'b is ' + self.b"}, "spec", "FieldValueInvalid", 'Invalid value: b is 2'),
        (
            {"messageExpression": "self.nothing", "message": "plain"}, "spec", "FieldValueInvalid",
            'Invalid value: plain',
        ),
        ({"message": "no", "fieldPath": ".a"}, "spec.a", "FieldValueInvalid", 'Invalid value: no'),
        ({"message": "no", "reason": "FieldValueForbidden"}, "spec", "FieldValueForbidden", "Forbidden: no"),
        ({"message": "no", "reason": "FieldValueRequired"}, "spec", "FieldValueRequired", "Required value: no"),
        ({"reason": "FieldValueDuplicate"}, "spec", "FieldValueDuplicate", "Duplicate value"),
    ],
)  # fmt: skip
def test_a_rule_says_what_where_and_why(more: dict[str, Any], field: str, reason: str, message: str) -> None:
    """message, messageExpression, fieldPath and reason shape the cause."""
    assert run({"rule": "has(self.a)", **more}, {"b": "2"}) == [Cause(field, reason, message)]


def test_a_transition_rule_runs_only_where_there_was_a_value() -> None:
    """oldSelf needs an old value: nothing is said on create, nor when the field is new."""
    fixed = {**STRING, "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed once set"}]}
    thing = compiled({"a": fixed})
    assert thing.validate(obj({"a": "1"})) == []
    assert thing.validate(obj({"a": "1"}), obj({})) == []
    assert thing.validate(obj({"a": "1"}), obj({"a": "1"})) == []
    assert thing.validate(obj({}), obj({"a": "1"})) == []
    told = Cause("spec.a", "FieldValueInvalid", 'Invalid value: "2": fixed once set')
    assert thing.validate(obj({"a": "2"}), obj({"a": "1"})) == [told]


def test_items_of_a_map_list_meet_their_old_selves_by_key() -> None:
    """A transition rule inside a list of type map compares items with the same key."""
    items = {**CONDITIONS["items"], "x-kubernetes-validations": [{"rule": "self.status == oldSelf.status"}]}
    thing = compiled({"l": {**CONDITIONS, "items": items}})
    old = obj({"l": [{"type": "A", "status": "1"}, {"type": "B", "status": "2"}]})
    assert thing.validate(obj({"l": [{"type": "B", "status": "2"}, {"type": "C", "status": "9"}]}), old) == []
    found = thing.validate(obj({"l": [{"type": "C", "status": "9"}, {"type": "B", "status": "3"}]}), old)
    assert [cause.field for cause in found] == ["spec.l[1]"]


def test_a_rule_about_an_unchanged_value_is_not_run_again() -> None:
    """Ratcheting holds for rules too: a new rule does not refuse what was stored before it."""
    assert run("self.a == 'x'", {"a": "y"}, {"a": "y"}) == []
    assert run("self.a == 'x'", {"a": "y", "b": ""}, {"a": "y"}) != []


def test_a_missing_key_is_an_answer_not_a_crash() -> None:
    """A rule that reads what is not there fails with the name of the key."""
    assert run("self.a == 'x'", {}) == [
        Cause("spec", "FieldValueInvalid", "Invalid value: \"object\": no such key: a evaluating rule: self.a == 'x'")
    ]


@pytest.mark.parametrize(
    ("schema", "value", "rule"),
    [
        ({"type": "number"}, 2, "self.a + 0.5 == 2.5"),
        ({"type": "integer"}, 2, "self.a + 1 == 3"),
        ({"type": "string", "format": "date-time"}, "2024-01-02T03:04:05Z", "self.a.getFullYear() == 2024"),
        ({"type": "string", "format": "duration"}, "90s", "self.a == duration('1m30s')"),
        ({"type": "string", "format": "byte"}, "aGk=", "self.a == b'hi'"),
        ({"x-kubernetes-int-or-string": True}, "80%", "self.a.endsWith('%')"),
    ],
)
def test_values_have_the_type_of_their_schema(schema: dict[str, Any], value: Any, rule: str) -> None:
    """A whole number in a `number` field is a double; times, durations and bytes are what they are called."""
    assert run(rule, {"a": value}, schema={"a": schema}) == []


def test_rules_wait_until_the_shape_is_right() -> None:
    """With a wrong type, one more cause says that rules were not looked at."""
    found = run("self.a == 'x'", {"a": 5})
    assert [cause.field for cause in found] == ["spec.a", "<nil>"]
    assert "some validation rules were not checked" in found[1].message


@pytest.mark.parametrize("rule", ["self.a ==", "self.a == 'x", "("])
def test_a_rule_that_cannot_be_read_is_refused(rule: str) -> None:
    """A broken rule is an error with the place, and the rule in it."""
    with pytest.raises(RuleError, match=r"ERROR: <input>:1:\d+: .*\n \| "):
        program(Rule(rule))


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("plain", "plain"),
        ("a-b", "a__dash__b"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("in", "__in__"),
        ("a__b", "a__underscores__b"),
    ],
)
def test_names_are_escaped_as_cel_needs_it(name: str, escaped: str) -> None:
    """Reserved words and characters have a spelling of their own."""
    assert escape(name) == escaped
