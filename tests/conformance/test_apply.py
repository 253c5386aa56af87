"""Server-side apply: ownership of fields, conflicts, and removal of fields without an owner."""

from typing import Any

from tests.conformance.api import Api, Obj, Reply, config_map, widget
from tests.conformance.ways import JSON_PATCH

CORE = "/api/v1"
VERSION = "conformance.example.org/v1"


def owners(obj: Obj) -> dict[tuple[str, str, str], Any]:
    """fieldsV1 by manager, operation and subresource."""
    entries = obj["metadata"].get("managedFields", [])
    return {(e["manager"], e["operation"], e.get("subresource", "")): e["fieldsV1"] for e in entries}


def conflict(reply: Reply) -> tuple[int, str, str]:
    return reply.code, reply.reason, reply.message


def status(**fields: Any) -> Obj:
    return {"apiVersion": VERSION, "kind": "Widget", "metadata": {"name": "a"}, "status": fields}


async def test_apply_creates(api: Api) -> None:
    """The first apply creates, and its manager owns what it said and no default."""
    made = await api.apply(api.path(name="a"), widget(size=1, tags=["x"], ports=[{"name": "p", "port": 1}]), "one")

    assert made.code == 201
    [entry] = made.ok()["metadata"]["managedFields"]
    assert entry.pop("time")
    port: Obj = {".": {}, "f:name": {}, "f:port": {}}
    assert entry == {
        "apiVersion": VERSION,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:ports": {'k:{"name":"p"}': port}, "f:size": {}, "f:tags": {'v:"x"': {}}}},
        "manager": "one",
        "operation": "Apply",
    }


async def test_same_apply_changes_nothing(api: Api) -> None:
    """Applying the same again keeps resourceVersion and generation."""
    first = (await api.apply(api.path(name="a"), widget(size=1), "one")).ok()

    again = await api.apply(api.path(name="a"), widget(size=1), "one")

    assert (again.code, again.body) == (200, first)


async def test_conflict(api: Api) -> None:
    """Another's field is not changed: one conflict is told in a line, several grouped, places before what is below."""
    (await api.apply(api.path(name="a"), widget(size=1, atomic=["q"], labels={"k": "v"}), "one")).ok()

    single = await api.apply(api.path(name="a"), widget(size=2), "two")
    several = await api.apply(api.path(name="a"), widget(size=2, atomic=["z"], labels={"k": "w"}), "two")

    assert conflict(single) == (409, "Conflict", 'Apply failed with 1 conflict: conflict with "one": .spec.size')
    assert single.causes == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".spec.size"}
    ]
    assert several.message == (
        'Apply failed with 3 conflicts: conflicts with "one":\n- .spec.atomic\n- .spec.size\n- .spec.labels.k'
    )


async def test_force_takes_over(api: Api) -> None:
    """With force the field changes its owner."""
    (await api.apply(api.path(name="a"), widget(size=1, note="n"), "one")).ok()

    forced = (await api.apply(api.path(name="a"), widget(size=2), "two", force=True)).ok()

    assert forced["spec"] == {"size": 2, "note": "n"}
    assert owners(forced) == {
        ("one", "Apply", ""): {"f:spec": {"f:note": {}}},
        ("two", "Apply", ""): {"f:spec": {"f:size": {}}},
    }


async def test_shared_and_dropped(api: Api) -> None:
    """A field is removed when its last owner drops it and kept while another owns it; so are items of maps and sets."""
    path = api.path(name="a")
    (await api.apply(path, widget(size=1, tags=["x"], ports=[{"name": "p", "port": 1}]), "one")).ok()
    (await api.apply(path, widget(size=1, tags=["x", "y"], ports=[{"name": "q"}]), "two")).ok()

    one = (await api.apply(path, widget(), "one")).ok()
    two = (await api.apply(path, widget(), "two")).ok()

    assert one["spec"] == {"size": 1, "note": "plain", "tags": ["x", "y"], "ports": [{"name": "q"}]}
    assert two["spec"] == {"note": "plain"}


