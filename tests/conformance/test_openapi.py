"""OpenAPI v3: what kubectl reads before it explains, validates and applies."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.conformance.api import Api, Obj, definition
from tests.conformance.conftest import established
from tests.conformance.test_discovery import CRDS, until

PLACE = "namespaces/{namespace}/gadgets"
META = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1"


@pytest.fixture
async def group(http: Api) -> AsyncIterator[str]:
    """A group with one CRD, gadgets."""
    name = f"o{http.suffix}.example.org"
    (await http.create(CRDS, definition("Gadget", group=name))).ok()
    await established(http, f"gadgets.{name}")
    yield name
    await http.delete(f"{CRDS}/gadgets.{name}")


async def url_of(http: Api, path: str) -> str:
    """Where the index says that a document is, as soon as it says so."""
    index = await until(lambda: http.get("/openapi/v3"), lambda got: path in got.ok()["paths"])
    return str(index.body["paths"][path]["serverRelativeURL"])


async def document(http: Api, group: str) -> Obj:
    """The document of v1 of a group."""
    await url_of(http, f"apis/{group}/v1")
    return (await http.get(f"/openapi/v3/apis/{group}/v1")).ok()


def component(group: str, kind: str = "Gadget") -> str:
    """`org.example.v1.Gadget`."""
    return f"{'.'.join(reversed(group.split('.')))}.v1.{kind}"


async def test_the_index_names_each_document_with_its_hash(http: Api, group: str) -> None:
    """Every group version has a URL that changes with its content; the document's ETag is that hash."""
    url = await url_of(http, f"apis/{group}/v1")

    path, _, digest = url.partition("?hash=")
    got = await http.get(path)

    assert path == f"/openapi/v3/apis/{group}/v1"
    assert got.headers["ETag"] == f'"{digest}"'
    assert (await url_of(http, "api/v1")).startswith("/openapi/v3/api/v1?hash=")


async def test_a_document_with_a_hash_never_changes(http: Api, group: str) -> None:
    """By its hash it may be kept for a year; without one it has to be asked for, and is 304 while it is the same."""
    path, _, digest = (await url_of(http, f"apis/{group}/v1")).partition("?hash=")

    kept = await http.get(path, hash=digest)
    plain = await http.get(path)
    same = await http.way.request("GET", path, headers={"If-None-Match": f'"{digest}"'})
    moved = await http.get(path, hash="OLD")

    assert kept.headers["Cache-Control"] == "public, immutable"
    assert "Expires" in kept.headers
    assert (plain.headers["Cache-Control"], plain.headers["Vary"]) == ("no-cache, private", "Accept")
    assert same.code == 304
    # Redirected to the hash of now.
    assert (moved.code, moved.headers["ETag"]) == (200, f'"{digest}"')


async def test_a_changed_definition_has_another_document(http: Api, group: str) -> None:
    """The hash and the schema follow the CRD."""
    before = await url_of(http, f"apis/{group}/v1")
    schema = {"type": "object", "properties": {"colour": {"type": "string", "description": "Red or blue."}}}
    change = [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec", "value": schema}]

    (await http.patch(f"{CRDS}/gadgets.{group}", change, "application/json-patch+json")).ok()

    await until(lambda: url_of(http, f"apis/{group}/v1"), lambda url: url != before)
    schemas = (await document(http, group))["components"]["schemas"]
    assert schemas[component(group)]["properties"]["spec"] == schema


async def test_a_kind_is_described_as_its_definition_says(http: Api, group: str) -> None:
    """Types, descriptions, defaults and list types of the CRD, with apiVersion, kind and metadata added."""
    schemas = (await document(http, group))["components"]["schemas"]

    one, many = schemas[component(group)], schemas[component(group, "GadgetList")]
    spec = one["properties"]["spec"]["properties"]
    assert spec["size"] == {"type": "integer", "minimum": 0, "description": "How big it is, in metres."}
    assert spec["note"]["default"] == "plain"
    assert spec["tags"]["x-kubernetes-list-type"] == "set"
    assert spec["atomic"]["x-kubernetes-list-type"] == "atomic"
    assert (spec["ports"]["x-kubernetes-list-type"], spec["ports"]["x-kubernetes-list-map-keys"]) == ("map", ["name"])
    assert spec["ports"]["items"]["required"] == ["name"]
    assert {name: one["properties"][name]["type"] for name in ("apiVersion", "kind")} == dict.fromkeys(
        ("apiVersion", "kind"), "string"
    )
    assert one["properties"]["metadata"]["allOf"] == [{"$ref": f"{META}.ObjectMeta"}]
    assert one["properties"]["metadata"]["description"]
    assert one["x-kubernetes-group-version-kind"] == [{"group": group, "kind": "Gadget", "version": "v1"}]
    assert many["x-kubernetes-group-version-kind"] == [{"group": group, "kind": "GadgetList", "version": "v1"}]
    assert many["properties"]["items"]["items"] == {"$ref": f"#/components/schemas/{component(group)}"}


async def test_metadata_says_how_its_lists_merge(http: Api, group: str) -> None:
    """finalizers is a set; ownerReferences is a map by uid."""
    schemas = (await document(http, group))["components"]["schemas"]

    properties = schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]["properties"]
    owners = properties["ownerReferences"]
    assert properties["finalizers"]["x-kubernetes-list-type"] == "set"
    assert (owners["x-kubernetes-list-type"], owners["x-kubernetes-list-map-keys"]) == ("map", ["uid"])
    assert owners["x-kubernetes-patch-merge-key"] == "uid"


