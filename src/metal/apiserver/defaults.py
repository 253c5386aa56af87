"""Defaulting: what a structural schema gives when a field is missing, and what becomes of null (CRD defaulting)."""

import copy
from collections.abc import Mapping
from typing import Any

from metal.apiserver.structural import IDENTITY, Node

_CONTAINERS = frozenset((dict, list))


def default(root: Node, obj: Mapping[str, Any]) -> dict[str, Any]:
    """The object with defaults filled in and with null removed where the schema does not allow it."""
    if _is_complete(root, {key: value for key, value in obj.items() if key not in IDENTITY}):
        return dict(obj)
    return {
        **_mapping(root, {key: value for key, value in obj.items() if key not in IDENTITY}),
        **{key: obj[key] for key in IDENTITY if key in obj},
    }


def _is_complete(node: Node, value: Any) -> bool:
    """Whether there is nothing to fill in or to take out: the usual case, found out without building anything."""
    if type(value) is dict:
        return _is_complete_mapping(node, value)
    if type(value) is list and node.items is not None:
        items = node.items
        return all(item is not None and _is_complete(items, item) for item in value)
    return True


def _is_complete_mapping(node: Node, value: dict[str, Any]) -> bool:
    for key, item in value.items():
        if item is None:
            return False
        if type(item) in _CONTAINERS:
            sub = node.fields.get(key) or node.extra
            if sub is not None and not _is_complete(sub, item):
                return False
    return not node.any_defaults or all(key in value for key, sub in node.fields.items() if sub.has_default)


def _walk(node: Node, value: Any) -> Any:
    if isinstance(value, dict):
        return _mapping(node, value)
    if isinstance(value, list) and node.items is not None:
        items = node.items
        return [_item(items, item) for item in value]
    return value


def _item(node: Node, item: Any) -> Any:
    if item is None and node.has_default and not node.nullable:
        return copy.deepcopy(node.default)
    return _walk(node, item)


def _mapping(node: Node, value: dict[str, Any]) -> dict[str, Any]:
    out = {}
    for key, item in value.items():
        sub = node.fields.get(key) or node.extra
        if sub is None or item is not None or sub.nullable or _untyped(sub):
            out[key] = item if sub is None else _walk(sub, item)
        elif sub.has_default and key not in node.fields:
            out[key] = copy.deepcopy(sub.default)
    for key, sub in node.fields.items():
        if sub.has_default and key not in out:
            out[key] = _walk(sub, copy.deepcopy(sub.default))
    return out


def _untyped(node: Node) -> bool:
    return node.preserve and not node.type
