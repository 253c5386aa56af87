"""Constraints written next to a field, read by the CRD generator only.

msgspec ignores unknown metadata in `Annotated`, so these never make decoding fail: an informer must survive any object
that some API has stored. The API itself refuses what they forbid.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any


@dataclass(frozen=True)
class Schema:
    """OpenAPI v3 keywords of one field, as they stand in the CRD."""

    keywords: Mapping[str, Any]


class Choice(Schema):
    """Only these values."""

    def __init__(self, *values: str) -> None:
        super().__init__({"enum": [str(value) for value in values]})


class Pattern(Schema):
    """Text that matches this regular expression (RE2, unanchored)."""

    def __init__(self, pattern: str) -> None:
        super().__init__({"pattern": pattern})


class Length(Schema):
    """Text of at least and at most so many characters."""

    def __init__(self, least: int = 0, most: int | None = None) -> None:
        limits = {"minLength": least or None, "maxLength": most}
        super().__init__({name: limit for name, limit in limits.items() if limit is not None})


class Range(Schema):
    """A 32-bit number between these bounds, both included."""

    def __init__(self, least: int, most: int) -> None:
        super().__init__({"format": "int32", "minimum": least, "maximum": most})


class ListMap(Schema):
    """A list that behaves like a map: these keys are unique together, and appliers own single entries (KEP-555)."""

    def __init__(self, *keys: str) -> None:
        super().__init__({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)})


@dataclass(frozen=True)
class Rule:
    """One CEL rule (x-kubernetes-validations) and the sentence that its violation gets."""

    rule: str
    message: str


@dataclass(frozen=True)
class Required:
    """The API demands the field, though the struct has a default so that decoding stays tolerant."""


@dataclass(frozen=True)
class Defaulted:
    """The API fills in the struct's default when the field is absent."""


@dataclass(frozen=True)
class TypeSchema:
    """Constraints of a whole struct, in its class attribute `__schema__`."""

    rules: tuple[Rule, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)


ATOMIC = TypeSchema(keywords={"x-kubernetes-map-type": "atomic"})
"""The struct has one owner as a whole under server-side apply."""

IMMUTABLE = "self == oldSelf"
"""CEL: the value never changes once it is set."""

_IP = {"nullable": True, "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}, {"maxLength": 0}]}
_QUANTITY = r"^(([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*))?$"

IP = Annotated[str | None, Schema(_IP)]
"""An IPv4 or IPv6 address; null and the empty string mean that there is none."""

MAC = Annotated[str, Pattern(r"^(([0-9A-Fa-f]{2}[:-]?){5}[0-9A-Fa-f]{2})?$")]
"""A MAC address with colons, hyphens or no separators, in either case."""

Port = Annotated[int, Range(1, 65535)]
"""A TCP or UDP port."""

Quantity = Annotated[str, Pattern(_QUANTITY)]
"""A Kubernetes quantity such as 96Gi; always text, as every Kubernetes library writes it."""

Text = Annotated[str, Length(most=32768)]
"""A sentence or a few, with the limit that metav1.Condition has."""
