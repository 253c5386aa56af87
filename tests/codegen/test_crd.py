"""The generated CustomResourceDefinitions."""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import msgspec
import pytest

from metal.api.docstrings import class_doc, field_docs
from metal.api.kinds import kinds
from metal.api.markers import Choice, Defaulted, Length, ListMap, Range, Required, Rule
from metal.api.meta import Kind, Model
from metal.codegen import crd
from metal.codegen.crd import crds

FORBIDDEN_IN_JUNCTORS = {"type", "description", "default", "additionalProperties", "nullable"}


class Colour(StrEnum):
    RED = "red"


class Leaf(Model, frozen=True, kw_only=True):
    """A leaf
    on two lines."""

    name: Annotated[str, Length(1, 5)]
    """Name of the leaf."""
    undocumented: int = 0


class Tree(Model, frozen=True, kw_only=True):
    """A tree."""

    leaves: Annotated[tuple[Leaf, ...], ListMap("name")] = ()
    """Its leaves."""
    colours: Mapping[str, Colour] = msgspec.field(default_factory=dict)
    """By place."""
    height: Annotated[int, Range(1, 9), Defaulted()] = 3
    """In metres."""
    kind: Annotated[str | None, Choice("a", "b"), Required()] = None
    """What it is."""
    seal: Annotated[Leaf | None, Rule("self == oldSelf", "stays")] = None
    """Never changes."""
    planted: datetime | None = None
    """When."""
    raw: msgspec.Raw = msgspec.Raw(b"{}")
    """Anything."""
    ratio: float = 0.0
    """Some number."""
    blob: bytes = b""
    """Bytes."""


