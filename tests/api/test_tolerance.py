"""Decoding tolerates every object that an API server may have stored, so that informers do not fail."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.api.kinds import kinds
from metal.api.meta import Kind
from metal.codegen.crd import root_schema

SCALARS = st.one_of(st.booleans(), st.integers(), st.text(max_size=5), st.none())
UNKNOWN = st.dictionaries(
    st.text("xyz", min_size=3, max_size=6), st.one_of(SCALARS, st.lists(SCALARS, max_size=2)), max_size=2
)
TEXTS = {
    "byte": st.binary(max_size=9).map(lambda raw: msgspec.json.decode(msgspec.json.encode(raw))),
    "date-time": st.datetimes().map(lambda moment: moment.isoformat(timespec="seconds") + "Z"),
}


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values of the type of a schema, with any enums, patterns and limits, and with unknown fields."""
    found = {
        "boolean": st.booleans(),
        "integer": st.integers(-(2**40), 2**40),
        "number": st.floats(allow_nan=False, allow_infinity=False),
        "string": TEXTS.get(schema.get("format", ""), st.text(max_size=8)),
    }.get(schema["type"])
    if found is None:
        found = arrays(schema) if schema["type"] == "array" else objects(schema)
    return st.one_of(st.none(), found) if schema.get("nullable") else found


def arrays(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    return st.lists(values(schema["items"]), max_size=2)


def objects(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "properties" not in schema:
        return st.dictionaries(st.text(max_size=5), values(schema.get("additionalProperties") or TEXT), max_size=2)
    properties, required = schema["properties"], schema.get("required", [])
    known = st.fixed_dictionaries(
        {name: values(properties[name]) for name in required},
        optional={name: values(child) for name, child in properties.items() if name not in required},
    )
    return st.builds(lambda one, other: {**other, **one}, known, UNKNOWN)


TEXT = {"type": "string"}


@pytest.mark.parametrize("kind", kinds().all(), ids=lambda kind: kind.kind)
def test_objects_with_unknown_fields_and_values_decode(kind: Kind[Any]) -> None:
    """Every object with fitting types decodes, whatever its enums, numbers and extra fields are."""
    schema = {**root_schema(kind.struct)}
    schema["properties"] = {name: child for name, child in schema["properties"].items() if name != "metadata"}

    @given(objects(schema))
    def decodes(obj: dict[str, Any]) -> None:
        stored = msgspec.json.encode({"metadata": {"name": "x", "managedFields": [{}]}, **obj})
        decoded = msgspec.json.decode(stored, type=kind.struct)
        again = msgspec.json.decode(msgspec.json.encode(decoded), type=kind.struct)
        assert again == decoded

    decodes()


GO_SERVER = {
    "apiVersion": "metal.ironcore.dev/v1alpha1",
    "kind": "Server",
    "metadata": {
        "name": "endpoint-sample-system-0",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["metal.ironcore.dev/server"],
        "managedFields": [{"manager": "manager", "operation": "Update", "fieldsV1": {"f:spec": {}}}],
        "ownerReferences": [
            {"apiVersion": "metal.ironcore.dev/v1alpha1", "kind": "BMC", "name": "b", "uid": "u", "controller": True}
        ],
    },
    "spec": {
        "systemUUID": "38947555-7742-3448-3784-823347823834",
        "bmcRef": {"name": "b"},
        "reclaimPolicy": "SomethingNew",
        "taints": [{"key": "a", "effect": "Evict"}],
    },
    "status": {
        "state": "Tomorrow",
        "powerState": "Off",
        "networkInterfaces": [{"name": "eth0", "macAddress": "52:54:00:00:00:01", "ip": None, "neighbors": []}],
        "totalSystemMemory": "96Gi",
        "conditions": [
            {"type": "PoweringOn", "status": "False", "reason": "X", "message": "", "lastTransitionTime": None}
        ],
    },
}


def test_a_server_of_the_go_operator_decodes() -> None:
    """A Server with unknown states, null addresses and foreign fields decodes."""
    server = msgspec.json.decode(msgspec.json.encode(GO_SERVER), type=kinds().server.struct)
    assert server.status.state == "Tomorrow"
    assert server.spec.reclaim_policy == "SomethingNew"
    assert server.status.network_interfaces[0].ip is None
    assert server.uuid == "38947555-7742-3448-3784-823347823834"
