"""What changes in a moved object: UIDs and generations at any depth, and nothing else."""

import datetime
import typing
from typing import Any

import msgspec
import pytest

from metal.api.kinds import kinds
from metal.api.meta import Kind, Model
from metal.move.documents import Doc, Moved, converted, digest, kinds_in_order, without_server_fields

KINDS = kinds()
NOTE = "metal.ironcore.dev/moved-by"
MOVED = {"old": Moved("old", 7, "new", 1), "owner": Moved("owner", 3, "new-owner", 2)}


def _doc(**more: Any) -> Doc:
    meta = {
        "name": "s1", "uid": "old", "resourceVersion": "5", "generation": 7, "creationTimestamp": "2026-01-01",
        "managedFields": [{}], "annotations": {NOTE: "abc", "kept": "yes"}, "labels": {"a": "b"}, "finalizers": ["f"],
    }  # fmt: skip
    return {"kind": "Server", "apiVersion": "v1", "metadata": {**meta, **more.pop("metadata", {})}, **more}


def test_what_an_api_gives_by_itself_stays_behind_and_the_rest_comes_along() -> None:
    """Labels, annotations and finalizers are kept; UID, versions, times and field managers are not."""
    assert converted(_doc(), MOVED, NOTE)["metadata"] == {
        "name": "s1", "labels": {"a": "b"}, "finalizers": ["f"], "annotations": {"kept": "yes"}, "ownerReferences": [],
    }  # fmt: skip


def test_owners_get_their_new_uids_and_an_owner_that_does_not_move_is_left_out() -> None:
    """With an unknown UID the garbage collector at the target would delete the object."""
    owners = [{"kind": "BMC", "name": "b", "uid": "owner"}, {"kind": "Cluster", "name": "c", "uid": "elsewhere"}]
    found = converted(_doc(metadata={"ownerReferences": owners}), MOVED, NOTE)
    assert found["metadata"]["ownerReferences"] == [{"kind": "BMC", "name": "b", "uid": "new-owner"}]


@pytest.mark.parametrize(("seen", "expected"), [(7, 1), (6, -1), (8, -1)])
def test_a_generation_that_was_the_present_one_still_is_and_an_older_one_stays_stale(seen: int, expected: int) -> None:
    """Generations start again; 0 would mean that no observedGeneration was ever set."""
    status = {"observedGeneration": seen, "conditions": [{"type": "Ready", "observedGeneration": seen}]}
    found = converted(_doc(status=status), MOVED, NOTE)["status"]
    assert (found["observedGeneration"], found["conditions"][0]["observedGeneration"]) == (expected, expected)


def test_generations_of_other_objects_follow_those() -> None:
    """A boot window has its configuration's generation, refused credentials that of their BMCSecret."""
    status = {
        "bootWindow": {"configUID": "owner", "configGeneration": 3},
        "refused": {"secretUID": "owner", "secretGeneration": 2},
    }
    found = converted(_doc(status=status), MOVED, NOTE)["status"]
    assert found["bootWindow"] == {"configUID": "new-owner", "configGeneration": 2}
    assert found["refused"] == {"secretUID": "new-owner", "secretGeneration": -1}


def test_which_boots_a_claim_had_moves_as_it_is() -> None:
    """They are the claim's own numbers, so that no boot is repeated at the target."""
    status = {"tenancy": {"boot": {"claimUID": "owner", "bootGeneration": 3, "requestedGeneration": 4}}}
    found = converted(_doc(status=status), MOVED, NOTE)["status"]
    assert found["tenancy"]["boot"] == {"claimUID": "new-owner", "bootGeneration": 3, "requestedGeneration": 4}
    claim = {"spec": {"bootGeneration": 4}, "status": {"bootGeneration": 3}}
    moved = converted(_doc(**claim), MOVED, NOTE)
    assert (moved["spec"], moved["status"]) == (claim["spec"], claim["status"])


def test_a_digest_is_the_same_for_what_is_the_same() -> None:
    """The order of keys and empty fields makes no difference; a label does."""
    one, other = (
        without_server_fields(_doc(spec={"a": 1, "b": []}), NOTE),
        without_server_fields(_doc(spec={"a": 1}), NOTE),
    )
    assert digest(one) == digest(other)
    assert digest(one) != digest({**one, "metadata": {**one["metadata"], "labels": {}}})


def _fields(struct: type[msgspec.Struct], path: str = "") -> list[tuple[str, Any]]:
    """Every field of a struct and of its nested structs, by JSON name."""
    found: list[tuple[str, Any]] = []
    for field in msgspec.structs.fields(struct):
        where = f"{path}.{field.encode_name}"
        found.append((where, field.type))
        for inner in _structs(field.type):
            found += _fields(inner, where)
    return found


def _structs(annotation: Any) -> list[type[msgspec.Struct]]:
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return [annotation]
    return [inner for argument in typing.get_args(annotation) for inner in _structs(argument)]


def _generations() -> set[str]:
    return {
        path.rsplit(".", 1)[1]
        for kind in KINDS.all()
        for path, _ in _fields(kind.struct)
        if "generation" in path.rsplit(".", 1)[1].lower() and ".metadata." not in path
    }


def test_every_field_that_holds_a_generation_is_one_that_a_move_knows() -> None:
    """A new field of this kind must be added here with the object whose generation it is."""
    asked_by_hand = {"bootGeneration", "requestedGeneration"}  # a claim's own count of boots, which moves as it is
    assert _generations() == {"observedGeneration", "configGeneration", "secretGeneration"} | asked_by_hand


def _filled(struct: type[msgspec.Struct], uid: str) -> Doc:
    """An object of this struct in which every UID field and the tenant has this UID."""
    doc: Doc = {}
    for field in msgspec.structs.fields(struct):
        inner = _structs(field.type)
        if inner:
            one = _filled(inner[0], uid)
            doc[field.encode_name] = [one] if "tuple" in str(field.type) else one
        elif field.encode_name.lower() in ("uid", "tenant") or field.encode_name.endswith("UID"):
            doc[field.encode_name] = uid
        elif field.type is datetime.datetime:
            doc[field.encode_name] = "2026-01-01T00:00:00Z"
    return doc


@pytest.mark.parametrize("kind", KINDS.all(), ids=lambda kind: kind.kind)
def test_no_field_keeps_the_uid_of_an_object_that_moved(kind: Kind[Any]) -> None:
    """Every uid, UID and tenant field at any depth names the new object."""
    doc = {**_filled(kind.struct, "owner"), "kind": kind.kind}
    doc["metadata"] = {"name": "x", "uid": "old", "ownerReferences": [{"uid": "owner"}]}
    assert '"owner"' not in msgspec.json.encode(converted(doc, MOVED, NOTE)).decode()


def test_owners_come_before_what_they_own() -> None:
    """The order in which kinds are created."""
    names = [kind.kind for kind in kinds_in_order(KINDS)]
    for owner, owned in (("BMC", "Server"), ("Server", "ServerBootConfiguration"),
                         ("ServerClaim", "ServerBootConfiguration"), ("ServerBootConfiguration", "IPXEBootConfig"),
                         ("ServerBootConfiguration", "Secret"), ("Server", "ConfigMap")):  # fmt: skip
        assert names.index(owner) < names.index(owned)
