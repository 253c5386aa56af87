"""Uniqueness in lists of type set and map (x-kubernetes-list-type)."""

import json
from collections.abc import Iterator
from typing import Any

from metal.apiserver.machinery.causes import Cause, duplicate, path_text
from metal.apiserver.machinery.structural import Node, item_key

Path = tuple[str | int, ...]


def check_lists(node: Node, value: Any, path: Path = ()) -> Iterator[Cause]:
    """Duplicates in sets and maps, at this place and below. The schema's `required` reports missing keys."""
    if not node.any_list_types:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            if (sub := node.child(key)) is not None:
                yield from check_lists(sub, item, (*path, key))
    elif isinstance(value, list):
        if node.list_type == "set":
            yield from _set(value, path)
        elif node.list_type == "map":
            yield from _map(node, value, path)
        if node.items is not None and node.items.any_list_types:
            for index, item in enumerate(value):
                yield from check_lists(node.items, item, (*path, index))


def _set(value: list[Any], path: Path) -> Iterator[Cause]:
    seen = set()
    for index, item in enumerate(value):
        text = json.dumps(item, sort_keys=True)
        if text in seen:
            yield duplicate(path_text((*path, index)), item)
        seen.add(text)


def _map(node: Node, value: list[Any], path: Path) -> Iterator[Cause]:
    seen = set()
    for index, item in enumerate(value):
        if not isinstance(item, dict):
            continue
        key = item_key(node, item)
        if key is None:
            continue
        text = json.dumps(key)
        if text in seen:
            yield duplicate(path_text((*path, index)), dict(zip(node.list_keys, key, strict=True)))
        seen.add(text)
