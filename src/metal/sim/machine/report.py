"""The metalprobe report of a simulated machine, with the same hardware that its BMC reports."""

from datetime import datetime
from typing import Any

from metal.sim.machine.hardware import BIOS_VERSION, GIB, MANUFACTURER, Disk, Hardware
from metal.sim.machine.identity import Identity

FOREIGN_MAC = "02:05:ff:ff:ff:ff"
"""A MAC address that belongs to no machine."""


def report(
    identity: Identity, parts: Hardware, now: datetime, drives: tuple[Disk, ...] | None = None
) -> dict[str, Any]:
    """The `data` of a registration. `drives` are those that can be seen, all when None."""
    return {
        "timestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "architecture": {"amd64": "x86_64", "arm64": "aarch64"}[parts.architecture],
        "systemInfo": _system(identity, parts),
        "cpu": [_cpu(parts, number) for number in range(parts.sockets)],
        "networkInterfaces": _interfaces(identity),
        "lldp": [{"name": "eth0", "neighbors": [_neighbor(identity)]}],
        "storage": [_disk(disk, number) for number, disk in enumerate(parts.disks) if drives is None or disk in drives],
        "memory": [_dimm(identity, parts, number) for number in range(parts.dimms)],
        "nics": [_nic(mac, number) for number, mac in enumerate(identity.host_macs)],
        "pciDevices": [_pci(number) for number in range(len(identity.host_macs))],
        "problems": [],
    }


def _system(identity: Identity, parts: Hardware) -> dict[str, Any]:
    return {
        "biosInformation": {"vendor": MANUFACTURER, "version": BIOS_VERSION, "date": "01/15/2026"},
        "systemInformation": {
            "manufacturer": MANUFACTURER, "productName": parts.model, "version": "1", "serialNumber": identity.serial,
            "uuid": identity.uuid, "skuNumber": parts.sku, "family": "Simulated",
        },
        "boardInformation": {
            "manufacturer": MANUFACTURER, "product": f"{parts.model}-MB", "version": "A1",
            "serialNumber": f"{identity.serial}-B", "assetTag": "",
        },
    }  # fmt: skip


def _cpu(parts: Hardware, number: int) -> dict[str, Any]:
    return {
        "id": number, "totalCores": parts.cores, "totalHardwareThreads": 2 * parts.cores, "vendor": MANUFACTURER,
        "model": parts.cpu_model, "capabilities": ["aes", "avx2", "sse4_2", "vmx"],
    }  # fmt: skip


def _interfaces(identity: Identity) -> list[dict[str, Any]]:
    return [
        {
            "name": f"eth{number}", "macAddress": mac, "carrierStatus": "down" if number else "up",
            "ipAddresses": [] if number else [identity.host_ip],
        }
        for number, mac in enumerate(identity.host_macs)
    ]  # fmt: skip


def _neighbor(identity: Identity) -> dict[str, Any]:
    rack, port = divmod(identity.number, 40)
    return {
        "chassisId": f"02:05:ee:00:{rack >> 8 & 0xFF:02x}:{rack & 0xFF:02x}", "portId": f"Ethernet{port}",
        "portDescription": f"to {identity.name}", "systemName": f"leaf-{rack:03d}",
        "systemDescription": "simulated switch", "mgmtIp": "", "capabilities": ["Bridge"], "vlanId": "0",
    }  # fmt: skip


def drive_name(number: int) -> str:
    """The Linux name of the drive with this number."""
    return f"nvme{number}n1"


def _disk(disk: Disk, number: int) -> dict[str, Any]:
    name = drive_name(number)
    return {
        "path": f"/dev/{name}", "name": name, "rotational": False, "removable": False, "readOnly": False,
        "vendor": MANUFACTURER, "model": disk.model, "serial": disk.serial, "wwid": f"eui.{disk.serial.lower()}",
        "physicalBlockSize": 4096, "logicalBlockSize": 512, "hWSectorSize": 512, "sizeBytes": disk.size,
        "numaNodeID": 0,
    }  # fmt: skip


def _dimm(identity: Identity, parts: Hardware, number: int) -> dict[str, Any]:
    return {
        "size": parts.dimm_gib * GIB, "deviceSet": "None", "deviceLocator": f"DIMM {number}", "bankLocator": "",
        "memoryType": "DDR4", "speed": "3200 MT/s", "vendor": MANUFACTURER,
        "serialNumber": f"{identity.serial}-M{number}", "assetTag": "", "partNumber": f"SIM-{parts.dimm_gib}G",
        "configuredMemorySpeed": "3200 MT/s", "minimumVoltage": "1.2 V", "maximumVoltage": "1.2 V",
        "configuredVoltage": "1.2 V",
    }  # fmt: skip


def _nic(mac: str, number: int) -> dict[str, Any]:
    return {
        "name": f"eth{number}", "mac": mac, "pciAddress": f"0000:0{number + 1}:00.0", "speed": "25000Mb/s",
        "linkModes": ["25000baseCR/Full"], "supportedPorts": ["FIBRE"], "firmwareVersion": "1.0",
    }  # fmt: skip


def _pci(number: int) -> dict[str, Any]:
    return {
        "address": f"0000:0{number + 1}:00.0", "vendor": MANUFACTURER, "vendorID": "1ab8", "product": "SimNIC 25G",
        "productID": "0001", "numaNodeID": 0,
    }  # fmt: skip
