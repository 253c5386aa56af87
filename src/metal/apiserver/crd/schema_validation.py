"""Rules for structural schemas at CRD admission."""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import jsonschema_rs

from metal.apiserver.crd.rule_validation import check_rules
from metal.apiserver.machinery import causes
from metal.apiserver.machinery.causes import Cause
from metal.apiserver.machinery.structural import Node, compile_node
from metal.apiserver.schema.defaults import default as fill
from metal.apiserver.schema.prune import unknown_below
from metal.apiserver.schema.values import LINEAR, Values, translate

Obj = Mapping[str, Any]

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED = ("$ref", "definitions", "dependencies", "patternProperties", "additionalItems", "id", "$schema")
_NOT_IN_JUNCTORS = (
    "type", "additionalProperties", "default", "description", "title", "nullable", "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "x-kubernetes-validations",
)  # fmt: skip
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


def check_schema(schema: Obj, path: str) -> tuple[Cause, ...]:
    """Violations in an openAPIV3Schema; `path` is its field in the CRD.

    The last results are kept by the schema's text: every start installs the same CRDs.
    """
    return _checked(json.dumps(schema), path)


@lru_cache(maxsize=64)
def _checked(text: str, path: str) -> tuple[Cause, ...]:
    return tuple(_check(json.loads(text), path))


def _check(schema: Obj, path: str) -> Iterator[Cause]:
    if schema.get("type") != "object":
        yield causes.invalid(f"{path}.type", schema.get("type") or "", "must be object at the root")
    faults = list(_node(schema, path, root=True))
    yield from faults
    if not faults:
        yield from _defaults(schema, compile_node(schema), path)
        yield from _compiles(schema, path)


def _compiles(schema: Obj, path: str) -> Iterator[Cause]:
    try:
        jsonschema_rs.Draft4Validator(translate(schema), pattern_options=LINEAR)
    except (jsonschema_rs.ValidationError, ValueError) as error:
        yield causes.invalid(path, "object", f"is not a valid schema: {str(error).splitlines()[0]}")


def _node(schema: Obj, path: str, *, root: bool = False, within: str = "") -> Iterator[Cause]:
    yield from _type(schema, path, root)
    yield from _shape(schema, path)
    yield from _junctors(schema, path)
    yield from _list_type(schema, path)
    yield from check_rules(schema, path, within=within)
    if not within and _uncorrelatable(schema):
        within = path
    for name, sub in (schema.get("properties") or {}).items():
        if root and name == "metadata":
            yield from _metadata(sub, f"{path}.properties[metadata]")
        else:
            yield from _sub(sub, f"{path}.properties[{name}]", within)
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield from _sub(schema["additionalProperties"], f"{path}.additionalProperties", within)
    if isinstance(schema.get("items"), Mapping):
        yield from _sub(schema["items"], f"{path}.items", within)


def _uncorrelatable(schema: Obj) -> bool:
    """Whether parts of a value cannot be matched with those of its previous version."""
    if schema.get("type") == "array":
        return bool(schema.get("x-kubernetes-list-type") != "map")
    return bool(schema.get("x-kubernetes-map-type") == "atomic")


def _sub(schema: Any, path: str, within: str) -> Iterator[Cause]:
    if isinstance(schema, Mapping):
        yield from _node(schema, path, within=within)
    else:
        yield causes.invalid(path, schema, "must be a schema")


def _type(schema: Obj, path: str, root: bool) -> Iterator[Cause]:
    kind = schema.get("type")
    open_ended = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-int-or-string")
    if not kind:
        if not open_ended and not root:
            what = "array items" if path.endswith(".items") else "object fields"
            yield causes.required(f"{path}.type", f"must not be empty for specified {what}")
    elif kind not in _TYPES:
        yield causes.not_supported(f"{path}.type", kind, _TYPES)
    elif schema.get("x-kubernetes-int-or-string"):
        yield causes.invalid(f"{path}.type", kind, "must be empty if x-kubernetes-int-or-string is true")
    if schema.get("x-kubernetes-embedded-resource") and kind != "object":
        yield causes.invalid(f"{path}.type", kind or "", "must be object if x-kubernetes-embedded-resource is true")


def _shape(schema: Obj, path: str) -> Iterator[Cause]:
    for key in _UNSUPPORTED:
        if schema.get(key):
            yield causes.forbidden(f"{path}.{key}", f"{key} is not supported")
    if schema.get("uniqueItems") is True:
        yield causes.forbidden(
            f"{path}.uniqueItems", "uniqueItems cannot be set to true since the runtime is quadratic"
        )
    if schema.get("properties") and schema.get("additionalProperties"):
        yield causes.forbidden(f"{path}.additionalProperties", "must not be used together with properties")
    if schema.get("type") == "array" and not isinstance(schema.get("items"), Mapping):
        yield causes.required(f"{path}.items", "must be specified")
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield causes.invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    if schema.get("x-kubernetes-map-type") not in (None, "atomic", "granular"):
        yield causes.not_supported(
            f"{path}.x-kubernetes-map-type", schema["x-kubernetes-map-type"], ("atomic", "granular")
        )


