"""JSON patch, merge patch and strategic merge patch."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.apiserver.patching.patch import PatchError, json_merge, json_patch, same_json, strategic_merge

Op = dict[str, Any]

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab/~", max_size=2), inner, max_size=3),
    max_leaves=10,
)
objects = st.dictionaries(st.text("abc", min_size=1, max_size=2), plain, max_size=4)


@pytest.mark.parametrize(
    ("target", "patch", "wanted"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": {"b": "c", "d": "e"}}, {"a": {"b": None}}, {"a": {"d": "e"}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": "b"}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}),
        ({"a": 1}, ["x"], ["x"]),
        (["x"], {"a": 1}, {"a": 1}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ],
)
def test_merge_patch_follows_rfc_7396(target: Any, patch: Any, wanted: Any) -> None:
    """null removes, objects merge, everything else replaces."""
    assert json_merge(target, patch) == wanted


@given(plain, plain)
def test_merging_twice_is_merging_once_and_changes_no_input(target: Any, patch: Any) -> None:
    """A merge patch is idempotent, and its arguments stay as they were."""
    before = copy.deepcopy((target, patch))
    once = json_merge(target, patch)
    assert json_merge(once, patch) == once
    assert (target, patch) == before


@pytest.mark.parametrize(
    ("target", "operations", "wanted"),
    [
        ({"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
        ({"a": 1}, [{"op": "add", "path": "/a", "value": 2}], {"a": 2}),
        ({"l": [1, 3]}, [{"op": "add", "path": "/l/1", "value": 2}], {"l": [1, 2, 3]}),
        ({"l": [1]}, [{"op": "add", "path": "/l/-", "value": 2}], {"l": [1, 2]}),
        ({"a": 1}, [{"op": "add", "path": "", "value": {"x": 1}}], {"x": 1}),
        ({"a": 1, "b": 2}, [{"op": "remove", "path": "/a"}], {"b": 2}),
        ({"l": [1, 2, 3]}, [{"op": "remove", "path": "/l/1"}], {"l": [1, 3]}),
        ({"a": {"b": 1}}, [{"op": "replace", "path": "/a/b", "value": [2]}], {"a": {"b": [2]}}),
        ({"a": {"b": 1}}, [{"op": "move", "from": "/a/b", "path": "/c"}], {"a": {}, "c": 1}),
        ({"l": [1, 2, 3]}, [{"op": "move", "from": "/l/0", "path": "/l/2"}], {"l": [2, 3, 1]}),
        ({"a": {"b": 1}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a/b": {"~x": 1}}, [{"op": "replace", "path": "/a~1b/~0x", "value": 2}], {"a/b": {"~x": 2}}),
        ({"a": 1}, [{"op": "test", "path": "/a", "value": 1.0}], {"a": 1}),
        ({"a": None}, [{"op": "test", "path": "/a", "value": None}], {"a": None}),
        ({"": 1}, [{"op": "replace", "path": "/", "value": 2}], {"": 2}),
        (
            {"a": 1},
            [
                {"op": "copy", "from": "/a", "path": "/b"},
                {"op": "remove", "path": "/a"},
                {"op": "add", "path": "/c", "value": 3},
            ],
            {"b": 1, "c": 3},
        ),
    ],
)
def test_json_patch_follows_rfc_6902(target: Any, operations: list[Op], wanted: Any) -> None:
    """Every operation does what the RFC says, in order."""
    before = copy.deepcopy((target, operations))
    assert json_patch(target, operations) == wanted
    assert (target, operations) == before


@pytest.mark.parametrize(
    ("operations", "sentence"),
    [
        ([{"op": "remove", "path": "/x"}], "operation 0 of the JSON patch: /x does not exist"),
        ([{"op": "replace", "path": "/l/7", "value": 1}], "index 7 is out of bounds, the list has 2 items"),
        ([{"op": "replace", "path": "/l/-", "value": 1}], "'-' is not an index of a list"),
        ([{"op": "add", "path": "/l/01", "value": 1}], "'01' is not an index of a list"),
        ([{"op": "add", "path": "/l/3", "value": 1}], "index 3 is out of bounds"),
        ([{"op": "add", "path": "/x/y", "value": 1}], "/x does not exist"),
        ([{"op": "add", "path": "/a/y", "value": 1}], "/a is neither an object nor a list"),
        ([{"op": "replace", "path": "/l/-3", "value": 1}], "index -3 is out of bounds"),
        ([{"op": "move", "path": "/a"}], "move needs from"),
        ([{"op": "add", "path": "a", "value": 1}], "path 'a' must start with '/'"),
        ([{"op": "jump", "path": "/a"}], "unknown op 'jump'"),
        ([{"op": "move", "from": "/o", "path": "/o/x"}], "/o cannot be moved into itself"),
        ([{"op": "test", "path": "/a", "value": True}], "test of /a failed"),
        ([{"op": "remove", "path": ""}], "the whole document cannot be removed"),
        ([{"op": "test", "path": "/a", "value": 1}, {"op": "remove", "path": "/x"}], "operation 1"),
        (["remove"], "an operation is an object"),
        ({"op": "remove"}, "a JSON patch is a list"),
        ([{"op": "test", "path": "/a", "value": 1}] * 10_001, "maximum operations in a JSON patch is 10000"),
    ],
)  # fmt: skip
def test_a_patch_that_does_not_fit_says_where(operations: Any, sentence: str) -> None:
    """The error names the operation, the path and the fault."""
    with pytest.raises(PatchError, match=r".") as caught:
        json_patch({"a": 1, "l": [1, 2], "o": {}}, operations)
    assert sentence in str(caught.value)


@given(objects, st.text("abc", min_size=1, max_size=2), plain)
def test_what_is_added_can_be_tested_and_removed(target: dict[str, Any], key: str, value: Any) -> None:
    """add, test and remove of a new key lead back to the start."""
    target.pop(key, None)
    path = f"/{key}"
    there = json_patch(
        target, [{"op": "add", "path": path, "value": value}, {"op": "test", "path": path, "value": value}]
    )
    assert json_patch(there, [{"op": "remove", "path": path}]) == target


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        (True, 1, False),
        (0, False, False),
        ([1], [True], False),
        ({"a": [0]}, {"a": [0.0]}, True),
        (None, False, False),
    ],
)
def test_equality_is_that_of_json(one: Any, other: Any, same: bool) -> None:
    """Numbers compare by value, and a boolean is no number."""
    assert same_json(one, other) is same


OWNERS = [{"uid": "1", "name": "a"}, {"uid": "2", "name": "b"}]


@pytest.mark.parametrize(
    ("kind", "target", "patch", "wanted"),
    [
        ("ConfigMap", {"data": {"a": "1", "b": "2"}}, {"data": {"a": None, "c": "3"}}, {"data": {"b": "2", "c": "3"}}),
        (
            "Secret", {"metadata": {"ownerReferences": OWNERS}},
            {"metadata": {"ownerReferences": [{"uid": "2", "name": "c"}, {"uid": "3", "name": "d"}]}},
            {"metadata": {"ownerReferences": [OWNERS[0], {"uid": "2", "name": "c"}, {"uid": "3", "name": "d"}]}},
        ),
        (
            "Secret", {"metadata": {"ownerReferences": OWNERS}},
            {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": "1"}]}},
            {"metadata": {"ownerReferences": [OWNERS[1]]}},
        ),
        (
            "Secret", {"metadata": {"finalizers": ["a"]}}, {"metadata": {"finalizers": ["b", "a"]}},
            {"metadata": {"finalizers": ["b", "a"]}},
        ),
        (
            "Secret", {"metadata": {"finalizers": ["a", "b", "c"]}},
            {"metadata": {
                "$deleteFromPrimitiveList/finalizers": ["b"], "finalizers": ["d"],
                "$setElementOrder/finalizers": ["d", "a", "c"],
            }},
            {"metadata": {"finalizers": ["d", "a", "c"]}},
        ),
        (
            "ServiceAccount", {"secrets": [{"name": "x"}, {"name": "y"}]},
            {"secrets": [{"name": "z"}], "$setElementOrder/secrets": [{"name": "z"}, {"name": "x"}]},
            {"secrets": [{"name": "z"}, {"name": "x"}, {"name": "y"}]},
        ),
        (
            "ServiceAccount", {"secrets": [{"name": "x"}]},
            {"secrets": [{"$patch": "replace"}, {"name": "n"}]}, {"secrets": [{"name": "n"}]},
        ),
        ("ConfigMap", {"data": {"a": "1"}}, {"data": {"$patch": "replace", "b": "2"}}, {"data": {"b": "2"}}),
        ("ConfigMap", {"data": {"a": "1"}, "x": 1}, {"data": {"$patch": "delete"}}, {"x": 1}),
        ("ConfigMap", {"data": {"a": "1", "b": "2"}}, {"data": {"$retainKeys": ["b"], "b": "3"}}, {"data": {"b": "3"}}),
        ("Event", {"list": [1, 2]}, {"list": [3]}, {"list": [3]}),
        ("ConfigMap", {}, {"data": {"a": "1", "gone": None}}, {"data": {"a": "1"}}),
    ],
)  # fmt: skip
def test_strategic_merge_knows_lists_by_key_and_directives(
    kind: str, target: dict[str, Any], patch: dict[str, Any], wanted: dict[str, Any]
) -> None:
    """Lists with a merge key merge, others are replaced; kubectl's directives delete, replace and order."""
    before = copy.deepcopy((target, patch))
    assert strategic_merge(target, patch, kind) == wanted
    assert (target, patch) == before


