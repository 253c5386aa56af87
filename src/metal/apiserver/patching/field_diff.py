"""Differences of two objects as sets of fields. Equal parts are not walked."""

from typing import Any, NamedTuple

from metal.apiserver.machinery.structural import ANY, Node
from metal.apiserver.patching.field_set import FieldSet, child_node, element_keys, fields_of, granular_map


class Changes(NamedTuple):
    """Fields that were added or changed, and fields that were removed."""

    written: FieldSet
    removed: FieldSet


def compare(node: Node, old: dict[str, Any], new: dict[str, Any]) -> Changes:
    """Changes from one object to the next. `{}` means no field."""
    changes = Changes({}, {})
    _maps(node, old, new, changes)
    return changes


def _maps(node: Node, old: dict[str, Any], new: dict[str, Any], out: Changes) -> None:
    for name, item in new.items():
        key = f"f:{name}"
        if name not in old:
            out.written[key] = fields_of(child_node(node, name), item)
            continue
        before = old[name]
        if item is before or _same(item, before):
            continue
        _values(child_node(node, name), key, before, item, out)
    for name, before in old.items():
        if name not in new:
            out.removed[f"f:{name}"] = fields_of(child_node(node, name), before)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _values(node: Node, key: str, old: Any, new: Any, out: Changes) -> None:
    below = Changes({}, {})
    old, new = _beside(old, new), _beside(new, old)
    if granular_map(node, new) and granular_map(node, old):
        _maps(node, old, new, below)
    else:
        before, after = element_keys(node, old), element_keys(node, new)
        if before is None or after is None:
            _replaced(node, key, old, new, out)
            return
        _lists(node, dict(zip(before, old, strict=True)), dict(zip(after, new, strict=True)), below)
    if below.written:
        out.written[key] = below.written
    if below.removed:
        out.removed[key] = below.removed


def _beside(one: Any, other: Any) -> Any:
    """Null in place of a map or list with content counts as an empty one: its content was removed."""
    return type(other)() if one is None and isinstance(other, dict | list) and other else one


def _replaced(node: Node, key: str, old: Any, new: Any, out: Changes) -> None:
    """A leaf, or a place that changes its type: the place remains, its content is removed."""
    before, after = fields_of(node, old), fields_of(node, new)
    out.written[key] = {".": {}, **after} if after else {}
    gone = {name: sub for name, sub in before.items() if name != "." and name not in after}
    if gone:
        out.removed[key] = gone


def _lists(node: Node, old: dict[str, Any], new: dict[str, Any], out: Changes) -> None:
    items = node.items or ANY
    for key, item in new.items():
        if key not in old:
            below = {} if key[0] == "v" else fields_of(items, item)
            out.written[key] = below
        elif key[0] == "k" and not _same(item, old[key]):
            _values(items, key, old[key], item, out)
    for key, before in old.items():
        if key not in new:
            out.removed[key] = {} if key[0] == "v" else fields_of(items, before)