def _metadata(schema: Any, path: str) -> Iterator[Cause]:
    known = schema.get("properties") or {} if isinstance(schema, Mapping) else {}
    for name in known:
        if name not in ("name", "generateName"):
            yield causes.forbidden(
                f"{path}.properties[{name}]", "only restrictions on name and generateName are allowed"
            )


def _junctors(schema: Obj, path: str) -> Iterator[Cause]:
    for key in ("allOf", "anyOf", "oneOf"):
        for index, sub in enumerate(schema.get(key) or ()):
            if schema.get("x-kubernetes-int-or-string") and _is_int_or_string(schema, key):
                continue
            yield from _value_validation(sub, schema, f"{path}.{key}[{index}]")
    if isinstance(schema.get("not"), Mapping):
        yield from _value_validation(schema["not"], schema, f"{path}.not")


def _is_int_or_string(schema: Obj, key: str) -> bool:
    options = schema[key]
    return (key == "anyOf" and options == _INT_OR_STRING) or (
        key == "allOf" and bool(options) and options[0].get("anyOf") == _INT_OR_STRING
    )


def _value_validation(sub: Any, outer: Obj, path: str) -> Iterator[Cause]:
    """allOf, anyOf, oneOf and not may constrain values only; the structure is declared outside of them."""
    if not isinstance(sub, Mapping):
        yield causes.invalid(path, sub, "must be a schema")
        return
    for key in _NOT_IN_JUNCTORS:
        if key in sub:
            yield causes.forbidden(f"{path}.{key}", "must be empty to be structural")
    outside = outer.get("properties") or {}
    for name, inner in (sub.get("properties") or {}).items():
        if name in outside:
            yield from _value_validation(inner, outside[name], f"{path}.properties[{name}]")
        elif not isinstance(outer.get("additionalProperties"), Mapping):
            yield causes.required(
                f"{path}.properties[{name}]", "because it is defined in a logical junctor, not outside"
            )
    yield from _junctors(sub, path)


def _list_type(schema: Obj, path: str) -> Iterator[Cause]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    raw = schema.get("items")
    items: Obj = raw if isinstance(raw, Mapping) else {}
    if kind is None and keys:
        yield causes.forbidden(f"{path}.x-kubernetes-list-map-keys", "only with x-kubernetes-list-type map")
    if kind is not None and kind not in ("atomic", "map", "set"):
        yield causes.not_supported(f"{path}.x-kubernetes-list-type", kind, ("atomic", "map", "set"))
    if kind is not None and schema.get("type") != "array":
        yield causes.invalid(
            f"{path}.type", schema.get("type") or "", "must be array if x-kubernetes-list-type is specified"
        )
    if kind == "set" and items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        message = "must be atomic as item of a list with x-kubernetes-list-type=set"
        yield causes.invalid(f"{path}.items.x-kubernetes-map-type", items.get("x-kubernetes-map-type"), message)
    if kind == "map":
        yield from _map_keys(items, keys, path)


def _map_keys(items: Obj, keys: list[str], path: str) -> Iterator[Cause]:
    if not keys:
        yield causes.required(
            f"{path}.x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map"
        )
    if items.get("type") != "object":
        yield causes.invalid(
            f"{path}.items.type", items.get("type") or "", "must be object if x-kubernetes-list-type is map"
        )
        return
    for index, key in enumerate(keys):
        sub = (items.get("properties") or {}).get(key)
        if sub is None:
            yield causes.invalid(
                f"{path}.x-kubernetes-list-map-keys[{index}]", key, "must name a property of the items"
            )
        elif key not in (items.get("required") or ()) and "default" not in sub:
            detail = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )
            yield causes.required(f"{path}.items.properties[{key}].default", detail)


def _defaults(schema: Obj, node: Node, path: str) -> Iterator[Cause]:
    if node.has_default:
        where = f"{path}.default"
        for fault in Values(schema).check(_filled(node), where):
            # The message does not name the root of a default.
            yield fault._replace(message=fault.message.replace(f": {where} in body", ":  in body"))
        for name in unknown_below(node, node.default):
            yield causes.invalid(f"{where}.{name}", "", "must not have unknown fields")
    for name, sub in (schema.get("properties") or {}).items():
        yield from _defaults(sub, node.fields[name], f"{path}.properties[{name}]")
    if isinstance(schema.get("additionalProperties"), Mapping) and node.extra:
        yield from _defaults(schema["additionalProperties"], node.extra, f"{path}.additionalProperties")
    if isinstance(schema.get("items"), Mapping) and node.items:
        yield from _defaults(schema["items"], node.items, f"{path}.items")


def _filled(node: Node) -> Any:
    """The default as it appears in an object: with the defaults of its own fields."""
    return fill(node, node.default) if isinstance(node.default, dict) else node.default