@pytest.mark.parametrize(
    ("patch", "sentence"),
    [
        ({"metadata": {"$patch": "explode"}}, "metadata: unknown $patch 'explode'"),
        (
            {"metadata": {"ownerReferences": [{"name": "x"}]}},
            "map: map[name:x] does not contain declared merge key: uid",
        ),
        ({"metadata": {"$deleteFromPrimitiveList/finalizers": "x"}}, "is a list of values"),
        ({"metadata": {"$retainKeys": "x"}}, "invalid patch format of retainKeys"),
        ([], "a strategic merge patch is an object"),
    ],
)
def test_a_directive_that_makes_no_sense_is_refused(patch: Any, sentence: str) -> None:
    """The error names the place."""
    with pytest.raises(PatchError) as caught:
        strategic_merge({"metadata": {}}, patch, "Secret")
    assert sentence in str(caught.value)


@given(objects, objects)
def test_without_directives_and_keyed_lists_both_merges_agree(target: dict[str, Any], patch: dict[str, Any]) -> None:
    """A strategic merge of maps is a merge patch."""
    assert strategic_merge(target, patch, "ConfigMap") == json_merge(target, patch)


@pytest.mark.parametrize(
    ("path", "times", "told"), [("/l/-", 40, "come to more than"), ("/a", 5000, "come to more than|too deep")]
)
def test_copies_cannot_fill_the_memory(path: str, times: int, told: str) -> None:
    """Each copy of the whole into itself doubles it, or makes it deeper: forty would be terabytes."""
    operations = [{"op": "copy", "from": "", "path": path}] * times
    with pytest.raises(PatchError, match=told):
        json_patch({"a": {}, "l": []}, operations)


def test_ordinary_copies_are_made() -> None:
    """And are independent of what they were copied from."""
    operations: list[Op] = [{"op": "copy", "from": "/a", "path": "/b"}, {"op": "add", "path": "/a/x", "value": 1}]
    assert json_patch({"a": {}}, operations) == {"a": {"x": 1}, "b": {}}
