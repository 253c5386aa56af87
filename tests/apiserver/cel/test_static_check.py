"""Types of rules: what is refused before a rule ever runs, and what is let pass because nothing is known of it."""

import pytest

from metal.apiserver.cel.parser import NotUnderstoodError, parse
from metal.apiserver.cel.static_check import check, located, type_of
from metal.apiserver.machinery.structural import compile_node

TEXT = {"type": "string"}
SELF = type_of(
    compile_node(
        {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "num": {"type": "number"},
                "name": TEXT,
                "flag": {"type": "boolean"},
                "maybe": {**TEXT, "nullable": True},
                "a-b": TEXT,
                "when": {**TEXT, "format": "date-time"},
                "raw": {**TEXT, "format": "byte"},
                "either": {"x-kubernetes-int-or-string": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                "texts": {"type": "array", "items": TEXT},
                "list": {"type": "array", "items": {"type": "object", "properties": {"name": TEXT}}},
            },
        }
    )
)


def faults(rule: str) -> list[tuple[int, str]]:
    """Columns and messages."""
    variables = {"self": SELF, "oldSelf": ("optional_type", SELF)}
    return [(at + 1, message) for at, message in check(rule, variables, frozenset({"novel"}))[1]]


@pytest.mark.parametrize(
    "rule",
    [
        "self.size > 1 && has(self.a__dash__b)",
        "self.size > 1.5 && self.num >= 1",
        "self.free.anything.at.all == 1 && self.map.any == 1 || self.name == 'self.siez'",
        "self.list.all(i, i.name == 'x') && self.map.exists(k, self.map[k] == 1 && k != '')",
        "self.either == 1 || self.either == 'a'",
        "self.maybe == null || self.free == null || self.list[0] == null || self.when == null",
        "self.texts + ['a'] == self.texts || self.texts == [] || {} == self.map",
        "novel(self.size) == novel('x') && self.name.novel()",
        "oldSelf.hasValue() && oldSelf.value().size == 1 && oldSelf.size.orValue(2) == 1",
        "type(self.either) == int && dyn(self.size) == 'a'",
        "self.texts.map(x, size(x)).sum() > 1 && self.texts.map(x, x != '', x + 'a') == self.texts",
        "self.when + duration('1h') > timestamp('2020-01-01T00:00:00Z') // the end",
        r"""self.name == r'\d' || self.name == "a\"b" || b'x' == self.raw""",
        "[self.size].exists(i, i > 0) ? self.flag : !self.flag",
    ],
)
def test_sound_rules_pass(rule: str) -> None:
    """What cel-go accepts is accepted, and what nothing is known of."""
    assert faults(rule) == []
    assert check(rule, {"self": SELF, "oldSelf": ("optional_type", SELF)}, frozenset({"novel"}))[0] == "bool"


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("self.siez > 1", [(5, "undefined field 'siez'")]),
        ("has(self.siez)", [(4, "undefined field 'siez'")]),
        ("self.list.all(i, i.nmae == 'x')", [(19, "undefined field 'nmae'")]),
        ("self.size.x == 1", [(10, "type 'int' does not support field selection")]),
        ("sefl.x", [(1, "undeclared reference to 'sefl' (in container '')")]),
        ("foo(self.name)", [(4, "undeclared reference to 'foo' (in container '')")]),
        ("self.size == 'a'", [(11, "found no matching overload for '_==_' applied to '(int, string)'")]),
        ("self.when == 'a'", [(11, "found no matching overload for '_==_' applied to '(timestamp, string)'")]),
        ("self.texts[0] == 1", [(15, "found no matching overload for '_==_' applied to '(string, int)'")]),
        ("self.map['a'] == 'a'", [(15, "found no matching overload for '_==_' applied to '(int, string)'")]),
        ("self.texts == null", [(12, "found no matching overload for '_==_' applied to '(list(string), null)'")]),
        ("1 in ['a']", [(3, "found no matching overload for '@in' applied to '(int, list(string))'")]),
        (
            "self.name.startsWith(1)",
            [(21, "found no matching overload for 'startsWith' applied to 'string.(int)'")],
        ),
        ("self.flag && self.size", [(18, "expected type 'bool' but found 'int'")]),
        ("self.texts.all(x, x)", [(19, "expected type 'bool' but found 'string'")]),
        (
            "self.texts.filter(x, x) == []",
            [(18, "found no matching overload for '_?_:_' applied to '(string, list(string), list(string))'")],
        ),
        ("['a', 1] == []", [(7, "expected type 'string' but found 'int'")]),
        (
            "self.size.all(x, true)",
            [(5, "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)")],
        ),
        ("nope && self.siez", [
            (1, "undeclared reference to 'nope' (in container '')"), (13, "undefined field 'siez'"),
        ]),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told_with_its_place(rule: str, found: list[tuple[int, str]]) -> None:
    """One fault does not bring others with it; several come in the order of the text."""
    assert faults(rule) == found


def test_a_fault_points_into_its_line() -> None:
    """Line and column from 1, the line itself, and a pointer below it."""
    rule = "true &&\n  self.siez"
    [fault] = check(rule, {"self": SELF}, frozenset())[1]

    assert located(rule, fault) == "ERROR: <input>:2:7: undefined field 'siez'\n |   self.siez\n | ......^"


def test_a_whole_object_has_an_identity() -> None:
    """apiVersion, kind and the two names of its metadata; nothing else of them can be asked."""
    whole = type_of(compile_node({"type": "object"}), whole=True)

    def told(rule: str) -> list[str]:
        return [fault.message for fault in check(rule, {"self": whole}, frozenset())[1]]

    assert told("self.metadata.name == self.kind && self.metadata.generateName == self.apiVersion") == []
    assert told("self.metadata.labels == {}") == ["undefined field 'labels'"]


@pytest.mark.parametrize("text", ["self.?a", "a b", "(a", "[1", "{1:}", "a ? b", "'a", "a.1", "#"])
def test_other_text_is_not_understood(text: str) -> None:
    """What is no CEL, or newer than this parser, is an error and never half a tree."""
    with pytest.raises(NotUnderstoodError):
        parse(text)


@pytest.mark.parametrize("text", ["(" * 500 + "true" + ")" * 500, "true" + " || true" * 2000, "!" * 5000 + "true"])
def test_no_depth_ends_the_process(text: str) -> None:
    """A rule nested without end is refused, not followed."""
    with pytest.raises(NotUnderstoodError, match="nested too deeply"):
        check(text, {}, frozenset())
