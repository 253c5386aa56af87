"""Merges values and removes parts of them along a schema, for server-side apply (structured merge, KEP-555)."""

from collections import deque
from typing import Any

from metal.apiserver.machinery.structural import ANY, Node
from metal.apiserver.patching.field_set import FieldSet, child_node, element_keys, granular_map, is_member


def merge(node: Node, live: Any, applied: Any) -> Any:
    """The live value with the applied one merged over it. Unchanged parts are shared with the inputs.

    Null over a map or list with content counts as an empty one: nothing in it changes.
    """
    if granular_map(node, live) and granular_map(node, applied):
        out = dict(live)
        for name, value in applied.items():
            out[name] = merge(child_node(node, name), live[name], value) if name in live else value
        return out
    before, after = element_keys(node, live), element_keys(node, applied)
    if applied is None and live and (before is not None or granular_map(node, live)):
        return live
    if before is None or after is None:
        return applied
    return _merge_lists(node, dict(zip(before, live, strict=True)), dict(zip(after, applied, strict=True)))


def _merge_lists(node: Node, live: dict[str, Any], applied: dict[str, Any]) -> list[Any]:
    items = node.items or ANY
    out = []
    for key in _order(list(live), list(applied)):
        both = key in live and key in applied and key[0] == "k"
        out.append(merge(items, live[key], applied[key]) if both else applied.get(key, live.get(key)))
    return out


def _order(live: list[str], applied: list[str]) -> list[str]:
    """Applied items in their order, with items that only the live list has inserted while both lists are walked.

    A live item that is also applied is skipped until the applied order reaches it.
    """
    lives, applies = set(live), set(applied)
    turns = deque(key for key in applied if key in lives)
    out: list[str] = []
    here = there = 0
    while here < len(live) or there < len(applied):
        key = live[here] if here < len(live) else ""
        if key and key not in applies:
            out.append(key)
            here += 1
            continue
        follows = there < len(applied) and key == applied[there]
        if key and there < len(applied) and not follows and turns and turns[0] != key:
            here += 1
            continue
        if key and (follows or not turns or turns[0] != key):
            here += 1
        if there < len(applied):
            out.append(applied[there])
            if turns and turns[0] == applied[there]:
                turns.popleft()
            there += 1
    return out


def cut(node: Node, value: Any, last: FieldSet, owned: FieldSet) -> Any:
    """The value without fields that are in `last` and not in `owned`; the value itself remains.

    A map or list that loses all its content becomes null, as on kube-apiserver.
    """
    if not last:
        return value
    if granular_map(node, value):
        return _cut_map(node, value, last, owned) or None
    keys = element_keys(node, value)
    return value if keys is None else _cut_list(node, keys, value, last, owned) or None


def _stays(mine: FieldSet, theirs: FieldSet | None, *, named: bool) -> bool:
    """Whether a place that was applied remains. A declared field remains when anything in it has an owner,
    an item or a value of a map without properties only when it has an owner itself."""
    if named:
        return theirs is not None
    return not is_member(mine) or (theirs is not None and is_member(theirs))


def _cut_map(node: Node, value: dict[str, Any], last: FieldSet, owned: FieldSet) -> dict[str, Any]:
    out = {}
    for name, item in value.items():
        mine, theirs = last.get(f"f:{name}"), owned.get(f"f:{name}")
        if mine is None:
            out[name] = item
        elif _stays(mine, theirs, named=name in node.fields):
            out[name] = cut(child_node(node, name), item, mine, theirs or {})
    return out


def _cut_list(node: Node, keys: list[str], value: list[Any], last: FieldSet, owned: FieldSet) -> list[Any]:
    out = []
    for key, item in zip(keys, value, strict=True):
        mine, theirs = last.get(key), owned.get(key)
        if mine is None:
            out.append(item)
        elif _stays(mine, theirs, named=False):
            out.append(cut(node.items or ANY, item, mine, theirs or {}) if key[0] == "k" else item)
    return out
