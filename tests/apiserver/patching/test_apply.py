"""Server-side apply and tracking of owners, as KEP-555 describes them."""

import copy
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metal.apiserver.patching.apply import ApplyConflict, apply, track_update
from metal.apiserver.patching.field_set import paths
from metal.apiserver.patching.managed_fields import ANCIENT, MAX_UPDATES, UPDATE, make_entry, union_of
from metal.apiserver.schema.schema import Compiled
from tests.apiserver.schema.schemas import THING, obj

SCHEMA = Compiled(THING)
NOW = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)

Obj = dict[str, Any]


def create(spec: Any, manager: str = "creator", **more: Any) -> Obj:
    """An object that a client created."""
    return track_update(None, obj(spec, **more), manager=manager, schema=SCHEMA, now=NOW)


def update(old: Obj, spec: Any, manager: str = "editor", now: datetime = LATER) -> Obj:
    """The object with another spec, written by another manager."""
    return track_update(old, {**old, "spec": spec}, manager=manager, schema=SCHEMA, now=now)


def put(live: Obj | None, spec: Any, manager: str = "applier", *, force: bool = False, **more: Any) -> Obj:
    """The object after an apply."""
    given = obj(spec)
    return apply(live, given, manager=manager, force=force, schema=SCHEMA, now=more.pop("now", LATER), **more)


def owned(thing: Obj) -> dict[str, set[str]]:
    """Who owns which paths."""
    return {entry["manager"]: set(paths(entry["fieldsV1"])) for entry in thing["metadata"].get("managedFields", ())}


def test_a_creator_owns_what_it_wrote_and_nothing_of_the_identity() -> None:
    """Name, uid, kind and similar fields have no owner; labels have one."""
    given = obj({"text": "x"})
    given["metadata"] |= {
        "uid": "1",
        "resourceVersion": "5",
        "generation": 1,
        "creationTimestamp": "x",
        "labels": {"a": "b"},
    }
    made = track_update(None, given, manager="creator", schema=SCHEMA, now=NOW)
    assert made["metadata"]["managedFields"] == [
        {
            "apiVersion": "example.com/v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
                "f:spec": {".": {}, "f:text": {}},
            },
            "manager": "creator",
            "operation": "Update",
            "time": "2024-05-06T07:08:09Z",
        }
    ]


def test_an_editor_takes_over_what_it_changes() -> None:
    """A changed field moves from its old owner to the new one."""
    after = update(create({"text": "x", "number": 1}), {"text": "y", "number": 1})
    assert owned(after) == {"creator": {".spec", ".spec.number"}, "editor": {".spec.text"}}


def test_a_removed_field_leaves_every_owner() -> None:
    """Missing fields have no owner, and the entry of a manager without fields is removed."""
    shared = update(create({"number": 1}), {"number": 1, "text": "y"})
    after = update(shared, {"number": 1}, manager="third")
    assert owned(after) == {"creator": {".spec", ".spec.number"}}


def test_nothing_changed_means_nothing_tracked() -> None:
    """Writing the same values keeps entries and times as they are."""
    before = create({"text": "x"})
    assert update(before, {"text": "x"}) == before


def test_times_move_only_for_the_manager_that_changed_something() -> None:
    """Another manager's time stays, the writer's follows."""
    after = update(create({"text": "x", "number": 1}), {"text": "y", "number": 1})
    times = {entry["manager"]: entry["time"] for entry in after["metadata"]["managedFields"]}
    assert times == {"creator": "2024-05-06T07:08:09Z", "editor": "2024-05-06T07:09:09Z"}


def test_status_writes_are_kept_apart() -> None:
    """The same manager has one entry for spec and one for status."""
    before = create({"text": "x"}, manager="operator")
    new = {**before, "status": {"phase": "Ready"}}
    after = track_update(before, new, manager="operator", schema=SCHEMA, now=LATER, subresource="status")
    entries = after["metadata"]["managedFields"]
    assert [(entry["manager"], entry.get("subresource")) for entry in entries] == [
        ("operator", None),
        ("operator", "status"),
    ]
    assert set(paths(entries[1]["fieldsV1"])) == {".status", ".status.phase"}


