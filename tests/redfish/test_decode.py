"""Tolerant decoding."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.redfish import resources
from metal.redfish.decode import decode

KINDS = [
    kind
    for kind in vars(resources).values()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind is not msgspec.Struct
]
NAMES = sorted({field.encode_name for kind in KINDS for field in msgspec.structs.fields(kind)})
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=20,
)


def test_nulls_and_wrong_types_leave_defaults_and_the_rest_is_kept() -> None:
    """One wrong field affects only itself."""
    raw = {
        "UUID": "ABC",
        "PowerState": None,
        "Model": {"no": "text"},
        "SerialNumber": 12345,
        "MemorySummary": {"TotalSystemMemoryGiB": "15.5"},
        "Boot": {"BootOrder": ["a", None, 3], "BootSourceOverrideTarget": "Pxe", "HttpBootUri": []},
        "Processors": "/redfish/v1/x",
        "LocationIndicatorActive": "yes",
    }
    system = decode(raw, resources.System)
    assert (system.uuid, system.power_state, system.model, system.serial_number) == ("ABC", "", "", "12345")
    assert system.memory_summary.total_system_memory_gib == 15.5
    assert system.boot.boot_order == ("a", "3")
    assert system.boot.boot_source_override_target == "Pxe"
    assert system.processors == resources.Ref()
    assert system.location_indicator_active is None


@pytest.mark.parametrize(("sent", "read"), [("4", 4), (4.0, 4), (4, 4), ("four", 0), (None, 0), ([], 0), (True, 0)])
def test_numbers_are_read_however_they_are_written(sent: object, read: int) -> None:
    """sushy-tools sends cores as strings, others sizes as floats."""
    assert decode({"TotalCores": sent, "Id": None}, resources.Processor).total_cores == read


@pytest.mark.parametrize("raw", [None, [], "x", 3])
def test_what_is_no_object_is_all_defaults(raw: object) -> None:
    """Missing and invalid resources decode alike."""
    assert decode(raw, resources.System) == resources.System()


@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=8))
def test_any_object_decodes_to_fields_of_the_declared_types(kind: type[msgspec.Struct], raw: dict[str, Any]) -> None:
    """No value raises, or results in a wrong type."""
    value = decode(raw, kind)
    assert msgspec.convert(msgspec.to_builtins(value), kind) is not None


@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=8))
def test_one_odd_field_does_not_disturb_the_others(kind: type[msgspec.Struct], raw: dict[str, Any]) -> None:
    """Decoding fields together equals decoding each alone."""
    together = decode(raw, kind)
    for field in msgspec.structs.fields(kind):
        alone = decode({k: v for k, v in raw.items() if k == field.encode_name}, kind)
        assert _same(getattr(together, field.name), getattr(alone, field.name))


def _same(a: object, b: object) -> bool:
    return json.dumps(msgspec.to_builtins(a)) == json.dumps(msgspec.to_builtins(b))
