"""Objects that `kubectl apply` wrote before server-side apply: what its annotation says may be taken over."""

import json
from collections.abc import Mapping
from typing import Any

from metal.apiserver.fielddiff import compare
from metal.apiserver.fieldset import FieldSet, difference, fields_of
from metal.apiserver.structural import Node

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"


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
