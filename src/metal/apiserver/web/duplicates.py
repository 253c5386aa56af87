"""Duplicate members of a body: decoders keep the last one, fieldValidation reports them, up to a number."""

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import yaml

from metal.apiserver.machinery import status
from metal.apiserver.machinery.causes import MOST
from metal.apiserver.machinery.options import FieldValidation
from metal.apiserver.web import bodies

_MEMBER = re.compile(rb'"\s*:')
_OPERATION = frozenset({"op", "path", "from", "value"})


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with all its members, including duplicates."""


def messages(body: bytes, value: Any, *, json_patch: bool = False) -> list[str]:
    """Messages such as `duplicate field "spec.size"`, in document order. value: the decoded body."""
    found = []
    if len(_MEMBER.findall(body)) != _members(value):
        prefix = "json patch " if json_patch else ""
        pairs = json.loads(body, object_pairs_hook=_Pairs)
        found = [f'{prefix}duplicate field "{path}"' for path in islice(_twice(pairs, ""), MOST)]
    return found + (_strange(value) if json_patch else [])


def posted_yaml(body: bytes, mode: FieldValidation) -> list[str]:
    """Messages about a YAML body: one for each member, or one for all when the request is refused."""
    found = [] if mode is FieldValidation.IGNORE else list(islice(_keys_again(body), MOST))
    return [_unmarshal(found)] if found and mode is FieldValidation.STRICT else found


def applied(body: bytes, value: Any, mode: FieldValidation) -> list[str]:
    """Warnings about an applied configuration, in YAML or JSON. Raises StatusError 400 when the mode is strict."""
    if mode is FieldValidation.IGNORE or (
        bodies.looks_like_json(body) and len(_MEMBER.findall(body)) == _members(value)
    ):
        return []
    found = list(islice(_keys_again(body), MOST))
    if found and mode is FieldValidation.STRICT:
        raise status.bad_request(f"error strict decoding YAML: error converting YAML to JSON: {_unmarshal(found)}")
    return found


def _unmarshal(found: list[str]) -> str:
    return "yaml: unmarshal errors:\n  " + "\n  ".join(found)


def _keys_again(body: bytes) -> Iterator[str]:
    """`line 7: key "size" already set in map`. The body was parsed without error before."""
    open_maps: list[set[str] | None] = []
    keys = [False]  # For each level, whether a key follows.
    for event in yaml.parse(body, yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionEndEvent):
            open_maps.pop()
            keys.pop()
        elif not isinstance(event, yaml.NodeEvent):
            continue
        else:
            seen = open_maps[-1] if open_maps else None
            if keys[-1] and seen is not None and isinstance(event, yaml.ScalarEvent):
                if event.value in seen:
                    line = event.start_mark.line + 1 if event.start_mark else 0
                    yield f'line {line}: key "{event.value}" already set in map'
                seen.add(event.value)
            keys[-1] = seen is not None and not keys[-1]
            if isinstance(event, yaml.CollectionStartEvent):
                mapping = isinstance(event, yaml.MappingStartEvent)
                open_maps.append(set() if mapping else None)
                keys.append(mapping)


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
