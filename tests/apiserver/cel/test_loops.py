"""What is said of rules without running them, and the bound on those that loop."""

import pytest

from metal.apiserver.cel.loops import depth
from metal.apiserver.schema.schema import Compiled


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
    schema["properties"]["spec"]["x-kubernetes-validations"] = [{"rule": loops}]  # type: ignore[index]  # a tree of JSON
    compiled = Compiled(schema)
    assert compiled.validate({"spec": {"l": [1, 2, 3]}}) == []

    [cause] = compiled.validate({"spec": {"l": list(range(5000))}})

    assert cause.field == "spec"
    assert "running out of cost budget" in cause.message