def parameters(operation: Obj) -> list[str]:
    """Names of its query parameters."""
    return sorted(entry["name"] for entry in operation.get("parameters") or ())


async def test_operations_say_what_they_take(http: Api, group: str) -> None:
    """PATCH lists fieldValidation and dryRun, by which kubectl knows that it may ask for them; so do the others."""
    paths = (await document(http, group))["paths"]
    root = f"/apis/{group}/v1"
    collection, item = paths[f"{root}/{PLACE}"], paths[f"{root}/{PLACE}/{{name}}"]

    write = ["dryRun", "fieldManager", "fieldValidation"]
    assert parameters(item["patch"]) == sorted([*write, "force"])
    assert parameters(item["put"]) == parameters(collection["post"]) == write
    assert parameters(item["get"]) == ["resourceVersion"]
    assert {"dryRun", "gracePeriodSeconds", "propagationPolicy"} <= set(parameters(item["delete"]))
    assert {"limit", "continue", "watch", "sendInitialEvents", "labelSelector"} <= set(parameters(collection["get"]))
    assert sorted(item["patch"]["requestBody"]["content"]) == [
        "application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json",
    ]  # fmt: skip
    gvk = {"group": group, "kind": "Gadget", "version": "v1"}
    told: dict[str, Any] = {verb: op for verb, op in item.items() if verb != "parameters"}
    assert all(op["x-kubernetes-group-version-kind"] == gvk for op in told.values())
    assert {verb: op["x-kubernetes-action"] for verb, op in told.items()} == {
        verb: verb for verb in ("get", "put", "patch", "delete")
    }
    assert sorted(verb for verb in paths[f"{root}/{PLACE}/{{name}}/status"] if verb != "parameters") == [
        "get", "patch", "put",
    ]  # fmt: skip
    assert f"{root}/gadgets" in paths


async def test_built_in_kinds_offer_strategic_merge(http: Api) -> None:
    """ConfigMaps take strategic merge patches; custom kinds do not say that they do."""
    paths = (await http.get("/openapi/v3/api/v1")).ok()["paths"]

    content = paths["/api/v1/namespaces/{namespace}/configmaps/{name}"]["patch"]["requestBody"]["content"]
    assert "application/strategic-merge-patch+json" in content


async def test_a_group_that_is_gone_has_no_document(http: Api, group: str) -> None:
    """When its last CRD is deleted, a group is removed from the index, and its document is 404."""
    await url_of(http, f"apis/{group}/v1")
    (await http.delete(f"{CRDS}/gadgets.{group}")).ok()

    await until(lambda: http.get("/openapi/v3"), lambda got: f"apis/{group}/v1" not in got.ok()["paths"])
    await until(lambda: http.get(f"/openapi/v3/apis/{group}/v1"), lambda got: got.code == 404)
