"""Label selectors from objects."""

from typing import Any

import pytest

from metal.kube.meta.selectors import from_object

LABELS = {"app": "web", "tier": "a", "example.com/cores": "16", "empty": ""}


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
