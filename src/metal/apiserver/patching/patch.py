"""JSON merge patch (RFC 7396) and JSON patch (RFC 6902). Inputs are not modified.

Like kube-apiserver, the JSON patch is more tolerant than the RFC: a replaced or copied member need not exist, a
missing value is null, -1 is the last item of a list, and a missing member passes a test for null.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from metal.apiserver.patching.strategic import FormatError, PatchError, strategic_merge
from metal.kube.meta.mergepatch import apply as json_merge

__all__ = ["FormatError", "PatchError", "json_merge", "json_patch", "strategic_merge"]

MAX_OPERATIONS = 10_000
_MAX_COPIED = 3 * 1024 * 1024
"""Maximum of bytes that the copies of one patch add, as in kube-apiserver: each can double the document."""


def json_patch(target: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """The target after all operations, or PatchError that names the failed one and the cause."""
    if not isinstance(operations, list):
        raise PatchError("a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise PatchError(f"the allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}")
    document = copy.deepcopy(target)
    left = _MAX_COPIED
    for index, operation in enumerate(operations):
        try:
            left -= _copied(document, operation)
            if left < 0:
                raise PatchError(f"all copies together come to more than {_MAX_COPIED} bytes")
            document = _apply(document, operation)
        except PatchError as error:
            raise PatchError(f"operation {index} of the JSON patch: {error}") from None
        except RecursionError:
            raise PatchError(f"operation {index} of the JSON patch: the document would be nested too deep") from None
    return document


def _copied(document: Any, operation: Any) -> int:
    """Bytes of what the operation copies."""
    if not isinstance(operation, Mapping) or operation.get("op") != "copy":
        return 0
    return len(msgspec.json.encode(_found(document, _pointer(operation, "from"))))


def _apply(document: Any, operation: Any) -> Any:
    if not isinstance(operation, Mapping):
        raise PatchError("an operation is an object with op and path")
    name = operation.get("op")
    run = _OPERATIONS.get(str(name))
    if run is None:
        raise PatchError(f"unknown op {name!r}: use add, remove, replace, move, copy or test")
    return run(document, _pointer(operation, "path"), operation)


def _pointer(operation: Mapping[str, Any], key: str) -> list[str]:
    text = operation.get(key)
    if not isinstance(text, str):
        raise PatchError(f"{operation.get('op')} needs {key}")
    if text and not text.startswith("/"):
        raise PatchError(f"{key} {text!r} must start with '/'")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _value(operation: Mapping[str, Any]) -> Any:
    return copy.deepcopy(operation.get("value"))


def _text(path: Sequence[str]) -> str:
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in path) or "the whole document"


def _index(part: str, length: int, path: Sequence[str]) -> int:
    digits = part.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or (len(part) > 1 and part[0] == "0"):
        raise PatchError(f"{_text(path)}: {part!r} is not an index of a list")
    if not -length <= int(part) < length:
        raise PatchError(f"{_text(path)}: index {part} is out of bounds, the list has {length} items")
    return int(part) % length


def _get(document: Any, path: Sequence[str]) -> Any:
    for depth, part in enumerate(path):
        if isinstance(document, dict):
            if part not in document:
                raise PatchError(f"{_text(path[: depth + 1])} does not exist")
            document = document[part]
        elif isinstance(document, list):
            document = document[_index(part, len(document), path[: depth + 1])]
        else:
            raise PatchError(f"{_text(path[:depth])} is neither an object nor a list")
    return document


def _add(document: Any, path: list[str], operation: Mapping[str, Any]) -> Any:
    return _put(document, path, _value(operation))


def _put(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _get(document, path[:-1])
    if isinstance(parent, dict):
        parent[path[-1]] = value
    elif isinstance(parent, list):
        last = path[-1]
        parent.insert(len(parent) if last == "-" else _index(last, len(parent) + 1, path), value)
    else:
        raise PatchError(f"{_text(path[:-1])} is neither an object nor a list")
    return document


def _remove(document: Any, path: list[str], operation: Mapping[str, Any]) -> Any:
    if not path:
        raise PatchError("the whole document cannot be removed")
    _get(document, path)
    parent = _get(document, path[:-1])
    del parent[_place(parent, path)]
    return document


def _replace(document: Any, path: list[str], operation: Mapping[str, Any]) -> Any:
    value = _value(operation)
    if not path:
        return value
    parent = _get(document, path[:-1])
    if not isinstance(parent, dict | list):
        raise PatchError(f"{_text(path[:-1])} is neither an object nor a list")
    parent[_place(parent, path)] = value
    return document


def _place(parent: Any, path: Sequence[str]) -> Any:
    return _index(path[-1], len(parent), path) if isinstance(parent, list) else path[-1]


def _found(document: Any, path: Sequence[str]) -> Any:
    """The value at a path; null for a missing member."""
    parent = _get(document, path[:-1])
    return parent.get(path[-1]) if path and isinstance(parent, dict) else _get(document, path)


def _move(document: Any, path: list[str], operation: Mapping[str, Any]) -> Any:
    source = _pointer(operation, "from")
    if path[: len(source)] == source and path != source:
        raise PatchError(f"{_text(source)} cannot be moved into itself")
    value = _get(document, source)
    if path == source:
        return document
    return _put(_remove(document, source, operation), path, value)


def _copy(document: Any, path: list[str], operation: Mapping[str, Any]) -> Any:
    return _put(document, path, copy.deepcopy(_found(document, _pointer(operation, "from"))))


def _test(document: Any, path: list[str], operation: Mapping[str, Any]) -> Any:
    wanted, found = _value(operation), _found(document, path)
    if not same_json(wanted, found):
        raise PatchError(f"test of {_text(path)} failed: the value is another one")
    return document


def same_json(one: Any, other: Any) -> bool:
    """Equality of JSON values: numbers by value, and a boolean is no number."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_json(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return bool(one == other)


_OPERATIONS: dict[str, Callable[[Any, list[str], Mapping[str, Any]], Any]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
