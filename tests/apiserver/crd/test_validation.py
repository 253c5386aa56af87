"""Admission of CustomResourceDefinitions."""

import copy
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from metal.apiserver.crd.crds import definition
from metal.apiserver.crd.validation import check
from metal.apiserver.machinery.registry import Registry

CRDS = sorted((Path(__file__).parents[3] / "config" / "crd").glob("*.yaml"))
ROOT = "spec.validation.openAPIV3Schema"
SPEC = f"{ROOT}.properties[spec]"

Crd = dict[str, Any]


def crd(spec: Any = None) -> Crd:
    """A CRD that is in order; `spec` is the schema of spec."""
    schema = {"type": "object", "properties": {"spec": spec or {"type": "object"}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def completed(given: Crd, old: Crd | None = None) -> Crd:
    """The CRD as it is stored."""
    stored = copy.deepcopy(given)
    definition(Registry(), lambda: datetime(2030, 1, 1, tzinfo=UTC)).strategy.prepare(stored, old)
    return stored


def told(given: Crd, old: Crd | None = None) -> list[str]:
    """What is wrong, as lines."""
    return [str(cause) for cause in check(given, old)]


@pytest.mark.parametrize("path", CRDS, ids=lambda path: path.stem)
def test_our_own_crds_pass(path: Path) -> None:
    """What `make generate` writes is accepted."""
    assert told(yaml.safe_load(path.read_text())) == []


def test_there_are_crds_to_check() -> None:
    """The generated CRDs are found."""
    assert CRDS


def test_names_are_completed() -> None:
    """singular, listKind, conversion and storedVersions follow from the rest."""
    full = completed(crd())
    assert full["spec"]["names"] == {"plural": "things", "kind": "Thing", "singular": "thing", "listKind": "ThingList"}
    assert full["spec"]["conversion"] == {"strategy": "None"}
    assert full["status"]["storedVersions"] == ["v1"]
    assert completed(full, full) == full
    assert told(full) == []


def test_versions_that_were_stored_are_remembered() -> None:
    """storedVersions grows when another version becomes the stored one."""
    old = completed(crd())
    given = copy.deepcopy(old)
    given["spec"]["versions"][0]["storage"] = False
    given["spec"]["versions"].append({**crd()["spec"]["versions"][0], "name": "v2"})
    assert completed(given, old)["status"]["storedVersions"] == ["v1", "v2"]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda c: c["metadata"].update(name="thing"), 'must be spec.names.plural+"."+spec.group'),
        (lambda c: c["spec"].update(group="example"), 'spec.group: Invalid value: "example": should be a domain'),
        (lambda c: c["spec"].pop("group"), "spec.group: Required value"),
        (
            lambda c: c["spec"].update(scope="Galaxy"),
            'spec.scope: Unsupported value: "Galaxy": supported values: "Cluster"',
        ),
        (lambda c: c["spec"].pop("scope"), "spec.scope: Required value"),
        (lambda c: c["spec"]["names"].pop("kind"), "spec.names.kind: Required value"),
        (lambda c: c["spec"]["names"].update(kind="My Thing"), "spec.names.kind: Invalid value"),
        (lambda c: c["spec"]["names"].update(shortNames=["T"]), "spec.names.shortNames[0]: Invalid value"),
        (lambda c: c["spec"]["names"].update(listKind="Thing"), "kind and listKind may not be the same"),
        (lambda c: c["spec"].pop("names"), "spec.names: Required value"),
        (lambda c: c.pop("spec"), "spec: Required value"),
        (lambda c: c["spec"].update(versions=[]), "spec.versions: Required value"),
        (lambda c: c["spec"]["versions"].append(c["spec"]["versions"][0]), 'versions[1].name: Duplicate value: "v1"'),
        (
            lambda c: c["spec"]["versions"][0].update(storage=False),
            "must have exactly one version marked as storage version",
        ),
        (lambda c: c["spec"]["versions"][0].update(name="V1"), "spec.versions[0].name: Invalid value"),
        (lambda c: c["spec"]["versions"][0].pop("schema"), "spec.versions[0].schema.openAPIV3Schema: Required value"),
        (lambda c: c["spec"].update(conversion={"strategy": "Webhook"}), 'strategy: Unsupported value: "Webhook"'),
        (lambda c: c["spec"].update(preserveUnknownFields=True), "spec.preserveUnknownFields: Invalid value: true"),
    ],
)
def test_a_broken_definition_is_refused(change: Callable[[Crd], Any], line: str) -> None:
    """Names, versions and scope each have their complaint."""
    given = crd()
    change(given)
    assert any(line in text for text in told(given)), told(given)