def test_reset_stops_tracking_until_the_next_apply() -> None:
    """[{}] wipes the owners; the first apply afterwards finds one owner of everything."""
    wiped = update(create({"text": "x"}), {"text": "x"})
    wiped["metadata"] = {**wiped["metadata"], "managedFields": [{}]}
    bare = track_update(create({"text": "x"}), wiped, manager="editor", schema=SCHEMA, now=LATER)
    assert "managedFields" not in bare["metadata"]
    assert "managedFields" not in update(bare, {"text": "z"})["metadata"]
    with pytest.raises(ApplyConflict) as caught:
        put(bare, {"text": "y"})
    assert caught.value.conflicts == [("before-first-apply", ".spec.text")]


@pytest.mark.parametrize("given", [[], None])
def test_an_empty_list_does_not_reset(given: Any) -> None:
    """Only [{}] wipes; a client that sends nothing keeps what was."""
    before = create({"text": "x"})
    new = {**before, "metadata": {**before["metadata"], "managedFields": given}}
    after = track_update(before, new, manager="editor", schema=SCHEMA, now=LATER)
    assert owned(after) == owned(before)


def test_many_updaters_are_folded_into_one() -> None:
    """Entries of updates are limited; the oldest keep their fields under a common name."""
    thing = create({"map": {"start": ""}})
    for number in range(MAX_UPDATES + 5):
        spec = {"map": {**thing["spec"]["map"], f"k{number}": ""}}
        thing = update(thing, spec, manager=f"m{number}", now=NOW + timedelta(seconds=number + 1))
    assert len(thing["metadata"]["managedFields"]) == MAX_UPDATES
    assert {".spec.map.start", ".spec.map.k0", ".spec.map.k5"} <= owned(thing)[ANCIENT]
    assert set().union(*owned(thing).values()) >= {f".spec.map.k{n}" for n in range(MAX_UPDATES + 5)}


def test_apply_creates() -> None:
    """Without a live object the applied one is the result, owned by Apply."""
    made = put(None, {"text": "x", "nested": {"text": "y"}})
    assert made["spec"] == {"text": "x", "nested": {"text": "y"}}
    [entry] = made["metadata"]["managedFields"]
    assert (entry["operation"], entry["fieldsV1"]) == ("Apply", {"f:spec": {"f:text": {}, "f:nested": {"f:text": {}}}})


def test_apply_again_changes_nothing() -> None:
    """The same configuration twice: the very same object, times included."""
    once = put(create({"number": 1}), {"text": "x"})
    assert put(once, {"text": "x"}, now=LATER + timedelta(days=1)) is once


def test_a_field_no_longer_applied_goes() -> None:
    """A field that this manager applied and no longer applies is removed, unless another manager owns it."""
    once = put(create({"number": 1}), {"text": "x", "nested": {"text": "a", "other": "b"}})
    after = put(once, {"nested": {"text": "a"}})
    assert after["spec"] == {"number": 1, "nested": {"text": "a"}}


def test_a_field_that_another_applied_too_stays() -> None:
    """Shared ownership: both said the same, so the second one to leave takes it away."""
    both = put(put(None, {"text": "x"}, "one"), {"text": "x"}, "two")
    assert owned(both) == {"one": {".spec.text"}, "two": {".spec.text"}}
    left = put(both, {"number": 1}, "one")
    assert left["spec"] == {"text": "x", "number": 1}
    assert put(left, {"map": {}}, "two")["spec"] == {"number": 1, "map": {}}


def test_a_map_emptied_of_all_that_was_applied_goes_as_a_whole() -> None:
    """A parent that holds nothing owned any more does not stay behind as an empty shell."""
    once = put(create({"number": 1}), {"nested": {"text": "a"}})
    assert put(once, {"text": "x"})["spec"] == {"number": 1, "text": "x"}


