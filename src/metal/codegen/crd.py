"""CustomResourceDefinitions from the structs: a structural OpenAPI v3 schema for each kind (KEP-1111)."""

import types
import typing
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from metal.api.docstrings import class_doc, field_docs
from metal.api.kinds import METAL_GROUP, Kinds
from metal.api.markers import Defaulted, Required, Rule, Schema, TypeSchema
from metal.api.meta import Column, Kind, ObjectMeta

_SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number"},
    bytes: {"type": "string", "format": "byte"},
    datetime: {"type": "string", "format": "date-time"},
    ObjectMeta: {"type": "object"},
    msgspec.Raw: {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
_IDENTITY = {
    "apiVersion": "Version of the schema of this object: group and version.",
    "kind": "Kind of this object in CamelCase.",
}


def crds(kinds: Kinds) -> list[dict[str, Any]]:
    """The CustomResourceDefinitions of all kinds, in the order of `Kinds`."""
    return [crd(kind) for kind in kinds.all()]


def crd(kind: Kind[Any]) -> dict[str, Any]:
    """The CustomResourceDefinition of one kind."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": _names(kind),
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [_version(kind)],
        },
    }


def _names(kind: Kind[Any]) -> dict[str, Any]:
    names: dict[str, Any] = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.kind.lower(),
    }
    if kind.categories:
        names["categories"] = list(kind.categories)
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    return names


def _version(kind: Kind[Any]) -> dict[str, Any]:
    return {
        "name": kind.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(column) for column in kind.columns],
        "schema": {"openAPIV3Schema": _for_group(root_schema(kind.struct), kind.group)},
    }


def _for_group(schema: dict[str, Any], group: str) -> dict[str, Any]:
    """The schema, whose descriptions name annotations and labels with the API group of the kind."""

    def renamed(key: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: renamed(name, child) for name, child in value.items()}
        is_text = key == "description" and isinstance(value, str)
        return value.replace(f"{METAL_GROUP}/", f"{group}/") if is_text else value

    return {name: renamed(name, child) for name, child in schema.items()}


def _column(column: Column) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.json_path}
    if column.description:
        entry["description"] = column.description
    if column.priority:
        entry["priority"] = column.priority
    return entry


def root_schema(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """The schema of a whole object, with apiVersion, kind and metadata."""
    schema = struct_schema(struct)
    identity = {name: {"description": text, "type": "string"} for name, text in _IDENTITY.items()}
    schema["properties"] = {**identity, **schema["properties"], "metadata": {"type": "object"}}
    return schema


def struct_schema(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """The schema of a struct: properties in the order of the fields, described by their docstrings."""
    docs = field_docs(struct)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for field in msgspec.structs.fields(struct):
        properties[field.encode_name] = _field_schema(field, docs.get(field.name, ""))
        if field.required or Required() in _markers(field.type):
            required.append(field.encode_name)
    schema: dict[str, Any] = {"description": class_doc(struct), "type": "object", "properties": properties}
    if required:
        schema["required"] = required
    own: TypeSchema = getattr(struct, "__schema__", TypeSchema())
    return _constrained(schema, [Schema(own.keywords), *own.rules])


def _field_schema(field: msgspec.structs.FieldInfo, doc: str) -> dict[str, Any]:
    schema = type_schema(field.type)
    if doc:
        schema = {**schema, "description": doc}
    if Defaulted() in _markers(field.type):
        schema["default"] = msgspec.to_builtins(field.default)
    return schema


def type_schema(annotation: Any) -> dict[str, Any]:
    """The schema of one annotation. Raises TypeError for a type that has no structural schema."""
    markers = _markers(annotation)
    return _constrained(_plain_schema(_bare(annotation)), markers)


def _plain_schema(bare: Any) -> dict[str, Any]:
    if bare in _SCALARS:
        return dict(_SCALARS[bare])
    origin = typing.get_origin(bare) or bare
    arguments = typing.get_args(bare)
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return {"type": "array", "items": type_schema(arguments[0])}
    if isinstance(origin, type) and issubclass(origin, Mapping) and len(arguments) == 2 and arguments[0] is str:
        return {"type": "object", "additionalProperties": type_schema(arguments[1])}
    if isinstance(bare, type) and issubclass(bare, StrEnum):
        return {"type": "string", "enum": [str(member) for member in bare]}
    if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        return struct_schema(bare)
    raise TypeError(f"{bare!r} has no structural schema: use a scalar, a tuple[X, ...], a dict[str, X] or a Struct")


def _constrained(schema: dict[str, Any], markers: Iterable[Any]) -> dict[str, Any]:
    rules = []
    for marker in markers:
        if isinstance(marker, Schema):
            schema.update(marker.keywords)
        elif isinstance(marker, Rule):
            rules.append({"rule": marker.rule, "message": marker.message})
    if rules:
        schema["x-kubernetes-validations"] = rules
    return schema


def _markers(annotation: Any) -> tuple[Any, ...]:
    """The markers of an annotation, also those inside `X | None`."""
    if typing.get_origin(annotation) is typing.Annotated:
        inner, *markers = typing.get_args(annotation)
        return (*_markers(inner), *markers)
    if _is_union(annotation):
        return tuple(marker for member in typing.get_args(annotation) for marker in _markers(member))
    return ()


def _bare(annotation: Any) -> Any:
    """The annotation without markers and without `| None`."""
    if typing.get_origin(annotation) is typing.Annotated:
        return _bare(typing.get_args(annotation)[0])
    if _is_union(annotation):
        members = [member for member in typing.get_args(annotation) if member is not type(None)]
        if len(members) != 1:
            raise TypeError(f"{annotation!r} has no structural schema: only `X | None` does")
        return _bare(members[0])
    return annotation


def _is_union(annotation: Any) -> bool:
    return typing.get_origin(annotation) in (typing.Union, types.UnionType)
