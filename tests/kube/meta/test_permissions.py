"""Declared access becomes as few rules as possible, and allows what it says."""

from typing import Any

import pytest

from metal.api.meta import Kind
from metal.kube.meta.permissions import (
    APPLY,
    Permission,
    Request,
    Where,
    blocks,
    disowns,
    follows,
    reasons,
    rights,
    rules,
)

POD: Kind[Any] = Kind("", "v1", "Pod", "pods", object)
RACK: Kind[Any] = Kind("dc.test", "v1", "Rack", "racks", object, namespaced=False)
ROW: Kind[Any] = Kind("dc.test", "v1", "Row", "rows", object, namespaced=False)
HOME = "home-ns"


def test_resources_with_the_same_verbs_share_a_rule() -> None:
    """Verbs of one resource come together from all who need it, then resources of a group with the same verbs."""
    held = rights((*follows(RACK, ROW, why="a"), Permission(RACK, ("get",), "b"), Permission(ROW, ("get",), "c")))
    assert rules(held, Where.EVERYWHERE) == [
        {"apiGroups": ["dc.test"], "resources": ["racks", "rows"], "verbs": ["get", "list", "watch"]}
    ]


def test_the_order_of_declarations_does_not_matter() -> None:
    """The same needs give the same bytes."""
    needs = [Permission(RACK, APPLY, "a"), Permission(POD, ("get",), "b"), blocks(RACK), disowns(POD, Where.HOME)]
    assert rights(needs) == rights(reversed(needs))


def test_a_right_everywhere_makes_the_one_at_home_superfluous() -> None:
    """But not the other way round, and not where the wide one is for tenants, who may take it away."""
    everywhere, home = Permission(POD, ("get",), "a"), Permission(POD, ("get",), "b", where=Where.HOME)
    tenants = Permission(POD, ("get",), "c", where=Where.TENANTS)
    assert [right.where for right in rights((everywhere, home))] == [Where.EVERYWHERE]
    assert [right.where for right in rights((home, tenants))] == [Where.HOME, Where.TENANTS]


def test_a_right_without_names_makes_the_one_with_names_superfluous() -> None:
    """A rule that allows all objects allows the named ones."""
    some, all_ = Permission(POD, ("get",), "a", names=("x",)), Permission(POD, ("get",), "b")
    assert [right.names for right in rights((some, all_))] == [()]
    assert rules(rights((some,)), Where.EVERYWHERE) == [
        {"apiGroups": [""], "resources": ["pods"], "resourceNames": ["x"], "verbs": ["get"]}
    ]


@pytest.mark.parametrize(
    ("request_", "allowed"),
    [
        (Request("get", "", "pods", HOME, "x"), True),
        (Request("get", "", "pods", HOME, "y"), False),
        (Request("get", "", "pods", "other", "x"), False),
        (Request("list", "", "pods", HOME), False),
        (Request("get", "dc.test", "pods", HOME, "x"), False),
        (Request("get", "", "pods/status", HOME, "x"), False),
    ],
    ids=str,
)
def test_a_right_allows_what_it_names(request_: Request, allowed: bool) -> None:
    """Verb, group, resource, subresource, namespace and name have to fit."""
    (right,) = rights((Permission(POD, ("get",), "a", where=Where.HOME, names=("x",)),))
    assert right.allows(request_, HOME) is allowed


def test_each_right_has_its_reasons() -> None:
    """A right that several pieces of code need has the reason of each, once."""
    needs = (Permission(POD, ("get",), "a"), Permission(POD, ("get",), "b"), Permission(POD, ("get", "list"), "a"))
    assert reasons(needs)[Where.EVERYWHERE, "", "pods", "get"] == ["a", "b"]
    assert reasons(needs)[Where.EVERYWHERE, "", "pods", "list"] == ["a"]
