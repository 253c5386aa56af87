"""Values merged and cut down by a schema, as server-side apply needs it (structured merge, KEP-555)."""

from typing import Any

from metal.apiserver.fieldset import FieldSet, child_node, element_keys, granular_map, is_member
from metal.apiserver.structural import ANY, Node


def merge(node: Node, live: Any, applied: Any) -> Any:
    """The live value with the applied one laid over it. Unchanged parts are shared with the inputs."""
    if granular_map(node, live) and granular_map(node, applied):
        out = dict(live)
        for name, value in applied.items():
            out[name] = merge(child_node(node, name), live[name], value) if name in live else value
        return out
    before, after = element_keys(node, live), element_keys(node, applied)
    if before is None or after is None:
        return applied
    return _merge_lists(node, dict(zip(before, live, strict=True)), dict(zip(after, applied, strict=True)))


def _merge_lists(node: Node, live: dict[str, Any], applied: dict[str, Any]) -> list[Any]:
    """Applied items in their order; an item that only lives stays behind the shared neighbour that it followed."""
    items = node.items or ANY
    followers = _followers(live, applied)
    out = followers.get("", [])
    for key, value in applied.items():
        out.append(merge(items, live[key], value) if key in live and key[0] == "k" else value)
        out.extend(followers.get(key, ()))
    return out


def _followers(live: dict[str, Any], applied: dict[str, Any]) -> dict[str, list[Any]]:
    """Items that only live, by the shared item that they follow; "" for those at the front."""
    found: dict[str, list[Any]] = {}
    last = ""
    for key, value in live.items():
        if key in applied:
            last = key
        else:
            found.setdefault(last, []).append(value)
    return found


GONE: Any = object()


def cut(node: Node, value: Any, last: FieldSet, owned: FieldSet | None) -> Any:
    """The value without what `last` has and `owned` has not; GONE if the whole value goes."""
    if owned is None:
        return GONE
    if not last:
        return value
    if granular_map(node, value):
        return _cut_map(node, value, last, owned)
    keys = element_keys(node, value)
    return value if keys is None else _cut_list(node, keys, value, last, owned)


def _cut_map(node: Node, value: dict[str, Any], last: FieldSet, owned: FieldSet) -> dict[str, Any]:
    out = {}
    for name, item in value.items():
        mine = last.get(f"f:{name}")
        left = item if mine is None else cut(child_node(node, name), item, mine, owned.get(f"f:{name}"))
        if left is not GONE:
            out[name] = left
    return out


def _cut_list(node: Node, keys: list[str], value: list[Any], last: FieldSet, owned: FieldSet) -> list[Any]:
    out = []
    for key, item in zip(keys, value, strict=True):
        mine, theirs = last.get(key), owned.get(key)
        if mine is None:
            out.append(item)
        elif theirs is not None or not is_member(mine):
            out.append(cut(node.items or ANY, item, mine, theirs or {}) if key[0] == "k" else item)
    return out