def test_conflicts_read_as_in_kubernetes() -> None:
    """One conflict on one line; several grouped by manager. The object stays as it was."""
    live = create({"text": "x", "number": 1}, manager="kubectl-edit")
    before = copy.deepcopy(live)
    with pytest.raises(ApplyConflict) as caught:
        put(live, {"text": "y"})
    assert (
        str(caught.value)
        == 'Apply failed with 1 conflict: conflict with "kubectl-edit" using example.com/v1: .spec.text'
    )
    assert caught.value.conflicts == [("kubectl-edit", ".spec.text")]
    assert caught.value.causes == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "kubectl-edit" using example.com/v1',
            "field": ".spec.text",
        }
    ]
    with pytest.raises(ApplyConflict) as caught:
        put(live, {"text": "y", "number": 2})
    assert str(caught.value) == (
        'Apply failed with 2 conflicts: conflicts with "kubectl-edit" using example.com/v1:\n'
        "- .spec.number\n- .spec.text"
    )
    assert live == before


def test_a_conflict_with_an_applier_names_no_version() -> None:
    """Appliers are known by their name alone."""
    with pytest.raises(ApplyConflict, match=r'conflict with "one": \.spec\.text$'):
        put(put(None, {"text": "x"}, "one"), {"text": "y"}, "two")


def test_force_takes_the_field() -> None:
    """With force the value and the ownership change hands."""
    after = put(create({"text": "x", "number": 1}), {"text": "y"}, force=True)
    assert after["spec"] == {"text": "y", "number": 1}
    assert owned(after) == {"applier": {".spec.text"}, "creator": {".spec", ".spec.number"}}


def test_the_same_value_is_no_conflict() -> None:
    """Applying what is already there shares the field."""
    after = put(create({"text": "x"}), {"text": "x"})
    assert owned(after)["applier"] == {".spec.text"}
    assert ".spec.text" in owned(after)["creator"]


def test_lists_merge_by_key_and_keep_the_items_of_others() -> None:
    """Applied items come in their order, others stay behind the neighbour that they followed."""
    live = create({"ports": [{"port": 1}, {"port": 2, "name": "b"}, {"port": 3}]})
    after = put(live, {"ports": [{"port": 9}, {"port": 2}]})
    assert [item["port"] for item in after["spec"]["ports"]] == [1, 9, 2, 3]
    assert after["spec"]["ports"][2] == {"port": 2, "name": "b"}
    gone = put(after, {"ports": [{"port": 2}]})
    assert [item["port"] for item in gone["spec"]["ports"]] == [1, 2, 3]


def test_sets_and_finalizers_merge_by_value() -> None:
    """Two appliers each keep their own tag; the last owner takes it away."""
    both = put(put(None, {"tags": ["a", "s"]}, "one"), {"tags": ["s", "b"]}, "two")
    assert sorted(both["spec"]["tags"]) == ["a", "b", "s"]
    assert sorted(put(both, {"tags": ["a"]}, "one")["spec"]["tags"]) == ["a", "b", "s"]
    assert sorted(put(both, {"tags": ["b"]}, "two")["spec"]["tags"]) == ["a", "b", "s"]
    alone = put(put(both, {"tags": ["a"]}, "one"), {"tags": ["b"]}, "two")
    assert sorted(alone["spec"]["tags"]) == ["a", "b"]


def test_atomic_parts_are_replaced() -> None:
    """An atomic map or list has one owner and no merging."""
    live = put(None, {"atomic": {"a": "1", "b": "2"}, "list": ["x", "y"]})
    after = put(live, {"atomic": {"b": "3"}, "list": ["z"]})
    assert after["spec"] == {"atomic": {"b": "3"}, "list": ["z"]}
    with pytest.raises(ApplyConflict, match=r"\.spec\.atomic$"):
        put(after, {"atomic": {"a": "1"}}, "other")


