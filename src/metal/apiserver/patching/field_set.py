"""Sets of fields in the form that managedFields store them (FieldsV1, KEP-555).

A set is a nested dict whose keys are path elements: `f:name` a field, `k:{…}` an item of a list of type map, `v:…` an
item of a set, `.` the place itself. A leaf is an empty dict. No function modifies its arguments.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from metal.apiserver.machinery.structural import ANY, Node, item_key

FieldSet = dict[str, Any]
_SELF: FieldSet = {".": {}}


def is_member(node: Mapping[str, Any]) -> bool:
    """Whether the place itself belongs to the set, not only something below it."""
    return not node or "." in node


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """Every field of either set."""
    if one is other or not other:
        return _mark(one) if not other and one else one
    if not one:
        return _mark(other)
    out = dict(one)
    for key, sub in other.items():
        mine = out.get(key)
        out[key] = sub if mine is None else union(mine, sub)
    return out


def _mark(node: FieldSet) -> FieldSet:
    return node if "." in node else {".": {}, **node}


def merge_roots(one: FieldSet, other: FieldSet) -> FieldSet:
    """Union of two whole sets, for which `{}` means "no field" (below the root it means "the place itself")."""
    if not one or not other:
        return one or other
    return union(one, other)


def difference(one: FieldSet, other: FieldSet) -> FieldSet | None:
    """The fields of `one` that are not in `other`; None when nothing is left."""
    if not one:
        return None if is_member(other) else one
    out: FieldSet = {}
    for key, sub in one.items():
        if key == ".":
            if not is_member(other):
                out[key] = sub
        elif (theirs := other.get(key)) is None:
            out[key] = sub
        elif (left := difference(sub, theirs)) is not None:
            out[key] = left
    if not out:
        return None
    return {} if len(out) == 1 and "." in out else out


def intersection(one: FieldSet, other: FieldSet) -> FieldSet | None:
    """The fields in both; None when there are none."""
    out: FieldSet = {}
    for key, sub in one.items():
        theirs = other.get(key)
        if key != "." and theirs is not None and (both := intersection(sub, theirs)) is not None:
            out[key] = both
    if is_member(one) and is_member(other):
        if not out:
            return {}
        out["."] = {}
    return out or None


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """Members as text: `.spec.list[name="a"].value`. Each place precedes what is below it."""
    keys = sorted((key for key in fields if key != "."), key=_rank)
    for key in keys:
        if is_member(fields[key]):
            yield prefix + element_text(key)
    for key in keys:
        yield from paths(fields[key], prefix + element_text(key))


def _rank(key: str) -> tuple[int, str]:
    return "fkvi".find(key[0]), key


def element_text(key: str) -> str:
    """A path element as text: `.name`, `[name="a"]`, `[="value"]`."""
    kind, _, rest = key.partition(":")
    if kind == "f":
        return f".{rest}"
    if kind == "k":
        pairs = json.loads(rest)
        return "[" + ",".join(f"{name}={_compact(value)}" for name, value in sorted(pairs.items())) + "]"
    return f"[={rest}]" if kind == "v" else f"[{rest}]"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def granular_map(node: Node, value: Any) -> bool:
    """Whether a value is a map whose fields are owned one by one."""
    return isinstance(value, dict) and not node.atomic


def element_keys(node: Node, value: Any) -> list[str] | None:
    """Path elements of the items of a list, None if the list is owned as a whole."""
    if not isinstance(value, list) or node.list_type == "atomic":
        return None
    keys: list[str] = []
    for item in value:
        key = item_element(node, item)
        if key is None:
            return None
        keys.append(key)
    return keys


def item_element(node: Node, item: Any) -> str | None:
    """Path element of one item of a list of type set or map; None if it has no key."""
    if node.list_type == "set":
        return "v:" + _compact(item)
    identity = item_key(node, item)
    if identity is None:
        return None
    return "k:" + _compact(dict(sorted(zip(node.list_keys, identity, strict=True))))


def child_node(node: Node, name: str) -> Node:
    """The schema below a field; without one, maps are granular and lists atomic."""
    return node.child(name) or ANY


def fields_of(node: Node, value: Any, *, applied: bool = False) -> FieldSet:
    """Every leaf of a value, every map, list and item; of an applied configuration only what its manager owns."""
    if applied:
        return _claims(node, value) or {}
    keys = element_keys(node, value)
    if keys is not None:
        items = node.items or ANY
        out: FieldSet = dict(_SELF) if keys else {}
        for key, item in zip(keys, value, strict=True):
            below = {} if key[0] == "v" else fields_of(items, item)
            out[key] = _mark(below) if below else {}
        return out
    if not granular_map(node, value) or not value:
        return {}
    return {**_SELF, **{f"f:{name}": fields_of(child_node(node, name), item) for name, item in value.items()}}


def _claims(node: Node, value: Any) -> FieldSet | None:
    """The fields that an apply owns: leaves, items, empty maps and maps in a map without properties; None for none."""
    keys = element_keys(node, value)
    if keys is not None:
        items = node.items or ANY
        found = {}
        for key, item in zip(keys, value, strict=True):
            below = _claims(items, item) if key[0] == "k" else None
            found[key] = _mark(below) if below else {}
        return found or None
    if not granular_map(node, value) or not value:
        return {}
    out: FieldSet = {}
    for name, item in value.items():
        claimed = _claims(child_node(node, name), item)
        if name not in node.fields:
            out[f"f:{name}"] = _mark(claimed) if claimed else {}
        elif claimed is not None:
            out[f"f:{name}"] = claimed
    return out or None
