"""What metalprobe reports from a simulated machine, in the form of the real one."""

from datetime import datetime
from typing import Any

from metal.sim.hardware import BIOS_VERSION, GIB, MANUFACTURER, Hardware
from metal.sim.identity import Identity

JSON = dict[str, Any]


def report(identity: Identity, built: Hardware, now: datetime) -> JSON:
    """The `data` of a registration."""
    return {
        "timestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "systemInfo": _system(identity, built),
        "cpu": [_cpu(number, built) for number in range(built.sockets)],
        "networkInterfaces": _interfaces(identity),
        "lldp": [{"name": _name(0), "neighbors": [_neighbor(identity)]}],
        "storage": [_drive(number, built) for number in range(len(built.disks))],
        "memory": [_module(number, identity, built) for number in range(built.dimms)],
        "nics": [_nic(number, mac) for number, mac in enumerate(identity.host_macs)],
        "pciDevices": [_pci(number) for number in range(len(identity.host_macs))],
        "problems": [],
    }


def _system(identity: Identity, built: Hardware) -> JSON:
    return {
        "biosInformation": {"vendor": MANUFACTURER, "version": BIOS_VERSION, "date": "03/14/2025"},
        "systemInformation": {
            "manufacturer": MANUFACTURER, "productName": built.model, "version": "1", "serialNumber": identity.serial,
            "uuid": identity.uuid, "skuNumber": built.sku, "family": "",
        },
        "boardInformation": {
            "manufacturer": MANUFACTURER, "product": f"{built.model} board", "version": "A0",
            "serialNumber": f"{identity.serial}-B", "assetTag": "",
        },
    }  # fmt: skip


def _cpu(number: int, built: Hardware) -> JSON:
    threads = 2 * built.cores
    return {
        "id": number, "totalCores": built.cores, "totalHardwareThreads": threads, "vendor": "GenuineSim",
        "model": built.cpu_model, "capabilities": ["fpu", "sse2", "avx2", "aes"],
    }  # fmt: skip


def _interfaces(identity: Identity) -> list[JSON]:
    first, *others = identity.host_macs
    up = {"name": _name(0), "ipAddresses": [identity.host_ip], "macAddress": first, "carrierStatus": "up"}
    down = [
        {"name": _name(number), "ipAddresses": [], "macAddress": mac, "carrierStatus": "down"}
        for number, mac in enumerate(others, 1)
    ]
    return [up, *down]


def _neighbor(identity: Identity) -> JSON:
    switch, port = divmod(identity.number, 48)
    return {
        "chassisId": f"02:5c:00:00:{switch >> 8 & 0xFF:02x}:{switch & 0xFF:02x}", "portId": f"Ethernet{port + 1}",
        "portDescription": f"to {identity.name}", "systemName": f"leaf-{switch + 1}",
        "systemDescription": "simulated switch", "mgmtIp": "", "capabilities": ["Bridge"], "vlanId": "",
    }  # fmt: skip


def _drive(number: int, built: Hardware) -> JSON:
    disk = built.disks[number]
    return {
        "path": f"/dev/nvme{number}n1", "name": f"nvme{number}n1", "rotational": False, "removable": False,
        "readOnly": False, "vendor": MANUFACTURER, "model": disk.model, "serial": disk.serial,
        "wwid": f"eui.{number:016x}", "physicalBlockSize": 512, "logicalBlockSize": 512, "hWSectorSize": 512,
        "sizeBytes": disk.size, "numaNodeID": 0,
    }  # fmt: skip


def _module(number: int, identity: Identity, built: Hardware) -> JSON:
    return {
        "size": built.dimm_gib * GIB, "deviceSet": "", "deviceLocator": f"DIMM_A{number + 1}",
        "bankLocator": f"BANK {number}", "memoryType": "DDR4", "speed": "3200 MT/s", "vendor": MANUFACTURER,
        "serialNumber": f"{identity.serial}-M{number}", "assetTag": "", "partNumber": f"SIM-{built.dimm_gib}G",
        "configuredMemorySpeed": "2933 MT/s", "minimumVoltage": "1.2 V", "maximumVoltage": "1.2 V",
        "configuredVoltage": "1.2 V",
    }  # fmt: skip


def _nic(number: int, mac: str) -> JSON:
    return {
        "name": _name(number), "mac": mac, "pciAddress": f"0000:{number + 1:02x}:00.0", "speed": "25000Mb/s",
        "linkModes": ["25000baseSR/Full"], "supportedPorts": ["FIBRE"], "firmwareVersion": "22.31",
    }  # fmt: skip


def _pci(number: int) -> JSON:
    return {
        "address": f"0000:{number + 1:02x}:00.0", "vendor": MANUFACTURER, "vendorID": "1af4", "product": "SimNIC 25G",
        "productID": "1041", "numaNodeID": 0,
    }  # fmt: skip


def _name(number: int) -> str:
    return f"enp{number + 1}s0"
