"""Memory modules: SMBIOS type 17, or the kernel's total where the firmware names none."""

from __future__ import annotations

import re

from metal.probe.collectors import Fields
from metal.probe.host import Host
from metal.probe.smbios import Structure, structures

MEMORY_DEVICE = 17
KIB, MIB = 1024, 1024 * 1024
TYPES = {
    0x01: "Other", 0x03: "DRAM", 0x04: "EDRAM", 0x05: "VRAM", 0x06: "SRAM", 0x07: "RAM", 0x08: "ROM", 0x09: "Flash",
    0x0F: "SDRAM", 0x11: "RDRAM", 0x12: "DDR", 0x13: "DDR2", 0x14: "DDR2 FB-DIMM", 0x18: "DDR3", 0x19: "FBD2",
    0x1A: "DDR4", 0x1B: "LPDDR", 0x1C: "LPDDR2", 0x1D: "LPDDR3", 0x1E: "LPDDR4", 0x1F: "Logical non-volatile device",
    0x20: "HBM", 0x21: "HBM2", 0x22: "DDR5", 0x23: "LPDDR5", 0x24: "HBM3",
}  # fmt: skip
"""DSP0134, table "Memory Device: Type"."""


def collect(host: Host) -> list[Fields]:
    """One entry per module that is in place; sizes in bytes.

    Raises:
        LookupError: neither firmware nor kernel tells a size.
    """
    table = host.data("/sys/firmware/dmi/tables/DMI")
    modules = [_module(found) for found in structures(table) if found.kind == MEMORY_DEVICE and _size(found)]
    return modules or [_total(host)]


def _module(found: Structure) -> Fields:
    return {
        "size": _size(found),
        "deviceSet": str(found.byte(0x0F) or ""),
        "deviceLocator": found.string(0x10),
        "bankLocator": found.string(0x11),
        "memoryType": TYPES.get(found.byte(0x12), "Unknown"),
        "speed": _speed(found, 0x15, 0x54),
        "vendor": found.string(0x17),
        "serialNumber": found.string(0x18),
        "assetTag": found.string(0x19),
        "partNumber": found.string(0x1A),
        "configuredMemorySpeed": _speed(found, 0x20, 0x58),
        "minimumVoltage": _voltage(found.word(0x22)),
        "maximumVoltage": _voltage(found.word(0x24)),
        "configuredVoltage": _voltage(found.word(0x26)),
    }


def _size(found: Structure) -> int:
    size = found.word(0x0C)
    if size == 0xFFFF:
        return 0
    if size == 0x7FFF:
        return (found.dword(0x1C) & 0x7FFFFFFF) * MIB
    return (size & 0x7FFF) * (KIB if size & 0x8000 else MIB)


def _speed(found: Structure, offset: int, extended: int) -> str:
    speed = found.word(offset)
    if speed == 0xFFFF:
        speed = found.dword(extended) & 0x7FFFFFFF
    return f"{speed} MT/s" if speed else "Unknown"


def _voltage(millivolts: int) -> str:
    return f"{millivolts / 1000:g} V" if millivolts else "Unknown"


def _total(host: Host) -> Fields:
    found = re.search(r"^MemTotal:\s+(\d+) kB", host.text("/proc/meminfo"), re.MULTILINE)
    if not found:
        raise LookupError("neither SMBIOS type 17 nor MemTotal in /proc/meminfo tells the memory")
    told = dict.fromkeys(("deviceSet", "bankLocator", "vendor", "serialNumber", "assetTag", "partNumber"), "")
    unknown = ("memoryType", "speed", "configuredMemorySpeed", "minimumVoltage", "maximumVoltage", "configuredVoltage")
    return {
        "size": int(found.group(1)) * KIB,
        "deviceLocator": "all memory that the kernel may use",
        **told,
        **dict.fromkeys(unknown, "Unknown"),
    }
