"""JSON merge patch (RFC 7396): make one from two documents, apply one."""

from collections.abc import Mapping
from typing import Any


def diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The smallest patch that turns old into new; {} when they are equal.

    A patch cannot set a member to null, so null in `new` means "absent".
    """
    patch: dict[str, Any] = {key: None for key in old if old[key] is not None and new.get(key) is None}
    for key, value in new.items():
        if value is None:
            continue
        before = old.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            if nested := diff(before, value):
                patch[key] = nested
        elif before is None or not _equal(before, value):
            patch[key] = _without_nulls(value)
    return patch


def apply(target: Any, patch: Any) -> Any:
    """The patched document. Neither argument is changed; parts that the patch leaves alone are shared with target."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = apply(result.get(key), value)
    return result


def _equal(one: Any, other: Any) -> bool:
    """Equality as JSON sees it: true is not 1."""
    if one is other:
        return True
    if isinstance(one, bool) or isinstance(other, bool):
        return False
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other)


def _without_nulls(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {key: _without_nulls(member) for key, member in value.items() if member is not None}