def test_owner_references_merge_by_uid() -> None:
    """metadata follows its own schema, with or without one for the kind."""
    first, second = ({"apiVersion": "v1", "kind": "A", "name": n, "uid": n} for n in ("x", "y"))
    live = {**obj({}), "metadata": {"name": "one", "ownerReferences": [first], "finalizers": ["f"]}}
    live = track_update(None, live, manager="creator", schema=None, now=NOW)
    given = {**obj({}), "metadata": {"name": "one", "ownerReferences": [second], "finalizers": ["g"]}}
    after = apply(live, given, manager="applier", force=False, schema=None, now=LATER)
    assert after["metadata"]["ownerReferences"] == [first, second]
    assert sorted(after["metadata"]["finalizers"]) == ["f", "g"]
    assert owned(after)["applier"] >= {'.metadata.ownerReferences[uid="y"]', '.metadata.finalizers[="g"]'}


def test_status_is_applied_through_its_subresource_only() -> None:
    """The main resource ignores status; the status subresource ignores everything else."""
    given = {**obj({"text": "x"}), "status": {"phase": "Ready"}}
    main = apply(None, given, manager="m", force=False, schema=SCHEMA, now=NOW)
    assert "status" not in main
    assert owned(main) == {"m": {".spec.text"}}
    given["spec"] = {"text": "other"}
    after = apply(main, given, manager="m", force=False, schema=SCHEMA, now=LATER, subresource="status")
    assert (after["spec"], after["status"]) == ({"text": "x"}, {"phase": "Ready"})
    assert [entry.get("subresource") for entry in after["metadata"]["managedFields"]] == [None, "status"]


def test_kinds_without_a_status_subresource_apply_status_with_the_rest() -> None:
    """`reset` says which fields are kept for subresources."""
    given = {**obj({}), "status": {"phase": "x"}}
    made = apply(None, given, manager="m", force=False, schema=SCHEMA, now=NOW, reset=())
    assert made["status"] == {"phase": "x"}


def test_kubectl_may_take_over_what_it_applied_client_side() -> None:
    """Fields of the last-applied annotation are no conflict for kubectl, unless they were changed since."""
    note = json.dumps(obj({"text": "x", "number": 1}))
    live = obj({"text": "x", "number": 1})
    live["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": note}
    live = track_update(None, live, manager="kubectl-client-side-apply", schema=SCHEMA, now=NOW)
    assert put(live, {"text": "y"}, "kubectl")["spec"]["text"] == "y"
    with pytest.raises(ApplyConflict):
        put(live, {"text": "y"}, "somebody")
    edited = update(live, {"text": "x", "number": 2})
    with pytest.raises(ApplyConflict) as caught:
        put(edited, {"number": 3}, "kubectl")
    assert caught.value.conflicts == [("editor", ".spec.number")]


def test_entries_of_updates_belong_to_their_api_version() -> None:
    """The same updater in two versions has two entries."""
    before = create({"text": "x", "number": 1}, manager="m")
    newer = {**before, "apiVersion": "example.com/v2", "spec": {"text": "y", "number": 1}}
    after = track_update(before, newer, manager="m", schema=SCHEMA, now=LATER)
    assert [entry["apiVersion"] for entry in after["metadata"]["managedFields"]] == ["example.com/v1", "example.com/v2"]


texts = st.sampled_from(["x", "y", "z"])
ports = st.lists(
    st.fixed_dictionaries({"port": st.integers(1, 4)}, optional={"name": texts}),
    max_size=3,
    unique_by=lambda p: p["port"],
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "text": texts,
        "number": st.integers(0, 2),
        "nested": st.fixed_dictionaries({}, optional={"text": texts, "other": texts}),
        "ports": ports,
        "tags": st.lists(texts, unique=True, max_size=3),
        "atomic": st.fixed_dictionaries({}, optional={"a": texts, "b": texts}),
        "open": st.dictionaries(texts, st.integers(0, 1) | st.dictionaries(texts, texts, max_size=2), max_size=2),
        "map": st.dictionaries(texts, texts, max_size=3),
        "list": st.lists(texts, max_size=2),
    },
)


def leaves(thing: Obj) -> set[str]:
    """Every place of an object that can be owned."""
    bare = {**thing, "metadata": {"name": "one"}}
    found = track_update(None, bare, manager="x", schema=SCHEMA, now=NOW)
    return owned(found).get("x", set())


