"""OpenAPI v3 as kubectl reads it."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from metal.apiserver.openapi.documents import component_name, digest, document, index
from metal.apiserver.openapi.meta_schemas import OBJECT_META
from tests.apiserver.schema.schemas import THING


@dataclass(frozen=True)
class Doc:
    """A resource as far as a document needs it."""

    group: str = "metal.example.com"
    version: str = "v1"
    kind: str = "Thing"
    plural: str = "things"
    openapi: dict[str, Any] = field(default_factory=lambda: THING)
    namespaced: bool = True
    list_kind: str = "ThingList"
    status: bool = True
    custom: bool = True


THINGS = "/apis/metal.example.com/v1/namespaces/{namespace}/things"
GVK = {"group": "metal.example.com", "kind": "Thing", "version": "v1"}


def test_the_index_points_at_cacheable_documents() -> None:
    """Core under api, groups under apis, each with its hash."""
    assert index(["v1", "metal.example.com/v1"], lambda name: str(len(name))) == {
        "paths": {
            "api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=2"},
            "apis/metal.example.com/v1": {"serverRelativeURL": "/openapi/v3/apis/metal.example.com/v1?hash=20"},
        }
    }


def test_a_hash_changes_with_the_document() -> None:
    """The same document has the same hash, another one another."""
    one, same, other = (document("metal.example.com/v1", [Doc(kind=kind)]) for kind in ("A", "A", "B"))
    assert digest(one) == digest(same) != digest(other)


@pytest.mark.parametrize("path", [f"{THINGS}/{{name}}", f"{THINGS}/{{name}}/status"])
def test_patches_take_field_validation_and_dry_run(path: str) -> None:
    """Without these parameters kubectl apply would fall back to checking by itself."""
    patch = document("metal.example.com/v1", [Doc()])["paths"][path]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == GVK
    names = {parameter["name"] for parameter in patch["parameters"] if parameter["in"] == "query"}
    assert names >= {"fieldValidation", "dryRun", "fieldManager", "force"}
    assert "application/apply-patch+yaml" in patch["requestBody"]["content"]


def test_explain_finds_the_kind_by_its_paths_and_its_component() -> None:
    """Both the path and the component carry the kind."""
    doc = document("metal.example.com/v1", [Doc()])
    assert doc["paths"][THINGS]["get"]["x-kubernetes-group-version-kind"] == GVK
    component = doc["components"]["schemas"]["com.example.metal.v1.Thing"]
    assert component["x-kubernetes-group-version-kind"] == [GVK]
    assert component["properties"]["spec"] == THING["properties"]["spec"]
    assert component["properties"]["metadata"]["allOf"] == [{"$ref": f"#/components/schemas/{OBJECT_META}"}]


def test_cluster_scoped_kinds_have_no_namespace_in_their_paths() -> None:
    """And kinds without status have no status path."""
    paths = document("v1", [Doc(group="", namespaced=False, status=False, custom=False)])["paths"]
    assert sorted(paths) == ["/api/v1/things", "/api/v1/things/{name}"]


def test_namespaced_kinds_can_be_listed_everywhere() -> None:
    """The path without a namespace only lists."""
    assert list(document("metal.example.com/v1", [Doc()])["paths"]["/apis/metal.example.com/v1/things"]) == ["get"]


def references(value: Any) -> set[str]:
    """Every $ref below a value."""
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*(references(item) for item in value.values()))
    return set().union(*(references(item) for item in value)) if isinstance(value, list) else set()


def test_every_reference_leads_somewhere() -> None:
    """No dangling $ref."""
    doc = document("metal.example.com/v1", [Doc(), Doc(kind="Other", plural="others", list_kind="OtherList")])
    known = {f"#/components/schemas/{name}" for name in doc["components"]["schemas"]}
    assert references(doc) <= known


def test_object_meta_tells_kubectl_how_lists_merge() -> None:
    """Owner references merge by uid, finalizers by value, and every field has a description."""
    fields = document("v1", [])["components"]["schemas"][OBJECT_META]["properties"]
    assert fields["ownerReferences"]["x-kubernetes-patch-merge-key"] == "uid"
    assert fields["finalizers"]["x-kubernetes-patch-strategy"] == "merge"
    assert all(schema["description"] for schema in fields.values())


def test_only_builtin_kinds_offer_strategic_merge() -> None:
    """kubectl apply picks the patch type from this list; custom kinds take no strategic merge patches."""
    strategic = "application/strategic-merge-patch+json"
    custom = document("metal.example.com/v1", [Doc()])["paths"][f"{THINGS}/{{name}}"]["patch"]
    assert strategic not in custom["requestBody"]["content"]
    builtin = document("v1", [Doc(group="", custom=False)])["paths"]["/api/v1/namespaces/{namespace}/things/{name}"]
    assert strategic in builtin["patch"]["requestBody"]["content"]


def test_kubectl_learns_the_merge_keys_that_the_server_uses() -> None:
    """A patch that kubectl computes and the merge that the server does agree on lists."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"secrets": {"type": "array", "items": {"type": "object"}}},
    }
    doc = Doc(group="", kind="ServiceAccount", openapi=schema, custom=False)
    fields = document("v1", [doc])["components"]["schemas"]["io.k8s.api.core.v1.ServiceAccount"]["properties"]
    assert fields["secrets"]["x-kubernetes-patch-merge-key"] == "name"
    assert "x-kubernetes-patch-merge-key" not in schema["properties"]["secrets"]


@pytest.mark.parametrize(
    ("doc", "name"),
    [
        (Doc(), "com.example.metal.v1.Thing"),
        (Doc(group="", custom=False, kind="Secret"), "io.k8s.api.core.v1.Secret"),
        (Doc(group="coordination.k8s.io", custom=False, kind="Lease"), "io.k8s.api.coordination.v1.Lease"),
    ],
)
def test_components_are_named_as_in_kubernetes(doc: Doc, name: str) -> None:
    """Reversed domain for custom kinds, io.k8s.api for built-in ones."""
    assert component_name(doc) == name
