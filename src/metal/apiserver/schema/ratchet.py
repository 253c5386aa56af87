"""Ratcheting: an update may keep an invalid value that it does not change (KEP-4008)."""

import re
from collections.abc import Mapping
from typing import Any

from metal.apiserver.machinery.causes import Cause
from metal.apiserver.machinery.structural import Node, item_key

_PART = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_MISSING: Any = object()


class Ratchet:
    """Compares an object with its previous version. Each part is compared once, however many causes are below it."""

    def __init__(self, root: Node, obj: Mapping[str, Any], old: Mapping[str, Any]) -> None:
        self._root, self._obj, self._old = root, obj, old
        self._equal: dict[str, bool] = {}

    def is_changed(self, cause: Cause) -> bool:
        """Whether a cause is about a value that changed."""
        return not self._was_there(cause.field)

    def _was_there(self, field: str) -> bool:
        node: Node | None = self._root
        new_value: Any = self._obj
        old_value: Any = self._old
        end = 0
        for match in _PART.finditer(field):
            index, name = match.groups()
            if isinstance(new_value, dict) and name not in new_value:
                break
            if self._are_equal(field[:end], new_value, old_value):
                return True
            old_value, new_value, node = _step(node, old_value, new_value, int(index) if index else name)
            if old_value is _MISSING or new_value is _MISSING:
                return False
            end = match.end()
        return self._are_equal(field[:end], new_value, old_value)

    def _are_equal(self, path: str, new: Any, old: Any) -> bool:
        if path not in self._equal:
            self._equal[path] = bool(new == old)
        return self._equal[path]


def _step(node: Node | None, old: Any, new: Any, part: str | int) -> tuple[Any, Any, Node | None]:
    if isinstance(part, str):
        if not isinstance(new, dict) or not isinstance(old, dict):
            return _MISSING, _MISSING, None
        return old.get(part, _MISSING), new.get(part, _MISSING), node.child(part) if node else None
    if not isinstance(new, list) or not isinstance(old, list) or part >= len(new):
        return _MISSING, _MISSING, None
    if node is None or node.list_type != "map":
        return _MISSING, new[part], None
    key = item_key(node, new[part])
    match = next((item for item in old if key is not None and item_key(node, item) == key), _MISSING)
    return match, new[part], node.items
