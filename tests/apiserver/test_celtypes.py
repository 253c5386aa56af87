"""What is said of rules without running them, and the bound on those that loop."""

import pytest

from metal.apiserver.celtypes import Undefined, depth, undefined_fields
from metal.apiserver.schema import Compiled
from metal.apiserver.structural import compile_node

NODE = compile_node(
    {
        "type": "object",
        "properties": {
            "size": {"type": "integer"},
            "a-b": {"type": "string"},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        },
    }
)


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("self.size > 1 && has(self.a__dash__b)", []),
        ("self.siez > 1", [Undefined("siez", 5)]),
        ("oldSelf.siez == self.size", [Undefined("siez", 8)]),
        ("self.free.anything.at.all == 1 && self.map.any == 'self.siez'", []),
        ("self.list.all(i, i.name == 'x')", []),
        ("self.list.all(i, i.nmae == 'x')", [Undefined("nmae", 19)]),
        ("self.list.size() > 0 && self.size.foo()", []),
        ("[self.size].exists(i, i.any > 0)", []),
    ],
)
def test_fields_that_cannot_exist_are_found(rule: str, found: list[Undefined]) -> None:
    """Paths from self, oldSelf and the items of a loop are followed; what is open or in a text is left alone."""
    assert undefined_fields(rule, NODE) == found


@pytest.mark.parametrize(
    ("rule", "loops"),
    [
        ("self.size > 1", 0), ("self.l.all(i, i > 1)", 1), ("self.l.all(i, self.l.exists(j, i == j))", 2),
        ("self.l.all(i, i > 1) && self.l.exists(j, j > 1)", 1), ("self.l.all(i, i in self.l)", 2),
    ],
)  # fmt: skip
def test_loops_within_loops_are_counted(rule: str, loops: int) -> None:
    """Loops beside each other count once; a search counts as a loop."""
    assert depth(rule) == loops


def test_a_rule_that_would_take_for_ever_is_not_run() -> None:
    """Loops within loops over a long list are refused, so that nobody waits for them; short ones run."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"l": {"type": "array", "items": {"type": "integer"}}}}
        },
    }
    loops = "self.l.all(a, self.l.all(b, self.l.all(c, a + b + c >= 0)))"
    schema["properties"]["spec"]["x-kubernetes-validations"] = [{"rule": loops}]  # type: ignore[index]
    compiled = Compiled(schema)
    assert compiled.validate({"spec": {"l": [1, 2, 3]}}) == []

    [cause] = compiled.validate({"spec": {"l": list(range(5000))}})

    assert cause.field == "spec"
    assert "running out of cost budget" in cause.message
