"""The annotation of client-side `kubectl apply`: read for ownership, and kept up to date by server-side apply."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from metal.apiserver.machinery.structural import Node
from metal.apiserver.patching.field_diff import compare
from metal.apiserver.patching.field_set import FieldSet, difference, fields_of

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
MANAGER = "kubectl"
"""The field manager of `kubectl apply --server-side`, unless the user sets another one."""
_LIMIT = 256 * 1024
"""Maximum of bytes of all annotations of an object."""
_ESCAPED = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})
"""Characters that Go escapes in JSON; they occur in strings only."""


def last_applied(root: Node, live: Mapping[str, Any]) -> FieldSet:
    """Fields in the annotation that still have its value; `{}` without annotation."""
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
    """The result of an apply by kubectl, with the annotation, if there is one, set to what was applied.

    A later `kubectl apply` without --server-side finds in the annotation what to remove.
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
