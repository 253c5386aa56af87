"""Strategic merge patch for the built-in kinds: lists merge by key, and directives as kubectl sends them."""

from collections.abc import Mapping
from typing import Any

Path = tuple[str, ...]
PRIMITIVE = ""

_EVERY_KIND: dict[Path, str] = {
    ("metadata", "ownerReferences"): "uid",
    ("metadata", "finalizers"): PRIMITIVE,
}
_BY_KIND: dict[str, dict[Path, str]] = {
    "ServiceAccount": {("secrets",): "name", ("imagePullSecrets",): "name"},
    "Namespace": {("status", "conditions"): "type"},
}
_REPLACE, _DELETE, _MERGE = "replace", "delete", "merge"
_DIRECTIVE, _RETAIN = "$patch", "$retainKeys"
_FROM_PRIMITIVE, _ORDER = "$deleteFromPrimitiveList/", "$setElementOrder/"


class PatchError(ValueError):
    """A patch does not fit the object; the sentence says where and why."""


def strategic_merge(target: Mapping[str, Any], patch: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The target after a strategic merge patch of an object of a built-in kind. Raises PatchError."""
    if not isinstance(patch, Mapping):
        raise PatchError("a strategic merge patch is an object")
    return _merge_map(target, patch, (), merge_keys(kind))


def merge_keys(kind: str) -> dict[Path, str]:
    """Lists of a built-in kind that merge: their paths and the key of their items, "" for lists of plain values."""
    return _EVERY_KIND | _BY_KIND.get(kind, {})


def _merge_map(target: Any, patch: Mapping[str, Any], path: Path, keys: dict[Path, str]) -> dict[str, Any]:
    directive = patch.get(_DIRECTIVE)
    body = {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if directive == _REPLACE:
        return {key: _plain(value) for key, value in body.items() if value is not None}
    if directive == _DELETE:
        return {}
    if directive not in (None, _MERGE):
        raise PatchError(f"{_where(path)}: unknown $patch {directive!r}: use replace, delete or merge")
    out = dict(target) if isinstance(target, Mapping) else {}
    _retain(out, body.pop(_RETAIN, None), path)
    _delete_primitives(out, body, path)
    order = {name[len(_ORDER) :]: body.pop(name) for name in list(body) if name.startswith(_ORDER)}
    for name, value in body.items():
        _merge_field(out, name, value, (*path, name), keys)
    for name, wanted in order.items():
        if isinstance(out.get(name), list):
            out[name] = _ordered(out[name], wanted, keys.get((*path, name)))
    return out


def _merge_field(out: dict[str, Any], name: str, value: Any, path: Path, keys: dict[Path, str]) -> None:
    if value is None:
        out.pop(name, None)
    elif isinstance(value, Mapping):
        deleted = value.get(_DIRECTIVE) == _DELETE
        if deleted:
            out.pop(name, None)
        else:
            out[name] = _merge_map(out.get(name), value, path, keys)
    elif isinstance(value, list) and path in keys:
        out[name] = _merge_list(out.get(name) or [], value, path, keys)
    else:
        out[name] = value


def _merge_list(current: Any, items: list[Any], path: Path, keys: dict[Path, str]) -> list[Any]:
    key = keys[path]
    if not isinstance(current, list):
        raise PatchError(f"{_where(path)} is not a list")
    if key == PRIMITIVE:
        return [*current, *(item for item in items if item not in current)]
    if any(isinstance(item, Mapping) and item.get(_DIRECTIVE) == _REPLACE and key not in item for item in items):
        return [_plain(item) for item in items if _DIRECTIVE not in item]
    out = list(current)
    for item in items:
        _merge_item(out, item, key, path, keys)
    return out


def _merge_item(out: list[Any], item: Any, key: str, path: Path, keys: dict[Path, str]) -> None:
    if not isinstance(item, Mapping) or key not in item:
        raise PatchError(f"{_where(path)}: every item of the patch needs {key}")
    found = next((i for i, known in enumerate(out) if known.get(key) == item[key]), None)
    if item.get(_DIRECTIVE) == _DELETE:
        if found is not None:
            del out[found]
    elif found is None:
        out.append(_plain(item))
    else:
        out[found] = _merge_map(out[found], item, path, keys)


def _retain(out: dict[str, Any], names: Any, path: Path) -> None:
    if names is None:
        return
    if not isinstance(names, list):
        raise PatchError(f"{_where(path)}: $retainKeys is a list of names")
    for name in [name for name in out if name not in names]:
        del out[name]


def _delete_primitives(out: dict[str, Any], body: dict[str, Any], path: Path) -> None:
    for directive in [name for name in body if name.startswith(_FROM_PRIMITIVE)]:
        gone, name = body.pop(directive), directive[len(_FROM_PRIMITIVE) :]
        if not isinstance(gone, list):
            raise PatchError(f"{_where((*path, directive))} is a list of values")
        if isinstance(out.get(name), list):
            out[name] = [item for item in out[name] if item not in gone]


def _ordered(items: list[Any], wanted: Any, key: str | None) -> list[Any]:
    """Items that the patch orders in its order; each other item keeps its place among them."""
    if not isinstance(wanted, list) or key is None:
        return items
    names = [item.get(key) if key and isinstance(item, Mapping) else item for item in wanted]
    ranked = sorted(
        (item for item in items if _name(item, key) in names), key=lambda item: names.index(_name(item, key))
    )
    queue = iter(ranked)
    return [next(queue) if _name(item, key) in names else item for item in items]


def _name(item: Any, key: str) -> Any:
    return item.get(key) if key and isinstance(item, Mapping) else item


def _plain(value: Any) -> Any:
    """A value of a patch without directives and nulls, as it is stored where nothing was."""
    if not isinstance(value, Mapping):
        return value
    return {key: _plain(item) for key, item in value.items() if item is not None and not key.startswith("$")}


def _where(path: Path) -> str:
    return ".".join(path) or "the patch"