@pytest.mark.parametrize(
    ("column", "line"),
    [
        ({"type": "string", "jsonPath": ".a"}, "additionalPrinterColumns[0].name: Required value"),
        ({"name": "A", "jsonPath": ".a"}, "additionalPrinterColumns[0].type: Required value"),
        ({"name": "A", "type": "text", "jsonPath": ".a"}, 'type: Invalid value: "text": must be one of'),
        ({"name": "A", "type": "string"}, "JSONPath: Required value"),
        ({"name": "A", "type": "string", "jsonPath": "a"}, "must be a simple json path starting with ."),
        ({"name": "A", "type": "string", "jsonPath": ".a["}, "cannot read"),
    ],
)
def test_a_broken_column_is_refused(column: dict[str, str], line: str) -> None:
    """A column needs a name, a type and a path that can be read."""
    given = crd()
    given["spec"]["versions"][0]["additionalPrinterColumns"] = [column]
    assert any(line in text for text in told(given)), told(given)


def field(schema: Any, **more: Any) -> dict[str, Any]:
    """The schema of a spec with one field `a`."""
    return {"type": "object", "properties": {"a": schema}, **more}


KEYED = {"type": "array", "x-kubernetes-list-type": "map"}


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        (field({}), f"{SPEC}.properties[a].type: Required value: must not be empty for specified object fields"),
        (
            field({"type": "array", "items": {}}),
            f"{SPEC}.properties[a].items.type: Required value: must not be empty for specified array",
        ),
        (field({"type": "array"}), f"{SPEC}.properties[a].items: Required value"),
        (field({"type": "text"}), f'{SPEC}.properties[a].type: Unsupported value: "text"'),
        (field("text"), f"{SPEC}.properties[a]: Invalid value"),
        (field({"$ref": "#/x", "type": "object"}), "$ref: Forbidden"),
        (field({"type": "array", "items": {"type": "string"}, "uniqueItems": True}), "uniqueItems: Forbidden"),
        (field({"type": "string"}, additionalProperties={"type": "string"}), f"{SPEC}.additionalProperties: Forbidden"),
        (field({"type": "integer", "x-kubernetes-int-or-string": True}), "must be empty if x-kubernetes-int-or-string"),
        (field({"type": "object", "x-kubernetes-preserve-unknown-fields": False}), "must be true or undefined"),
        (field({"type": "string", "x-kubernetes-embedded-resource": True}), "must be object if x-kubernetes-embedded"),
        (field({"type": "object", "x-kubernetes-map-type": "odd"}), 'x-kubernetes-map-type: Unsupported value: "odd"'),
        (
            field({"type": "string"}, anyOf=[{"properties": {"b": {"minLength": 1}}}]),
            f"{SPEC}.anyOf[0].properties[b]: Required value",
        ),
        (
            field({"type": "string", "oneOf": [{"type": "string"}]}),
            "oneOf[0].type: Forbidden: must be empty to be structural",
        ),
        (field({"type": "string", "not": {"default": "x"}}), "not.default: Forbidden"),
        (field({**KEYED, "items": {"type": "object"}}), "x-kubernetes-list-map-keys: Required value"),
        (
            field({**KEYED, "x-kubernetes-list-map-keys": ["n"], "items": {"type": "string"}}),
            "items.type: Invalid value",
        ),
        (
            field({**KEYED, "x-kubernetes-list-map-keys": ["n"], "items": {"type": "object"}}),
            'x-kubernetes-list-map-keys[0]: Invalid value: "n"',
        ),
        (
            field(
                {
                    **KEYED,
                    "x-kubernetes-list-map-keys": ["n"],
                    "items": {"type": "object", "properties": {"n": {"type": "string"}}},
                }
            ),
            "items.properties[n].default: Required value",
        ),
        (
            field({"type": "array", "x-kubernetes-list-type": "bag", "items": {"type": "string"}}),
            'list-type: Unsupported value: "bag"',
        ),
        (field({"type": "object", "x-kubernetes-list-type": "set"}), f"{SPEC}.properties[a].type: Invalid value"),
        (
            field({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}}),
            "must be atomic as item of a list with x-kubernetes-list-type=set",
        ),
        (field({"type": "integer", "default": "x"}), f'{SPEC}.properties[a].default: Invalid value: "string"'),
        (
            field({"type": "string", "enum": ["On"], "default": "Off"}),
            f"{SPEC}.properties[a].default: Unsupported value",
        ),
        (field({"type": "object", "default": {"x": 1}}), f"{SPEC}.properties[a].default.x: Invalid value"),
        (field({"type": "string", "pattern": "("}), "spec.versions[0].schema.openAPIV3Schema: Invalid value"),
        (
            field({"type": "string", "x-kubernetes-validations": [{"rule": "self =="}]}),
            "x-kubernetes-validations[0].rule: Invalid value",
        ),
        (
            field({"type": "string", "x-kubernetes-validations": [{"rule": "true", "messageExpression": "'a' +"}]}),
            "messageExpression compilation failed: ERROR: <input>:1:6: Syntax error",
        ),
        (field({"type": "string", "x-kubernetes-validations": [{"rule": " "}]}), "rule: Required value"),
        (
            field({"type": "string", "x-kubernetes-validations": [{"rule": "true", "reason": "Odd"}]}),
            'reason: Unsupported value: "Odd"',
        ),
    ],
)
def test_a_schema_that_is_not_structural_is_refused(spec: Any, line: str) -> None:
    """Each rule of structural schemas has its complaint at its path."""
    assert any(line in text for text in told(crd(spec))), told(crd(spec))


