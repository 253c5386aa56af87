"""What the CRDs demand of a status: nothing that a value from outside could violate, so each can be written."""

from collections.abc import Iterator
from typing import Any

from metal.api.kinds import kinds
from tests.crds import crds

LIMITS = ("pattern", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "maxProperties", "anyOf")
OWN = {
    ("conditions.message", "maxLength"), ("conditions.reason", "maxLength"), ("conditions.reason", "pattern"),
    ("conditions.type", "maxLength"), ("conditions.type", "pattern"),
    ("bootWindow.configRef.name", "maxLength"), ("bootWindow.configRef.namespace", "maxLength"),
    ("inventory.totalSystemMemory", "pattern"), ("dnsRecord.name", "maxLength"), ("dnsRecord.namespace", "maxLength"),
    ("ip", "anyOf"), ("networkInterfaces.ip", "anyOf"), ("systems", "maxProperties"),
    ("storages.drives.capacity", "pattern"), ("storages.volumes.capacity", "pattern"), ("totalSystemMemory", "pattern"),
}  # fmt: skip
"""Limits of values that this operator makes itself, or copies from a field with the same limit."""


def limits(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Path and keyword of every limit in a schema."""
    yield from ((path, word) for word in LIMITS if word in schema)
    for name, inner in schema.get("properties", {}).items():
        yield from limits(inner, f"{path}.{name}".lstrip("."))
    if "items" in schema:
        yield from limits(schema["items"], path)


def test_no_value_from_outside_can_make_a_status_write_fail() -> None:
    """Neither a malformed MAC address nor anything else that a BMC, a probe or a user's spec says."""
    found = set()
    for crd in crds(kinds()):
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        found |= set(limits(schema["properties"].get("status", {})))
    assert found == OWN
