"""Block devices with hardware behind them."""

from __future__ import annotations

import re

from metal.probe.collectors import Fields
from metal.probe.host import Host

SECTOR = 512
"""Bytes; /sys/block/*/size counts in these units for every device."""
NO_HARDWARE = re.compile(r"(loop|ram|zram|dm-|md|nbd|fd|sr)\d")


def collect(host: Host) -> list[Fields]:
    """One entry per disk; an empty list is not a failure."""
    return [disk(host, name) for name in names(host)]


def names(host: Host) -> list[str]:
    """The kernel's names of all disks."""
    return [name for name in host.names("/sys/block") if not NO_HARDWARE.match(name)]


def disk(host: Host, name: str) -> Fields:
    """The kernel's attributes of one block device."""
    top = f"/sys/block/{name}/"
    return {
        "path": f"/dev/{name.replace('!', '/')}",
        "name": name,
        "rotational": host.number(top + "queue/rotational") == 1,
        "removable": host.number(top + "removable") == 1,
        "readOnly": host.number(top + "ro") == 1,
        "vendor": host.text(top + "device/vendor"),
        "model": host.text(top + "device/model"),
        "serial": _serial(host, top),
        "wwid": host.text(top + "wwid") or host.text(top + "device/wwid"),
        "physicalBlockSize": host.number(top + "queue/physical_block_size"),
        "logicalBlockSize": host.number(top + "queue/logical_block_size"),
        "hWSectorSize": host.number(top + "queue/hw_sector_size"),
        "sizeBytes": host.number(top + "size") * SECTOR,
        "numaNodeID": _numa_node(host, top),
    }


def _serial(host: Host, top: str) -> str:
    """From a text file for NVMe and virtio, from the vital product data page 80h for SCSI and SATA (SPC-5)."""
    told = host.text(top + "device/serial") or host.text(top + "serial")
    if told:
        return told
    page = host.data(top + "device/vpd_pg80")
    length = int.from_bytes(page[2:4], "big")
    return page[4 : 4 + length].decode("ascii", "replace").strip(" \0")


def _numa_node(host: Host, top: str) -> int:
    for folder in ("device", "device/device", "device/device/device"):
        node = host.number(f"{top}{folder}/numa_node", -1)
        if node >= 0:
            return node
    return 0