async def test_apply_after_update(api: Api) -> None:
    """What an update changed is the updater's, and an apply against it conflicts with name and version."""
    (await api.apply(api.path(name="a"), widget(size=1), "one")).ok()
    (await api.patch(api.path(name="a"), {"spec": {"size": 2}}, fieldManager="editor")).ok()

    refused = await api.apply(api.path(name="a"), widget(size=1), "one")

    sentence = f'Apply failed with 1 conflict: conflict with "editor" using {VERSION}: .spec.size'
    assert conflict(refused) == (409, "Conflict", sentence)


async def test_status_apart_from_spec(api: Api) -> None:
    """Status is applied through its subresource, spec through the main one; each leaves the other alone."""
    path = api.path(name="a")
    (await api.apply(path, {**widget(size=1), "status": {"phase": "no"}}, "one")).ok()

    applied = (await api.apply(api.path(name="a", sub="status"), {**status(phase="up"), "spec": {"size": 9}}, "s")).ok()
    refused = await api.apply(api.path(name="a", sub="status"), status(phase="down"), "t")
    forced = (await api.apply(api.path(name="a", sub="status"), status(phase="down"), "t", force=True)).ok()

    assert (applied["spec"]["size"], applied["status"]) == (1, {"phase": "up"})
    message = 'Apply failed with 1 conflict: conflict with "s" with subresource "status": .status.phase'
    assert refused.message == message
    assert owners(forced)["t", "Apply", "status"] == {"f:status": {"f:phase": {}}}
    assert forced["metadata"]["generation"] == 1


async def test_apply_needs_a_manager(api: Api) -> None:
    """An apply without fieldManager is Invalid."""
    refused = await api.apply(api.path(name="a"), widget(), "")

    assert (refused.code, refused.reason) == (422, "Invalid")
    assert refused.message == (
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
    )


async def test_apply_that_does_not_fit(api: Api) -> None:
    """Unknown fields, types and duplicates of an applied configuration are told as an error without a reason."""
    path, head = api.path(name="a"), f"failed to create typed patch object (/a; {VERSION}, Kind=Widget): "
    refused = {
        ".spec.foo: field not declared in schema": await api.apply(path, widget(foo=1), "m"),
        ".spec.size: expected numeric (int or float), got string": await api.apply(path, widget(size="x"), "m"),
        '.spec.tags: duplicate entries for key [="a"]': await api.apply(path, widget(tags=["a", "a"]), "m"),
    }

    for sentence, reply in refused.items():
        assert conflict(reply) == (500, "", head + sentence)


async def test_managed_fields_are_not_applied(api: Api) -> None:
    """Not even an empty list of managedFields may be applied."""
    refused = await api.apply(api.path(name="a"), {**widget(), "metadata": {"name": "a", "managedFields": []}}, "m")

    assert conflict(refused) == (400, "BadRequest", "metadata.managedFields must be nil")


async def test_an_applied_version(api: Api) -> None:
    """A resourceVersion that is applied must be the newest; null is none, and what is no number cannot be read."""
    path = api.path("configmaps", "a", base=CORE)
    made = (await api.apply(path, config_map(x="1"), "one")).ok()["metadata"]["resourceVersion"]

    def versioned(version: object) -> Obj:
        return {**config_map(x="2"), "metadata": {"name": "a", "resourceVersion": version}}

    stale = await api.apply(path, versioned("1"), "one")
    garbled = await api.apply(path, versioned("x"), "one")

    assert (stale.code, stale.reason) == (409, "Conflict")
    assert conflict(garbled) == (500, "", 'strconv.ParseUint: parsing "x": invalid syntax')
    assert (await api.apply(path, versioned(made), "one")).ok()["data"] == {"x": "2"}
    for none in (None, "", "0"):
        assert (await api.apply(path, versioned(none), "one")).code == 200


