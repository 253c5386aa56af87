"""By which BIOS attribute a TPM is cleared. Redfish (DSP0268) has no action for it; each vendor has attributes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ClearTPM:
    """One vendor's way. The manufacturer is a regular expression, searched without regard to case; empty is any."""

    attribute: str
    value: str
    manufacturer: str = ""
    none: tuple[str, str] = ("", "")
    """Attribute and value by which such a BIOS says that there is no TPM."""


WAYS: tuple[ClearTPM, ...] = (
    ClearTPM("Tpm2Hierarchy", "Clear"),  # Dell, TPM 2.0
    ClearTPM("TpmCommand", "Clear"),  # Dell, TPM 1.2
    ClearTPM("Tpm2Operation", "Clear", none=("TpmState", "NotPresent")),  # HPE, TPM 2.0
    ClearTPM("TpmOperation", "Clear", r"^hp", none=("TpmState", "NotPresent")),  # HPE, TPM 1.2
    ClearTPM("TpmOperation", "TPM Clear", r"nvidia"),  # NVIDIA DGX
    ClearTPM("TrustedComputingGroup_DeviceOperation", "Clear"),  # Lenovo
)


def way_to_clear(manufacturer: str, attributes: Mapping[str, Any]) -> ClearTPM | None:
    """The first way whose attribute this BIOS has."""
    fitting = (way for way in WAYS if way.attribute in attributes)
    return next((way for way in fitting if re.search(way.manufacturer, manufacturer, re.IGNORECASE)), None)


def has_none(way: ClearTPM, attributes: Mapping[str, Any]) -> bool:
    """True when the BIOS says that the machine has no TPM."""
    name, value = way.none
    return bool(name) and attributes.get(name) == value
