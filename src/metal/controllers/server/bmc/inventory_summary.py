"""Converts the inventory that a BMC reports to fields of the Server's status."""

from collections.abc import Iterable
from typing import Any

from metal.api.network import NetworkInterface
from metal.api.sanitization import RAIDVolume, VolumeDrive
from metal.api.server import Processor, ServerStatus
from metal.api.storage import Storage, StorageDrive, StorageVolume
from metal.bmc import inventory as bmc
from metal.machine import architecture, interfaces
from metal.machine.quantity import quantity


def of_inventory(inventory: bmc.Inventory, known: ServerStatus) -> dict[str, Any]:
    """Status fields for an out-of-band inventory. What only the probe reported before is kept."""
    system, processors = inventory.system, tuple(_processor(p) for p in inventory.processors)
    return {
        "manufacturer": system.manufacturer,
        "model": system.model,
        "sku": system.sku,
        "serial_number": system.serial_number,
        "bios_version": system.bios_version,
        "total_system_memory": quantity(system.total_memory_bytes),
        "power_state": system.power_state.value,
        "indicator_led": system.indicator_led,
        "processors": processors,
        "architecture": architecture.of_processors(processors, system.processor_model) or known.architecture,
        "storages": tuple(_storage(s) for s in inventory.storages),
        "network_interfaces": interfaces.shown_by_bmc(_interfaces(inventory), known.network_interfaces),
    }


def _interfaces(inventory: bmc.Inventory) -> tuple[NetworkInterface, ...]:
    found = (nic for nic in inventory.network_interfaces if nic.mac_address)
    return tuple(NetworkInterface(name=nic.name, mac_address=nic.mac_address) for nic in found)


def _processor(p: bmc.Processor) -> Processor:
    return Processor(
        id=p.id, type=p.type, architecture=p.architecture, instruction_set=p.instruction_set,
        manufacturer=p.manufacturer, model=p.model, max_speed_mhz=p.max_speed_mhz,
        total_cores=p.total_cores, total_threads=p.total_threads,
    )  # fmt: skip


def _storage(s: bmc.Storage) -> Storage:
    return Storage(
        name=s.name,
        state=s.state,
        drives=tuple(
            StorageDrive(
                name=d.name, media_type=d.media_type, type=d.type, capacity=quantity(d.capacity_bytes),
                vendor=d.vendor, model=d.model, serial_number=d.serial_number, wwn=d.wwn, state=d.state,
            )
            for d in s.drives
        ),
        volumes=tuple(
            StorageVolume(
                name=v.name, capacity=quantity(v.capacity_bytes), state=v.state, raid_type=v.raid_type,
                volume_usage=v.usage,
            )
            for v in s.volumes
        ),
    )  # fmt: skip


def volumes(storages: Iterable[bmc.Storage]) -> tuple[RAIDVolume, ...]:
    """Volumes with their drives, as evidence of sanitization keeps them."""
    return tuple(
        RAIDVolume(
            name=v.name, raid_type=v.raid_type, wwn=v.wwn, size=v.capacity_bytes, state=v.state, health=v.health,
            drives=tuple(
                VolumeDrive(
                    serial_number=d.serial_number, slot=d.name, size=d.capacity_bytes, state=d.state, health=d.health
                )
                for d in v.drives
            ),
        )
        for s in storages for v in s.volumes
    )  # fmt: skip
