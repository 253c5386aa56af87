"""JSON patch, merge patch and strategic merge patch."""

from typing import Any

import pytest

from tests.conformance.api import Api, config_map, widget
from tests.conformance.ways import JSON_PATCH, STRATEGIC

CORE = "/api/v1"


async def test_json_patch_does_all_six(api: Api) -> None:
    """add, replace, remove, move, copy and test work on one document, in order."""
    (await api.create(api.path(), widget(size=1, tags=["x", "y"], labels={"a": "b"}))).ok()
    patch = [
        {"op": "test", "path": "/spec/size", "value": 1},
        {"op": "replace", "path": "/spec/size", "value": 2},
        {"op": "add", "path": "/spec/tags/0", "value": "z"},
        {"op": "copy", "from": "/spec/labels/a", "path": "/spec/labels/c~1d"},
        {"op": "move", "from": "/spec/labels/a", "path": "/spec/labels/e"},
        {"op": "remove", "path": "/spec/tags/-1"},
    ]

    changed = (await api.patch(api.path(name="a"), patch, JSON_PATCH)).ok()

    assert changed["spec"] == {"size": 2, "note": "plain", "tags": ["z", "x"], "labels": {"c/d": "b", "e": "b"}}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/spec/size", "value": 2},
        {"op": "remove", "path": "/spec/nope"},
        {"op": "add", "path": "/spec/nope/x", "value": 1},
        {"op": "add", "path": "/spec/tags/17", "value": "x"},
        {"op": "move", "from": "/spec/nope", "path": "/spec/size"},
        {"op": "jump", "path": "/spec/size"},
    ],
)
async def test_json_patch_that_does_not_fit(api: Api, operation: Any) -> None:
    """An operation that fails refuses the whole patch, without saying why."""
    made = (await api.create(api.path(), widget(size=1, tags=[]))).ok()

    refused = await api.patch(api.path(name="a"), [operation], JSON_PATCH)

    assert (refused.code, refused.reason) == (422, "Invalid")
    assert refused.message == "the server rejected our request due to an error in our request"
    assert (await api.get(api.path(name="a"))).ok() == made


async def test_json_patch_of_another_shape(api: Api) -> None:
    """A JSON patch that is no list is 400, one of more than 10,000 operations 413."""
    (await api.create(api.path(), widget(size=1))).ok()

    shape = await api.patch(api.path(name="a"), {"op": "add"}, JSON_PATCH)
    many = await api.patch(api.path(name="a"), [{"op": "test", "path": "/spec/size", "value": 1}] * 10_001, JSON_PATCH)

    told = "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
    assert (shape.code, shape.message) == (400, told)
    told = "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    assert (many.code, many.message) == (413, told)


@pytest.mark.parametrize(
    "patch", [{}, {"spec": {"size": 1}}, {"metadata": {"generation": 9}}, {"status": {"phase": "x"}}]
)
async def test_patch_that_changes_nothing(api: Api, patch: Any) -> None:
    """No-op patches keep resourceVersion and generation."""
    made = (await api.create(api.path(), widget(size=1))).ok()

    assert (await api.patch(api.path(name="a"), patch)).ok() == made


async def test_merge_patch(api: Api) -> None:
    """null removes, objects merge, lists are replaced; a default comes back."""
    (await api.create(api.path(), widget(size=1, note="n", tags=["x"], labels={"a": "b"}))).ok()
    patch = {"spec": {"size": None, "note": None, "tags": ["y"], "labels": {"c": "d"}}}

    changed = (await api.patch(api.path(name="a"), patch)).ok()

    assert changed["spec"] == {"note": "plain", "tags": ["y"], "labels": {"a": "b", "c": "d"}}
    assert changed["metadata"]["generation"] == 2


async def test_patch_with_a_version(api: Api) -> None:
    """A patch that names an old resourceVersion is a Conflict; one that removes it is Invalid."""
    (await api.create(api.path(), widget(size=1))).ok()

    stale = await api.patch(api.path(name="a"), {"metadata": {"resourceVersion": "1"}, "spec": {"size": 2}})
    gone = await api.patch(api.path(name="a"), {"metadata": {"resourceVersion": None}, "spec": {"size": 2}})

    assert (stale.code, stale.reason) == (409, "Conflict")
    assert (gone.code, [cause["field"] for cause in gone.causes]) == (422, ["metadata.resourceVersion"])


async def test_patch_of_identity(api: Api) -> None:
    """uid and kind cannot be patched (422), nor the name (400)."""
    (await api.create(api.path(), widget(size=1))).ok()

    uid = await api.patch(api.path(name="a"), {"metadata": {"uid": "x"}})
    kind = await api.patch(api.path(name="a"), {"kind": "Gadget"})
    name = await api.patch(api.path(name="a"), {"metadata": {"name": "b"}})

    tail = 'metadata.uid: Invalid value: "x": field is immutable'
    assert (uid.code, uid.message) == (422, f'Widget.conformance.example.org "a" is invalid: {tail}')
    assert (kind.code, kind.causes[0]["message"]) == (422, 'Invalid value: "Gadget": must be Widget')
    assert (name.code, name.reason) == (400, "BadRequest")


async def test_strategic_merge_of_lists(api: Api) -> None:
    """References of a ServiceAccount merge by name: new ones first, named ones deleted, or all replaced."""
    path = api.path("serviceaccounts", "robot", base=CORE)
    robot = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}, "secrets": [{"name": "x"}]}
    (await api.create(api.path("serviceaccounts", base=CORE), robot)).ok()

    added = (await api.patch(path, {"secrets": [{"name": "y"}]}, STRATEGIC)).ok()
    fewer = (await api.patch(path, {"secrets": [{"name": "x", "$patch": "delete"}]}, STRATEGIC)).ok()
    other = (await api.patch(path, {"secrets": [{"$patch": "replace"}, {"name": "z"}]}, STRATEGIC)).ok()

    assert [added["secrets"], fewer["secrets"], other["secrets"]] == [
        [{"name": "y"}, {"name": "x"}],
        [{"name": "y"}],
        [{"name": "z"}],
    ]


async def test_strategic_merge_of_maps(api: Api) -> None:
    """Data of a ConfigMap merges by key, and directives replace or delete it."""
    path = api.path("configmaps", "a", base=CORE)
    (await api.create(api.path("configmaps", base=CORE), config_map(x="1", y="2"))).ok()

    merged = (await api.patch(path, {"data": {"x": None, "z": "3"}}, STRATEGIC)).ok()
    replaced = (await api.patch(path, {"data": {"$patch": "replace", "n": "1"}}, STRATEGIC)).ok()
    deleted = (await api.patch(path, {"data": {"$patch": "delete"}}, STRATEGIC)).ok()

    assert merged["data"] == {"y": "2", "z": "3"}
    assert replaced["data"] == {"n": "1"}
    assert "data" not in deleted
