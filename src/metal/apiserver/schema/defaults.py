"""CRD defaulting: a structural schema fills missing fields, and drops null where it is not allowed."""

import copy
from collections.abc import Mapping
from typing import Any

from metal.apiserver.machinery.structural import IDENTITY, Node

_CONTAINERS = frozenset((dict, list))


def default(root: Node, obj: Mapping[str, Any], *, applied: bool = False) -> dict[str, Any]:
    """The object with defaults filled in and with null removed where the schema does not allow it.

    applied: null remains for validation to report, except where there is a default: an apply is not decoded again.
    """
    if _is_complete(root, {key: value for key, value in obj.items() if key not in IDENTITY}):
        return dict(obj)
    return {
        **_mapping(root, {key: value for key, value in obj.items() if key not in IDENTITY}, applied),
        **{key: obj[key] for key in IDENTITY if key in obj},
    }


def _is_complete(node: Node, value: Any) -> bool:
    """Whether nothing needs to be filled in or removed, which is the usual case; builds nothing."""
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


def _walk(node: Node, value: Any, nulls: bool) -> Any:
    if isinstance(value, dict):
        return _mapping(node, value, nulls)
    if isinstance(value, list) and node.items is not None:
        items = node.items
        return [_item(items, item, nulls) for item in value]
    return value


def _item(node: Node, item: Any, nulls: bool) -> Any:
    if item is None and node.has_default and not node.nullable:
        return copy.deepcopy(node.default)
    return _walk(node, item, nulls)


def _mapping(node: Node, value: dict[str, Any], nulls: bool) -> dict[str, Any]:
    out = {}
    for key, item in value.items():
        sub = node.fields.get(key) or node.extra
        if sub is None or item is not None or sub.nullable or _untyped(sub) or (nulls and not sub.has_default):
            out[key] = item if sub is None else _walk(sub, item, nulls)
        elif sub.has_default and key not in node.fields:
            out[key] = copy.deepcopy(sub.default)
    for key, sub in node.fields.items():
        if sub.has_default and key not in out:
            out[key] = _walk(sub, copy.deepcopy(sub.default), nulls)
    return out


def _untyped(node: Node) -> bool:
    return node.preserve and not node.type
