"""Types as the decoder of Kubernetes checks them before validation, in the words of Go's encoding/json."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from metal.apiserver.machinery.formats import INTEGERS
from metal.apiserver.machinery.structural import Node
from metal.apiserver.schema import go_times

_STRUCTS = {
    "metadata": "ObjectMeta",
    "ownerReferences": "OwnerReference",
    "managedFields": "ManagedFieldsEntry",
    "secrets": "ObjectReference",
    "imagePullSecrets": "LocalObjectReference",
    "involvedObject": "ObjectReference",
    "related": "ObjectReference",
    "source": "EventSource",
    "series": "EventSeries",
}
"""Names of Go structs by the field that holds them; `spec` and `status` carry the name of the kind."""
_NAMED = {"uid": "types.UID"}
_PYTHON_TYPES: dict[str, Any] = {"boolean": bool, "integer": int | float, "string": str}
_JSON_NAMES = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}


class _RefusedError(Exception):
    """The value has the wrong type; str() is the message."""


def refused(node: Node, value: Any, struct: str, *, whole: bool = True) -> str:
    """Why the value cannot be decoded; empty when it can. struct: the name of its Go type.

    whole: the value is the decoded document; otherwise a part that Go decodes on its own, without a field name.
    """
    if not isinstance(value, Mapping):
        return "" if value is None else f"json: cannot unmarshal {json_name(value)} into Go value of type v1.{struct}"
    try:
        _fields(node, value, struct, struct if whole else "", ())
    except _RefusedError as why:
        return str(why)
    return ""


def json_name(value: Any) -> str:
    """The JSON type of a value, as Go names it."""
    return _JSON_NAMES.get(type(value), "null")


def _fields(node: Node, value: Mapping[str, Any], struct: str, kind: str, path: tuple[str, ...]) -> None:
    for name, item in value.items():
        sub = node.fields.get(name)
        if sub is not None and item is not None:
            _value(sub, item, struct, kind, (*path, name))


def _value(node: Node, value: Any, struct: str, kind: str, path: tuple[str, ...]) -> None:
    if node.type == "object" or node.fields or node.extra:
        if not isinstance(value, dict):
            raise _wrong(node, value, struct, kind, path)
        if node.fields:
            _fields(node, value, _struct(path[-1], kind), kind, path)
        elif node.extra is not None:
            _items(node.extra, value.values(), struct, kind, path)
    elif node.type == "array":
        if not isinstance(value, list):
            raise _wrong(node, value, struct, kind, path)
        if node.items is not None:
            _items(node.items, value, struct, kind, path)
    elif node.type:
        _scalar(node, value, struct, kind, path)


def _items(node: Node, items: Iterable[Any], struct: str, kind: str, path: tuple[str, ...]) -> None:
    for item in items:
        if item is not None:
            _value(node, item, struct, kind, path)


def _scalar(node: Node, value: Any, struct: str, kind: str, path: tuple[str, ...]) -> None:
    python_type = _PYTHON_TYPES.get(node.type)
    if python_type is None:
        return
    if not isinstance(value, python_type) or (node.type == "integer" and isinstance(value, bool)):
        raise _wrong(node, value, struct, kind, path)
    if node.type == "integer":
        low, high = INTEGERS.get(node.format, INTEGERS["int64"])
        if not (float(value).is_integer() and low <= value <= high):
            raise _wrong(node, value, struct, kind, path, exact=True)
    elif node.format == "date-time" and (why := go_times.fault(value, micro=path[-1] in go_times.MICRO)):
        raise _RefusedError(why)


def _wrong(
    node: Node, value: Any, struct: str, kind: str, path: tuple[str, ...], *, exact: bool = False
) -> _RefusedError:
    message = f"{json_name(value)} {json.dumps(value)}" if exact else json_name(value)
    wanted = go_type(node, path[-1], kind)
    return _RefusedError(
        f"json: cannot unmarshal {message} into Go struct field {struct}.{'.'.join(path)} of type {wanted}"
    )


def _struct(name: str, kind: str) -> str:
    return _STRUCTS.get(name) or kind + name.capitalize()


def go_type(node: Node, name: str, kind: str) -> str:
    """The Go type of a field, as far as messages name it."""
    if node.type == "boolean":
        return "bool"
    if node.type == "integer":
        return node.format or "int64"
    if node.type == "array":
        return f"[]{go_type(node.items, name, kind)}" if node.items is not None else "[]interface {}"
    if node.fields:
        return f"v1.{_struct(name, kind)}"
    if node.extra is not None:
        return f"map[string]{go_type(node.extra, name, kind)}"
    return "[]uint8" if node.format == "byte" else _NAMED.get(name, "string")


def settled(node: Node, value: Any, name: str = "") -> Any:
    """The value after a typed decoder: null in a map of strings is the empty string; empty maps and lists are dropped.

    Times are in UTC. name: the field that holds the value.
    """
    if isinstance(value, dict):
        if node.extra is not None and not node.fields:
            return {key: "" if item is None and node.extra.type == "string" else item for key, item in value.items()}
        out = {key: settled(sub, item, key) if (sub := node.fields.get(key)) else item for key, item in value.items()}
        return {key: item for key, item in out.items() if not _nothing(node.fields.get(key), item)}
    if node.format == "date-time" and isinstance(value, str):
        return go_times.written(value, micro=name in go_times.MICRO)
    return value


def _nothing(node: Node | None, value: Any) -> bool:
    return node is not None and (value is None or value == [] or (value == {} and not node.fields))


def go_text(value: Any) -> str:
    """A value as Go's `%v` writes it."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(go_text, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return "<nil>" if value is None else str(value)
