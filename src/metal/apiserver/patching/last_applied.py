"""Objects that `kubectl apply` wrote before server-side apply: what its annotation says, and who keeps it true."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from metal.apiserver.machinery.structural import Node
from metal.apiserver.patching.field_diff import compare
from metal.apiserver.patching.field_set import FieldSet, difference, fields_of

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
MANAGER = "kubectl"
"""The field manager of `kubectl apply --server-side`, unless its user names another one."""
_LIMIT = 256 * 1024
"""Bytes that all annotations of an object may come to."""
_ESCAPED = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})
"""What Go escapes in JSON; it stands in texts only."""


def last_applied(root: Node, live: Mapping[str, Any]) -> FieldSet:
    """Fields that the annotation claims and that still have the value it gave them; `{}` if there is none."""
    text = (live.get("metadata", {}).get("annotations") or {}).get(ANNOTATION)
    try:
        config = json.loads(text) if isinstance(text, str) else None
    except json.JSONDecodeError:
        return {}
    if not isinstance(config, dict) or not config:
        return {}
    claimed = fields_of(root, config, applied=True)
    changes = compare(root, config, dict(live))
    left: FieldSet | None = claimed
    for changed in (changes.written, changes.removed):
        left = difference(left, changed) if left and changed else left
    return left or {}


def renewed(result: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """The result of an apply by kubectl whose annotation, if there is one, says what was applied now.

    So `kubectl apply` without --server-side may follow: it finds what to remove in the annotation.
    """
    meta = result.get("metadata", {})
    annotations = meta.get("annotations") or {}
    if ANNOTATION not in annotations:
        return dict(result)
    annotated = {**annotations, ANNOTATION: _text(config)}
    if sum(len(f"{name}{value}".encode()) for name, value in annotated.items()) > _LIMIT:
        del annotated[ANNOTATION]
    return {**result, "metadata": {**meta, "annotations": annotated}}


def _text(config: Mapping[str, Any]) -> str:
    meta = dict(config.get("metadata") or {})
    if (given := meta.pop("annotations", None)) is not None:
        meta["annotations"] = {name: value for name, value in given.items() if name != ANNOTATION}
    encoded = msgspec.json.encode({**config, "metadata": meta}, order="sorted").decode()
    return encoded.translate(_ESCAPED) + "\n"
