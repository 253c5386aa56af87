"""A structural schema (CRD openAPIV3Schema) compiled into a tree of nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

IDENTITY = ("apiVersion", "kind", "metadata")


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of x-kubernetes-validations."""

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool = False


@dataclass(slots=True, eq=False)
class Node:
    """One place in a schema. The flags named `any_*` are true when this place or one below it has such content."""

    type: str = ""
    format: str = ""
    fields: dict[str, "Node"] = field(default_factory=dict)
    extra: "Node | None" = None
    items: "Node | None" = None
    preserve: bool = False
    embedded: bool = False
    int_or_string: bool = False
    nullable: bool = False
    has_default: bool = False
    default: Any = None
    list_type: str = "atomic"
    list_keys: tuple[str, ...] = ()
    atomic: bool = False
    rules: tuple[Rule, ...] = ()
    any_defaults: bool = False
    any_rules: bool = False
    any_list_types: bool = False
    any_conversions: bool = False

    def child(self, name: str) -> "Node | None":
        """The node of a property, else that of additional properties, else None."""
        return self.fields.get(name) or self.extra


ANY = Node(preserve=True)
"""A place without a schema: maps are granular, lists are atomic."""


def compile_node(schema: Mapping[str, Any]) -> Node:
    """The node of a schema and of everything below it. Missing keywords have the defaults of Kubernetes."""
    node = Node(
        type=str(schema.get("type") or ""),
        format=str(schema.get("format") or ""),
        fields={name: compile_node(sub) for name, sub in (schema.get("properties") or {}).items()},
        extra=_extra(schema.get("additionalProperties")),
        items=compile_node(schema["items"]) if isinstance(schema.get("items"), Mapping) else None,
        preserve=bool(schema.get("x-kubernetes-preserve-unknown-fields")),
        embedded=bool(schema.get("x-kubernetes-embedded-resource")),
        int_or_string=bool(schema.get("x-kubernetes-int-or-string")),
        nullable=bool(schema.get("nullable")),
        has_default="default" in schema,
        default=schema.get("default"),
        list_type=str(schema.get("x-kubernetes-list-type") or "atomic"),
        list_keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
        atomic=schema.get("x-kubernetes-map-type") == "atomic",
        rules=_rules(schema.get("x-kubernetes-validations") or ()),
    )
    _summarise(node)
    return node


def _extra(schema: Any) -> Node | None:
    if schema is True:
        return Node(preserve=True)
    return compile_node(schema) if isinstance(schema, Mapping) else None


def _rules(entries: Sequence[Mapping[str, Any]]) -> tuple[Rule, ...]:
    return tuple(
        Rule(
            rule=str(entry.get("rule") or ""),
            message=str(entry.get("message") or "").strip(),
            message_expression=str(entry.get("messageExpression") or ""),
            reason=str(entry.get("reason") or ""),
            field_path=str(entry.get("fieldPath") or ""),
            optional_old_self=bool(entry.get("optionalOldSelf")),
        )
        for entry in entries
    )


def _summarise(node: Node) -> None:
    below = [*node.fields.values(), *(sub for sub in (node.extra, node.items) if sub)]
    node.any_defaults = node.has_default or any(sub.any_defaults for sub in below)
    node.any_rules = bool(node.rules) or any(sub.any_rules for sub in below)
    node.any_list_types = node.list_type in ("set", "map") or any(sub.any_list_types for sub in below)
    converted = node.type == "number" or node.format in ("date-time", "date", "duration", "byte")
    node.any_conversions = converted or any(sub.any_conversions for sub in below)


def item_key(node: Node, item: Any) -> tuple[Any, ...] | None:
    """The identity of an item in a list of type map; None if a key is missing and has no default."""
    if not isinstance(item, Mapping):
        return None
    values = []
    for name in node.list_keys:
        value = item.get(name)
        if value is None:
            key_node = node.items.fields.get(name) if node.items else None
            if key_node is None or not key_node.has_default:
                return None
            value = key_node.default
        values.append(value)
    return tuple(values)