@pytest.mark.parametrize(
    "schema",
    [
        {"x-kubernetes-int-or-string": True},
        {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": "^[0-9]+%?$",
        },
        {"x-kubernetes-preserve-unknown-fields": True},
        {"type": "object", "default": {}, "properties": {"b": {"type": "integer", "default": 1}}, "required": ["b"]},
        {
            "type": "object",
            "properties": {"b": {"type": "string"}},
            "oneOf": [{"required": ["b"]}, {"properties": {"b": {"maxLength": 1}}}],
        },
        {
            "type": "array",
            "items": {"type": "string"},
            "x-kubernetes-validations": [{"rule": "self.all(x, x.size() > 0)"}],
        },
        {"type": "string", "nullable": True, "default": None},
    ],
)
def test_structural_schemas_pass(schema: Any) -> None:
    """What Kubernetes accepts is accepted."""
    assert told(crd(field(schema))) == []


def test_metadata_may_only_restrict_names() -> None:
    """A CRD cannot give metadata other fields."""
    given = crd()
    root = given["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    root["properties"]["metadata"] = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}}
    assert told(given) == []
    root["properties"]["metadata"]["properties"]["labels"] = {"type": "object"}
    assert any("properties[metadata].properties[labels]: Forbidden" in text for text in told(given))


def test_the_root_is_an_object() -> None:
    """A custom resource is a JSON object."""
    given = crd()
    given["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {"type": "string"}
    assert f'{ROOT}.type: Invalid value: "string": must be object at the root' in told(given)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda c: c["spec"].update(scope="Cluster"), 'spec.scope: Invalid value: "Cluster": field is immutable'),
        (
            lambda c: c["spec"]["names"].update(kind="Other"),
            'spec.names.kind: Invalid value: "Other": field is immutable',
        ),
        (lambda c: c["spec"]["versions"][0].update(name="v2"), 'status.storedVersions[0]: Invalid value: "v1"'),
    ],
)
def test_what_objects_rely_on_does_not_change(change: Callable[[Crd], Any], line: str) -> None:
    """Scope, kind and stored versions are fixed once there may be objects."""
    old = completed(crd())
    new = copy.deepcopy(old)
    assert told(new, old) == []
    change(new)
    assert any(line in text for text in told(new, old)), told(new, old)


@pytest.mark.parametrize(
    "junk", [None, [], "x", {"versions": "x"}, {"names": [], "versions": [1, {"schema": {"openAPIV3Schema": []}}]}]
)
def test_junk_is_refused_without_a_crash(junk: Any) -> None:
    """Whatever stands in spec, the answer is a list of causes."""
    assert told({"metadata": {"name": "x"}, "spec": junk})
