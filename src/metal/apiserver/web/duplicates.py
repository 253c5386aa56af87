"""Members that a JSON body gives more than once: decoders keep the last, fieldValidation tells of them."""

import json
import re
from collections.abc import Iterator
from typing import Any

_MEMBER = re.compile(rb'"\s*:')
_OPERATION = frozenset({"op", "path", "from", "value"})


class _Pairs(list[tuple[str, Any]]):
    """An object of JSON with every member that was written."""


def told(body: bytes, value: Any, *, json_patch: bool = False) -> list[str]:
    """Sentences such as `duplicate field "spec.size"`, in document order. value: the decoded body."""
    found = []
    if len(_MEMBER.findall(body)) != _members(value):
        prefix = "json patch " if json_patch else ""
        pairs = json.loads(body, object_pairs_hook=_Pairs)
        found = [f'{prefix}duplicate field "{path}"' for path in _twice(pairs, "")]
    return found + (_strange(value) if json_patch else [])


def _members(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(_members(item) for item in value.values())
    return sum(map(_members, value)) if isinstance(value, list) else 0


def _twice(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, item in value:
            where = f"{path}.{name}" if path else name
            if name in seen:
                yield where
            seen.add(name)
            yield from _twice(item, where)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _twice(item, f"{path}[{index}]")


def _strange(operations: Any) -> list[str]:
    return [
        f'json patch unknown field "[{index}].{name}"'
        for index, operation in enumerate(operations if isinstance(operations, list) else ())
        if isinstance(operation, dict)
        for name in operation
        if name not in _OPERATION
    ]
