"""Constraints of fields, read only by the CRD generator.

msgspec ignores unknown metadata in `Annotated`, so a constraint never makes decoding fail: an informer must decode any
object that an API server has stored. The API server rejects objects that violate the constraints.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any


@dataclass(frozen=True)
class Schema:
    """OpenAPI v3 keywords of a field, as written into the CRD."""

    keywords: Mapping[str, Any]


class Choice(Schema):
    """Allows only the given values."""

    def __init__(self, *values: str) -> None:
        super().__init__({"enum": [str(value) for value in values]})


class Pattern(Schema):
    """Text must match the regular expression (RE2, unanchored)."""

    def __init__(self, pattern: str) -> None:
        super().__init__({"pattern": pattern})


class Length(Schema):
    """Minimum and maximum number of characters."""

    def __init__(self, least: int = 0, most: int | None = None) -> None:
        limits = {"minLength": least or None, "maxLength": most}
        super().__init__({name: limit for name, limit in limits.items() if limit is not None})


class Range(Schema):
    """A 32-bit integer between two inclusive bounds."""

    def __init__(self, least: int, most: int) -> None:
        super().__init__({"format": "int32", "minimum": least, "maximum": most})


class ListMap(Schema):
    """A list whose entries are identified by the given keys; server-side apply owns entries separately (KEP-555)."""

    def __init__(self, *keys: str) -> None:
        super().__init__({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)})


@dataclass(frozen=True)
class Rule:
    """A CEL rule (x-kubernetes-validations) and the error message of its violation."""

    rule: str
    message: str


@dataclass(frozen=True)
class Required:
    """The API server requires the field, although the struct has a default so that decoding is tolerant."""


@dataclass(frozen=True)
class Defaulted:
    """The API server sets the default of the struct when the field is absent."""


@dataclass(frozen=True)
class TypeSchema:
    """Constraints of a struct, in its class attribute `__schema__`."""

    rules: tuple[Rule, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)


ATOMIC = TypeSchema(keywords={"x-kubernetes-map-type": "atomic"})
"""Server-side apply treats the struct as one value with one owner."""


def kept(name: str, message: str, *, unless: str) -> Rule:
    """A rule that refuses an update which drops the optional field `name`, as typed clients of an older API do.

    `unless` is a CEL expression over oldSelf: a value that may be dropped, because it means the same as its absence.
    """
    return Rule(f"!has(oldSelf.{name}) || has(self.{name}) || {unless}", message)


IMMUTABLE = "self == oldSelf"
"""CEL: the value cannot change after it is set."""

_IP = {"nullable": True, "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}, {"maxLength": 0}]}
_QUANTITY = r"^(([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*))?$"

IP = Annotated[str | None, Schema(_IP)]
"""An IPv4 or IPv6 address. Null and the empty string mean that there is none."""

MAC = Annotated[str, Pattern(r"^(([0-9A-Fa-f]{2}[:-]?){5}[0-9A-Fa-f]{2})?$")]
"""A MAC address with colons, hyphens or no separators, in upper or lower case."""

Port = Annotated[int, Range(0, 65535)]
"""A TCP or UDP port. Programs in Go send 0 for a port that is not set; a condition reports it where it is needed."""

Quantity = Annotated[str, Pattern(_QUANTITY)]
"""A Kubernetes quantity such as 96Gi, always written as a string."""

Text = Annotated[str, Length(most=32768)]
"""Text with the length limit of metav1.Condition.message."""