async def test_nothing_is_applied(api: Api) -> None:
    """Empty labels have an owner, an empty list has none; null is no value, except where there is a default."""
    made = (await api.apply(api.path(name="a"), {**widget(tags=[]), "metadata": {"name": "a", "labels": {}}}, "m")).ok()
    refused = await api.apply(api.path(name="a"), widget(size=None), "m")
    defaulted = await api.apply(api.path(name="a"), widget(note=None), "m")

    assert "labels" not in made["metadata"]
    assert owners(made) == {("m", "Apply", ""): {"f:metadata": {"f:labels": {}}}}
    told = 'Invalid value: "null": spec.size in body must be of type integer: "null"'
    assert refused.causes == [{"reason": "FieldValueTypeInvalid", "message": told, "field": "spec.size"}]
    assert defaulted.ok()["spec"]["note"] == "plain"


async def test_a_map_that_loses_its_items(api: Api) -> None:
    """A map that one manager applies empty and another drops becomes null, which the schema refuses."""
    path = api.path(name="a")
    (await api.apply(path, widget(size=1, labels={"k": "1"}), "one")).ok()
    (await api.apply(path, widget(labels={}), "two")).ok()

    refused = await api.apply(path, widget(size=1), "one")

    assert (refused.code, [cause["field"] for cause in refused.causes]) == (422, ["spec.labels"])
    assert (await api.get(path)).ok()["spec"]["labels"] == {"k": "1"}


async def test_items_keep_an_order(api: Api) -> None:
    """Applied items come in their order; items of others stay where a walk along both lists meets them."""
    path = api.path(name="a")
    (await api.apply(path, widget(tags=["p", "q", "r"]), "one")).ok()

    merged = (await api.apply(path, widget(tags=["r", "p"]), "two")).ok()

    assert merged["spec"]["tags"] == ["q", "r", "p"]


async def test_an_item_goes_with_its_applier(api: Api) -> None:
    """An item that other managers only changed is removed when the manager that applied it drops it."""
    path = api.path(name="a")
    (await api.apply(path, widget(ports=[{"name": "p", "port": 1}, {"name": "q"}]), "one")).ok()
    change = [{"op": "replace", "path": "/spec/ports/0/port", "value": 2}]
    (await api.patch(path, change, JSON_PATCH, fieldManager="editor")).ok()

    dropped = (await api.apply(path, widget(ports=[{"name": "q"}]), "one")).ok()

    assert dropped["spec"]["ports"] == [{"name": "q"}]


async def test_managed_fields_are_reset(api: Api) -> None:
    """Writing [{}] forgets the owners; the next apply finds everything owned by before-first-apply."""
    path = api.path(name="a")
    (await api.apply(path, widget(size=1), "one")).ok()

    reset = (await api.patch(path, {"metadata": {"managedFields": [{}]}})).ok()
    applied = (await api.apply(path, widget(size=1), "one")).ok()

    assert owners(reset) == {}
    assert owners(applied) == {
        ("one", "Apply", ""): {"f:spec": {"f:size": {}}},
        ("before-first-apply", "Update", ""): {"f:spec": {".": {}, "f:note": {}, "f:size": {}}},
    }


async def test_config_maps_are_shared(api: Api) -> None:
    """Keys of a ConfigMap are owned one by one."""
    path = api.path("configmaps", "a", base=CORE)
    (await api.apply(path, config_map(x="1", y="2"), "one")).ok()

    refused = await api.apply(path, config_map(x="2"), "two")
    shared = (await api.apply(path, config_map(x="1", z="3"), "two")).ok()
    dropped = (await api.apply(path, config_map(y="2"), "one")).ok()

    assert refused.message == 'Apply failed with 1 conflict: conflict with "one": .data.x'
    assert shared["data"] == {"x": "1", "y": "2", "z": "3"}
    assert dropped["data"] == {"x": "1", "y": "2", "z": "3"}
    assert owners(dropped)["one", "Apply", ""] == {"f:data": {"f:y": {}}}