def every(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema below this one with its path."""
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from every(child, f"{path}.{name}")
    if "items" in schema:
        yield from every(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from every(schema["additionalProperties"], f"{path}{{}}")


def schema(plural: str) -> dict[str, Any]:
    found = next(c for c in crds(kinds()) if c["spec"]["names"]["plural"] == plural)
    root: dict[str, Any] = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return root


def at(plural: str, path: str) -> dict[str, Any]:
    return dict(every(schema(plural)))[path]


def test_types_become_structural_schemas() -> None:
    """Each annotation that structs may use has its schema, with constraints and docstrings."""
    built = crd.struct_schema(Tree)
    properties = built["properties"]
    leaf = {
        "description": "A leaf on two lines.",
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 5, "description": "Name of the leaf."},
            "undocumented": {"type": "integer", "format": "int64"},
        },
        "required": ["name"],
    }
    assert built["required"] == ["kind"]
    assert properties["leaves"] == {
        "type": "array", "items": leaf, "description": "Its leaves.",
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
    }  # fmt: skip
    assert properties["colours"]["additionalProperties"] == {"type": "string", "enum": ["red"]}
    assert properties["height"] == {
        "type": "integer", "format": "int32", "minimum": 1, "maximum": 9, "description": "In metres.", "default": 3,
    }  # fmt: skip
    assert properties["kind"] == {"type": "string", "enum": ["a", "b"], "description": "What it is."}
    assert properties["seal"]["x-kubernetes-validations"] == [{"rule": "self == oldSelf", "message": "stays"}]
    assert properties["planted"]["format"] == "date-time"
    assert properties["raw"]["x-kubernetes-preserve-unknown-fields"] is True
    assert properties["ratio"]["type"] == "number"
    assert properties["blob"]["format"] == "byte"


@pytest.mark.parametrize("annotation", [complex, str | int, tuple[int, str], dict[int, str], list[str]])
def test_a_type_without_a_structural_schema_is_refused(annotation: Any) -> None:
    """A field that no CRD can express fails at generation, with the annotation in the sentence."""
    with pytest.raises(TypeError, match="has no structural schema"):
        crd.type_schema(annotation)


def test_docstrings_are_read_below_fields() -> None:
    """A string directly below an annotated name is its docstring; others are not."""
    assert class_doc(Leaf) == "A leaf on two lines."
    assert field_docs(Leaf) == {"name": "Name of the leaf."}


@pytest.mark.parametrize("kind", kinds().all(), ids=lambda kind: kind.kind)
def test_every_field_is_described(kind: Kind[Any]) -> None:
    """kubectl explain has a sentence for every field but the identity of an object."""
    for path, node in every(crd.root_schema(kind.struct)):
        if path in ("", ".metadata") or path.endswith(("[]", "{}")):
            continue
        assert node.get("description") or path in (".spec", ".status"), path


@pytest.mark.parametrize("kind", kinds().all(), ids=lambda kind: kind.kind)
def test_the_schemas_are_structural(kind: Kind[Any]) -> None:
    """Every node has a type, junctors constrain values only, and metadata is left to the API (KEP-1111)."""
    root = crd.root_schema(kind.struct)
    for path, node in every(root):
        assert node.get("type"), path
        for branch in node.get("anyOf", []):
            assert not FORBIDDEN_IN_JUNCTORS & branch.keys(), path
    assert root["properties"]["metadata"] == {"type": "object"}


@pytest.mark.parametrize("kind", kinds().all(), ids=lambda kind: kind.kind)
def test_list_map_keys_exist_and_are_always_there(kind: Kind[Any]) -> None:
    """Keys of a list map are required or have a default; otherwise an API refuses the CRD."""
    for path, node in every(crd.root_schema(kind.struct)):
        for key in node.get("x-kubernetes-list-map-keys", []):
            item = node["items"]
            assert key in item.get("required", []) or "default" in item["properties"][key], f"{path} {key}"


WAITING = [kind for kind in kinds().all() if kind.kind != "SanitizationEvidence"]
"""A record waits for nothing: the Server says what is awaited while its drives are erased."""


@pytest.mark.parametrize("kind", WAITING, ids=lambda kind: kind.kind)
def test_every_kind_reports_conditions_since_and_what_it_waits_for(kind: Kind[Any]) -> None:
    """Each kind that something is done for has conditions, and columns that say since when and for what."""
    names = [column.name for column in kind.columns]
    status = crd.root_schema(kind.struct)["properties"]["status"]["properties"]
    assert status["conditions"]["x-kubernetes-list-map-keys"] == ["type"]
    assert {"since", "waitingFor"} <= status.keys()
    assert "Since" in names
    assert "Waiting-For" in names
    assert names[-1] == "Age"


@pytest.mark.parametrize("kind", kinds().all(), ids=lambda kind: kind.kind)
def test_columns_point_at_fields_that_exist(kind: Kind[Any]) -> None:
    """A column whose path is misspelt would be empty for ever."""
    paths = {path for path, _ in every(crd.root_schema(kind.struct))} | {".metadata.creationTimestamp"}
    columns = {column.json_path for column in kind.columns}
    assert {path for path in columns if not path.startswith(".metadata.annotations[")} <= paths


def test_names_scopes_and_categories_are_those_of_the_go_operator() -> None:
    """Plural, scope, short names and the category by which `kubectl get metal` finds everything."""
    found = {
        c["spec"]["names"]["plural"]: (c["spec"]["scope"], c["spec"]["names"].get("shortNames", []))
        for c in crds(kinds())
    }
    assert found == {
        "endpoints": ("Cluster", ["mep"]),
        "bmcs": ("Cluster", []),
        "bmcsecrets": ("Cluster", ["bmcsec"]),
        "servers": ("Cluster", ["srv"]),
        "serverclaims": ("Namespaced", ["scl"]),
        "serverbootconfigurations": ("Namespaced", ["sbc"]),
        "servermaintenances": ("Namespaced", ["sm"]),
        "serverreadinessrules": ("Cluster", []),
        "sanitizationevidences": ("Cluster", ["evidence"]),
        "ipxebootconfigs": ("Namespaced", []),
    }
    assert all(c["spec"]["names"]["categories"] == ["metal"] for c in crds(kinds()))


def test_columns_of_the_reference_keep_names_order_and_priorities() -> None:
    """Scripts that cut columns out of `kubectl get` find the reference's, in its order."""
    ours = {"Since", "Waiting-For", "Erased", "Time-Left", "Architecture"}
    shown = {
        kind.kind: [(c.name, c.priority) for c in kind.columns if c.name not in ours] for kind in kinds().all()
    }  # fmt: skip
    assert shown["Server"] == [
        ("SystemUUID", 0), ("Manufacturer", 0), ("Model", 0), ("Memory", 0), ("SKU", 100), ("SerialNumber", 100),
        ("PowerState", 0), ("IndicatorLED", 100), ("State", 0), ("Unclaimable", 100), ("Age", 0),
    ]  # fmt: skip
    assert shown["BMC"] == [
        ("MACAddress", 0), ("IP", 0), ("Model", 0), ("SKU", 100), ("SerialNumber", 100), ("FirmwareVersion", 100),
        ("State", 0), ("PowerState", 0), ("Age", 0),
    ]  # fmt: skip
    assert [name for name, _ in shown["ServerMaintenance"]] == [
        "Server", "Policy", "BootConfiguration", "Reason", "State", "Priority", "Age",
    ]  # fmt: skip
    assert [name for name, _ in shown["ServerClaim"]] == ["Server", "Ignition", "Image", "Phase", "Age"]
    assert [name for name, _ in shown["ServerBootConfiguration"]] == [
        "ServerRef", "Image", "IgnitionRef", "State", "Age",
    ]  # fmt: skip


def test_required_defaults_and_enums_of_the_reference() -> None:
    """A sample of the reference's table, one of each sort."""
    assert at("serverclaims", ".spec")["required"] == ["power", "image"]
    assert at("servers", ".spec.reclaimPolicy")["default"] == "Recycle"
    assert at("servers", ".spec.reclaimPolicy")["enum"] == ["Recycle", "Retain"]
    assert at("servers", ".spec.unclaimable")["default"] is False
    assert at("servers", ".spec.taints[].effect")["default"] == "NoBind"
    assert at("servers", ".spec.serverClaimRef.namespace")["maxLength"] == 63
    assert at("servers", ".spec.serverClaimRef.name")["maxLength"] == 253
    assert {"Cleanup", "Maintenance", "Error", "Released", "Parked"} <= set(at("servers", ".status.state")["enum"])
    assert at("bmcs", ".spec.consoleProtocol.name")["enum"] == ["IPMI", "SSH", "SSHLenovo"]
    assert at("bmcs", ".spec")["required"] == ["bmcSecretRef", "protocol"]
    assert at("serverbootconfigurations", ".spec")["required"] == ["serverRef"]
    assert at("ipxebootconfigs", ".spec")["required"] == ["kernelURL", "initrdURL"]
    assert at("bmcsecrets", ".data{}")["format"] == "byte"
    assert at("endpoints", ".spec.ip")["nullable"] is True


def test_another_api_group_changes_nothing_but_the_group() -> None:
    """A distribution's group appears in names and in the annotations of descriptions; schemas, and the boot group,
    stay."""
    ours, theirs = crds(kinds()), crds(kinds("metal.openkcm.dev"))
    assert [c["metadata"]["name"] for c in theirs][:2] == ["endpoints.metal.openkcm.dev", "bmcs.metal.openkcm.dev"]
    escaped = json.dumps([c["spec"]["versions"] for c in theirs]).replace(r"metal\\.openkcm", r"metal\\.ironcore")
    escaped = escaped.replace("metal.openkcm.dev/", "metal.ironcore.dev/")
    assert json.dumps([c["spec"]["versions"] for c in ours]) == escaped
    assert ours[-1] == theirs[-1]


def test_kinds_lists_every_kind_that_it_holds() -> None:
    """A kind added to `Kinds` but not to `all` would have no CRD."""
    every_kind = kinds()
    held = [getattr(every_kind, field.name) for field in dataclasses.fields(every_kind)]
    assert [kind for kind in held if isinstance(kind, Kind)] == list(every_kind.all())


def test_descriptions_name_annotations_with_the_group_of_the_kinds() -> None:
    """A distribution with another API group describes the annotations and labels that it reads."""
    text = json.dumps(crds(kinds("metal.example.com")))
    assert "metal.example.com/operation=accept-certificate" in text
    assert "metal.ironcore.dev/" not in text
