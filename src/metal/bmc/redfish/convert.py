"""Converts Redfish resources to the value types of metal.bmc."""

import re
from collections.abc import Iterable

from metal.bmc.boot import BootOverride
from metal.bmc.inventory import Drive, MemoryModule, Processor, Volume
from metal.bmc.power import PowerState
from metal.bmc.systems import ManagerInfo, SystemInfo
from metal.redfish import resources as schema

_GIB = 1024**3
_MIB = 1024**2
_WORLD_WIDE = ("NAA", "EUI", "NGUID")
"""Formats of identifiers that operating systems show (DSP0268, Resource.Identifier)."""
_MAC_DIGITS = re.compile(r"[0-9a-f]{12}")


def power_state(text: str) -> PowerState:
    """UNKNOWN for a missing or unknown value."""
    try:
        return PowerState(text)
    except ValueError:
        return PowerState.UNKNOWN


def mac(text: str) -> str:
    """Lower case with colons; empty when it is not a MAC address, or all zeros."""
    digits = re.sub(r"[\s:.-]", "", text.lower())
    if not _MAC_DIGITS.fullmatch(digits) or not digits.strip("0"):
        return ""
    return ":".join(digits[i : i + 2] for i in range(0, 12, 2))


def boot_override(boot: schema.Boot) -> BootOverride:
    """The override as reported."""
    return BootOverride(
        enabled=boot.boot_source_override_enabled,
        target=boot.boot_source_override_target,
        mode=boot.boot_source_override_mode,
        http_boot_uri=boot.http_boot_uri,
    )


def indicator(system: schema.System) -> str:
    """The LED; LocationIndicatorActive, which replaces it in newer schemas, as Lit or Off."""
    if system.indicator_led or system.location_indicator_active is None:
        return system.indicator_led
    return "Lit" if system.location_indicator_active else "Off"


def system_info(uri: str, system: schema.System) -> SystemInfo:
    """One system under the URI it was read from."""
    boot = system.boot
    return SystemInfo(
        uri=uri,
        uuid=system.uuid.lower(),
        manufacturer=system.manufacturer.strip(),
        model=system.model.strip(),
        sku=system.sku.strip(),
        serial_number=system.serial_number.strip(),
        bios_version=system.bios_version.strip(),
        power_state=power_state(system.power_state),
        indicator_led=indicator(system),
        total_memory_bytes=max(0, int(system.memory_summary.total_system_memory_gib * _GIB)),
        processor_model=system.processor_summary.model.strip(),
        boot=boot_override(boot),
        boot_order=boot.boot_order,
        bootable=bool(boot.boot_source_override_enabled or boot.boot_source_override_target or boot.target_values),
    )


def manager_info(uri: str, manager: schema.Manager) -> ManagerInfo:
    """The BMC itself; sku is its part number, as in the Go operator."""
    return ManagerInfo(
        uri=uri,
        uuid=manager.uuid.lower(),
        manufacturer=manager.manufacturer.strip(),
        model=manager.model.strip(),
        sku=manager.part_number.strip(),
        serial_number=manager.serial_number.strip(),
        firmware_version=manager.firmware_version.strip(),
        state=manager.status.state,
        power_state=power_state(manager.power_state),
        last_reset_time=manager.last_reset_time,
    )


def processor(cpu: schema.Processor) -> Processor:
    """One Processor resource."""
    return Processor(
        id=cpu.id,
        type=cpu.processor_type,
        architecture=cpu.processor_architecture,
        instruction_set=cpu.instruction_set,
        manufacturer=cpu.manufacturer.strip(),
        model=cpu.model.strip(),
        max_speed_mhz=cpu.max_speed_mhz,
        total_cores=cpu.total_cores,
        total_threads=cpu.total_threads,
    )


def memory_module(module: schema.MemoryModule) -> MemoryModule:
    """One Memory resource."""
    return MemoryModule(
        id=module.id,
        size_bytes=module.capacity_mib * _MIB,
        type=module.memory_device_type,
        speed_mhz=module.operating_speed_mhz,
        manufacturer=module.manufacturer.strip(),
        part_number=module.part_number.strip(),
        serial_number=module.serial_number.strip(),
    )


def drive(disk: schema.Drive) -> Drive:
    """One Drive resource, or one device of a SimpleStorage."""
    return Drive(
        name=disk.name or disk.id,
        media_type=disk.media_type,
        type=disk.protocol,
        capacity_bytes=disk.capacity_bytes,
        vendor=disk.manufacturer.strip(),
        model=disk.model.strip(),
        serial_number=disk.serial_number.strip(),
        wwn=_world_wide(disk.identifiers),
        state=disk.status.state,
        health=disk.status.health,
    )


def _world_wide(identifiers: Iterable[schema.Identifier]) -> str:
    named = (one.durable_name.strip() for one in identifiers if one.durable_name_format in _WORLD_WIDE)
    return next(named, "")


def volume(part: schema.Volume, drives: tuple[Drive, ...]) -> Volume:
    """One Volume resource, which is on these drives."""
    return Volume(
        name=part.name or part.id,
        capacity_bytes=part.capacity_bytes,
        state=part.status.state,
        raid_type=part.raid_type,
        usage=part.volume_usage,
        health=part.status.health,
        wwn=_world_wide(part.identifiers),
        drives=drives,
    )