def everything_owned(thing: Obj) -> set[str]:
    """The union of all sets."""
    return set(paths(union_of(entry["fieldsV1"] for entry in thing["metadata"].get("managedFields", ()))))


@given(specs, specs)
@settings(max_examples=100)
def test_applying_twice_is_applying_once(first: Any, second: Any) -> None:
    """A second apply of the same configuration returns the same object, and the applied values are there."""
    live = create(first)
    before = copy.deepcopy(live)
    once = put(live, second, force=True)
    assert put(once, second, now=LATER + timedelta(hours=1)) == once
    assert live == before
    assert {key: once["spec"][key] for key in ("text", "number", "list", "atomic") if key in second} == {
        key: second[key] for key in ("text", "number", "list", "atomic") if key in second
    }


@given(specs, specs, specs)
@settings(max_examples=100)
def test_ownership_never_points_at_what_is_not_there(first: Any, second: Any, third: Any) -> None:
    """After creates, applies and updates in a row every owned path exists."""
    thing = create(first)
    thing = put(thing, second, "one", force=True)
    assert everything_owned(thing) <= leaves(thing)
    thing = update(thing, third)
    assert everything_owned(thing) <= leaves(thing)
    thing = put(thing, first, "two", force=True)
    thing = put(thing, {"text": "x"}, "one", force=True)
    assert everything_owned(thing) <= leaves(thing)


@given(specs, specs)
@settings(max_examples=100)
def test_every_new_value_has_an_owner(first: Any, second: Any) -> None:
    """What an update adds or changes belongs to the one who wrote it."""
    before = create(first)
    after = update(before, second)
    new = leaves(after) - leaves(before)
    assert new <= owned(after).get("editor", set())
    assert everything_owned(after) >= leaves(after) - leaves(before)


@given(specs, specs)
@settings(max_examples=100)
def test_leaving_takes_along_what_was_brought(base: Any, mine: Any) -> None:
    """An apply that shares nothing with others, then an apply of nothing, gives back the object that was.

    But for empty lists of items, which nobody owns, and a spec that holds nothing any more, which is null.
    """
    live = create({key: value for key, value in base.items() if key not in mine})
    there = put(live, mine, force=True)
    back = put(there, {}, force=True)
    left = back["spec"] or {}
    assert {k: v for k, v in left.items() if k in mine and k not in live["spec"] and v != []} == {}
    assert {k: v for k, v in left.items() if k in live["spec"]} == live["spec"]


def test_a_broken_list_of_entries_is_not_taken_from_a_client() -> None:
    """managedFields that make no sense are ignored in favour of the stored ones."""
    before = create({"text": "x"})
    new = {**before, "metadata": {**before["metadata"], "managedFields": [{"manager": "x", "operation": "Steal"}]}}
    assert owned(track_update(before, new, manager="e", schema=SCHEMA, now=LATER)) == owned(before)


def test_a_client_may_hand_over_ownership() -> None:
    """A well-formed list that a client writes replaces the stored one."""
    before = create({"text": "x"})
    entry = make_entry(
        "heir", UPDATE, {"f:spec": {"f:text": {}}}, api_version="example.com/v1", time="2024-01-01T00:00:00Z"
    )
    new = {**before, "metadata": {**before["metadata"], "managedFields": [entry]}}
    assert owned(track_update(before, new, manager="e", schema=SCHEMA, now=LATER)) == {"heir": {".spec.text"}}


def test_unknown_fields_come_through_but_belong_to_nobody() -> None:
    """The caller reports and prunes them; ownership and times know nothing of them."""
    live = put(None, {"text": "x"})
    after = put(live, {"text": "x", "typo": 1, "nested": {"typo": 2}}, now=LATER + timedelta(days=1))
    assert (after["spec"]["typo"], after["spec"]["nested"]) == (1, {"typo": 2})
    assert owned(after) == {"applier": {".spec.text", ".spec.nested"}}
    again = put(live, {"text": "x", "typo": 1}, now=LATER + timedelta(days=1))
    assert again["metadata"] == live["metadata"]
    assert SCHEMA.prune(again) == live
