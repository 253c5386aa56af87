"""Strategic merge patch for the built-in kinds: lists merge by key, and directives as kubectl sends them."""

from collections.abc import Mapping
from typing import Any

from metal.apiserver.schema.go_types import go_text

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
    """A patch cannot be applied to the object; the message names the place and the cause."""


class FormatError(PatchError):
    """A directive of a patch is invalid."""


def strategic_merge(target: Mapping[str, Any], patch: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The target after a strategic merge patch of an object of a built-in kind. Raises PatchError."""
    if not isinstance(patch, Mapping):
        raise PatchError("a strategic merge patch is an object")
    return _merge_map(target, patch, (), merge_keys(kind))


def merge_keys(kind: str) -> dict[Path, str]:
    """Lists of a built-in kind that merge: their paths and merge keys, "" for lists of plain values."""
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
    _retain(out, body.pop(_RETAIN, None), body)
    _delete_primitives(out, body, path)
    order = {name[len(_ORDER) :]: body.pop(name) for name in list(body) if name.startswith(_ORDER)}
    for name, value in body.items():
        _merge_field(out, name, value, (*path, name), keys)
    before = target if isinstance(target, Mapping) else {}
    for name in order.keys() | {name for name, value in body.items() if isinstance(value, list)}:
        key = keys.get((*path, name))
        if isinstance(out.get(name), list) and key is not None:
            wanted = _names(order.get(name, body.get(name)), key)
            _check_order(_names(body.get(name), key), wanted)
            out[name] = _ordered(out[name], wanted, _names(before.get(name), key), key)
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
        raise PatchError(f"map: {go_text(item)} does not contain declared merge key: {key}")
    found = next((i for i, known in enumerate(out) if known.get(key) == item[key]), None)
    if item.get(_DIRECTIVE) == _DELETE:
        if found is not None:
            del out[found]
    elif found is None:
        out.append(_plain(item))
    else:
        out[found] = _merge_map(out[found], item, path, keys)


def _retain(out: dict[str, Any], names: Any, body: Mapping[str, Any]) -> None:
    if names is None:
        return
    if not isinstance(names, list) or not all(name in names for name in body if not name.startswith("$")):
        raise FormatError("invalid patch format of retainKeys")
    for name in [name for name in out if name not in names]:
        del out[name]


def _delete_primitives(out: dict[str, Any], body: dict[str, Any], path: Path) -> None:
    for directive in [name for name in body if name.startswith(_FROM_PRIMITIVE)]:
        gone, name = body.pop(directive), directive[len(_FROM_PRIMITIVE) :]
        if not isinstance(gone, list):
            raise PatchError(f"{_where((*path, directive))} is a list of values")
        if isinstance(out.get(name), list):
            out[name] = [item for item in out[name] if item not in gone]


def _check_order(patch: list[Any], wanted: list[Any]) -> None:
    rest = iter(wanted)
    if not all(name in rest for name in patch):
        message = (
            f"The order in patch list:\n{go_text(patch)}\n doesn't match $setElementOrder list:\n{go_text(wanted)}\n"
        )
        raise PatchError(message)


def _ordered(items: list[Any], wanted: list[Any], before: list[Any], key: str) -> list[Any]:
    """Items of the patch in its order; every other item precedes the first item that it preceded before."""
    named = sorted(
        (item for item in items if _name(item, key) in wanted), key=lambda item: wanted.index(_name(item, key))
    )
    others = [item for item in items if _name(item, key) not in wanted]
    out = []
    while others and named:
        other, name = _name(others[0], key), _name(named[0], key)
        first = other in before and name in before and before.index(other) < before.index(name)
        out.append(others.pop(0) if first else named.pop(0))
    return out + named + others


def _names(items: Any, key: str) -> list[Any]:
    """Keys of the items of a list that remain."""
    kept = [item for item in items or () if not isinstance(item, Mapping) or item.get(_DIRECTIVE) is None]
    return [_name(item, key) for item in kept]


def _name(item: Any, key: str) -> Any:
    return item.get(key) if key and isinstance(item, Mapping) else item


def _plain(value: Any) -> Any:
    """A value of a patch without directives and nulls, for a place without a value."""
    if not isinstance(value, Mapping):
        return value
    return {key: _plain(item) for key, item in value.items() if item is not None and not key.startswith("$")}


def _where(path: Path) -> str:
    return ".".join(path) or "the patch"
