"""Pruning: fields that a structural schema does not know are dropped, or reported (Kubernetes CRD field pruning)."""

from collections.abc import Callable, Mapping
from typing import Any

from metal.apiserver.machinery import object_meta
from metal.apiserver.machinery.causes import path_text
from metal.apiserver.machinery.structural import IDENTITY, Node

Path = tuple[str | int, ...]
Report = Callable[[Path], None]

_NOTHING = Node()
_ANYTHING = Node(preserve=True)
_CONTAINERS = frozenset((dict, list))


def prune(root: Node, obj: Mapping[str, Any]) -> dict[str, Any]:
    """The object without unknown fields. apiVersion, kind and metadata remain; metadata is pruned by its own schema."""
    return dict(obj) if _is_clean_resource(root, obj) else _resource(root, obj, (), _ignore)


def unknown_fields(root: Node, obj: Mapping[str, Any]) -> list[str]:
    """Paths of the fields that pruning would drop, in document order."""
    found: list[str] = []
    if not _is_clean_resource(root, obj):
        _resource(root, obj, (), lambda path: found.append(path_text(path)))
    return found


def unknown_below(node: Node, value: Any) -> list[str]:
    """Like `unknown_fields`, for a value somewhere inside a resource."""
    found: list[str] = []
    _walk(node, value, (), lambda path: found.append(path_text(path)))
    return found


def _ignore(path: Path) -> None:
    """Pruning alone reports nothing."""


def _is_clean_resource(node: Node, obj: Mapping[str, Any]) -> bool:
    """Whether nothing needs to be pruned, which is the usual case; builds nothing."""
    rest = {key: value for key, value in obj.items() if key not in IDENTITY}
    return _is_clean(object_meta.NODE, obj.get("metadata")) and _are_clean_fields(node, rest)


def _are_clean_fields(node: Node, obj: Mapping[str, Any]) -> bool:
    """A loop, since every write runs this for every field of the object."""
    fields, extra = node.fields, node.extra
    for key, value in obj.items():
        sub = fields.get(key) or extra
        if sub is None:
            if not node.preserve:
                return False
        elif type(value) in _CONTAINERS and not _is_clean(sub, value):
            return False
    return True


def _is_clean(node: Node, value: Any) -> bool:
    if isinstance(value, dict):
        return _is_clean_resource(node, value) if node.embedded else _are_clean_fields(node, value)
    if isinstance(value, list):
        items = node.items or (_ANYTHING if node.preserve else _NOTHING)
        return all(type(item) not in _CONTAINERS or _is_clean(items, item) for item in value)
    return True


def _resource(node: Node, obj: Mapping[str, Any], path: Path, report: Report) -> dict[str, Any]:
    out = {}
    for key, value in obj.items():
        if key in IDENTITY:
            out[key] = _walk(object_meta.NODE, value, (*path, key), report) if key == "metadata" else value
        elif (sub := _child(node, key)) is not None:
            out[key] = _walk(sub, value, (*path, key), report)
        elif node.preserve:
            out[key] = value
        else:
            report((*path, key))
    return out


def _child(node: Node, key: str) -> Node | None:
    return node.fields.get(key) or node.extra


def _walk(node: Node, value: Any, path: Path, report: Report) -> Any:
    if isinstance(value, dict):
        if node.embedded:
            return _resource(node, value, path, report)
        return _mapping(node, value, path, report)
    if isinstance(value, list):
        items = node.items
        if items is None:
            return (
                value if node.preserve else [_walk(_NOTHING, item, (*path, i), report) for i, item in enumerate(value)]
            )
        return [_walk(items, item, (*path, i), report) for i, item in enumerate(value)]
    return value


def _mapping(node: Node, value: dict[str, Any], path: Path, report: Report) -> dict[str, Any]:
    if node.preserve and not node.fields and node.extra is None:
        return value
    out = {}
    for key, item in value.items():
        sub = node.fields.get(key) or node.extra
        if sub is not None:
            out[key] = _walk(sub, item, (*path, key), report)
        elif node.preserve:
            out[key] = item
        else:
            report((*path, key))
    return out
