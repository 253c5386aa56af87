"""A CRD version's schema, compiled: pruning, defaulting, validation."""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain, islice
from typing import Any

from metal.apiserver.cel.rules import check_rules
from metal.apiserver.machinery import object_meta
from metal.apiserver.machinery.causes import BLOCKING, INVALID, MOST, Cause
from metal.apiserver.machinery.structural import IDENTITY, Node, compile_node
from metal.apiserver.schema import defaults, prune
from metal.apiserver.schema.list_types import check_lists
from metal.apiserver.schema.ratchet import Ratchet
from metal.apiserver.schema.values import Values

__all__ = ["Cause", "Compiled", "compiled"]

_UNCHECKED = Cause(
    "<nil>",
    INVALID,
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)


class Compiled:
    """An openAPIV3Schema, ready for use. Inputs are not modified. A rule that does not compile raises RuleError."""

    def __init__(self, openapi_schema: Mapping[str, Any]) -> None:
        self.schema: Mapping[str, Any] = openapi_schema
        self.root: Node = compile_node(openapi_schema)
        self._values = Values(_with_metadata(openapi_schema))

    def prune(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        """The object without fields that the schema does not declare."""
        return prune.prune(self.root, obj)

    def unknown_fields(self, obj: Mapping[str, Any]) -> list[str]:
        """Paths of the fields that `prune` drops, such as `spec.list[0].bar`."""
        return prune.unknown_fields(self.root, obj)

    def default(self, obj: Mapping[str, Any], *, applied: bool = False) -> dict[str, Any]:
        """The object with defaults, and, unless it was applied, without null where null is not allowed."""
        return defaults.default(self.root, obj, applied=applied)

    def validate(self, obj: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> list[Cause]:
        """Violations of the schema, a few more than MOST when there are many.

        With `old`, transition rules run too, and unchanged invalid values are accepted.
        """
        causes = list(islice(self._violations(obj, old), MOST + 1))
        if len(causes) > MOST or any(cause.reason in BLOCKING for cause in causes):
            return [*causes, _UNCHECKED] if self.root.any_rules else causes
        if self.root.any_rules:
            rules = check_rules(self.root, obj) if old is None else check_rules(self.root, obj, old)
            causes += islice(rules, MOST + 1)
        return causes

    def _violations(self, obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
        lists = check_lists(self.root, {key: value for key, value in obj.items() if key not in IDENTITY})
        if old is None:
            return chain(self._values.check(obj), lists)
        changed = Ratchet(self.root, obj, old).is_changed
        return filter(changed, chain(self._values.check(obj, accepted=lambda cause: not changed(cause)), lists))


def compiled(openapi_schema: Mapping[str, Any]) -> Compiled:
    """The compiled form of a schema. Compiling takes milliseconds, and CRDs are installed again at every start."""
    return _compiled(json.dumps(openapi_schema))


@lru_cache(maxsize=256)
def _compiled(text: str) -> Compiled:
    return Compiled(json.loads(text))


def _with_metadata(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Schema of a whole resource: apiVersion, kind and metadata are typed even if the CRD does not declare them."""
    properties = dict(schema.get("properties") or {})
    own = dict(properties.get("metadata") or {})
    merged = {**object_meta.SCHEMA["properties"], **(own.get("properties") or {})}
    properties["metadata"] = {**object_meta.SCHEMA, **own, "properties": merged}
    for name in ("apiVersion", "kind"):
        properties.setdefault(name, {"type": "string"})
    return {**schema, "properties": properties}
