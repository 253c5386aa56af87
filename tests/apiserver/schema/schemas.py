"""Schemas that several tests use."""

from typing import Any

from metal.apiserver.schema.schema import Compiled

STRING: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}


def resource(spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An openAPIV3Schema with these properties in spec."""
    return {
        "type": "object",
        "properties": {
            "apiVersion": STRING,
            "kind": STRING,
            "metadata": {"type": "object"},
            "spec": {"type": "object", "properties": spec, **more},
        },
    }


def compiled(spec: dict[str, Any], **more: Any) -> Compiled:
    """The same, compiled."""
    return Compiled(resource(spec, **more))


def obj(spec: Any, **more: Any) -> dict[str, Any]:
    """An object with this spec."""
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "one"}, "spec": spec, **more}


PORTS: dict[str, Any] = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["port", "protocol"],
    "items": {
        "type": "object",
        "required": ["port"],
        "properties": {"port": INTEGER, "protocol": {"type": "string", "default": "TCP"}, "name": STRING},
    },
}
CONDITIONS: dict[str, Any] = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {
        "type": "object",
        "required": ["type"],
        "properties": {"type": STRING, "status": STRING, "reason": STRING},
    },
}
TAGS: dict[str, Any] = {"type": "array", "x-kubernetes-list-type": "set", "items": STRING}
ATOMIC: dict[str, Any] = {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": STRING, "b": STRING}}
OPEN: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
MAP: dict[str, Any] = {"type": "object", "additionalProperties": STRING}
LIST: dict[str, Any] = {"type": "array", "items": STRING}

THING: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "text": STRING,
                "number": INTEGER,
                "nested": {"type": "object", "properties": {"text": STRING, "other": STRING}},
                "ports": PORTS,
                "tags": TAGS,
                "atomic": ATOMIC,
                "open": OPEN,
                "map": MAP,
                "list": LIST,
            },
        },
        "status": {"type": "object", "properties": {"phase": STRING, "conditions": CONDITIONS}},
    },
}
"""A kind with one field of every way to be owned."""
