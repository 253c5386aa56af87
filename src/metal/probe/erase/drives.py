"""The drives of a machine: block devices with data and hardware behind them, each once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from metal.probe.collectors import Fields, storage
from metal.probe.host import Host

NVME, SATA, SAS, SCSI, VIRTIO, MMC, OTHER = "NVMe", "SATA", "SAS", "SCSI", "virtio", "MMC", ""
"""How a drive is attached. A USB bridge is OTHER, because commands through it are not reliable."""
WORLD_WIDE = ("naa.", "eui.", "uuid.")
"""Prefixes of world-wide names that are unique to one drive."""


@dataclass
class Drive:
    """A drive that Linux shows on this machine."""

    name: str
    """The kernel's: nvme0n1, sda."""
    path: str
    """/dev/NAME."""
    serial: str
    wwn: str
    model: str
    transport: str
    size: int
    """Bytes."""
    rotational: bool
    slot: str
    """The enclosure's name of its slot."""
    controller: str = ""
    """NVMe only: the controller whose commands reach it, nvme0."""
    shares: str = ""
    """Drives with the same text here are erased by one command: namespaces of one NVMe subsystem."""
    paths: list[str] = field(default_factory=list)
    """Further paths that lead to the same drive."""
    may_be_volume: bool = False
    """Drives visible only to the BMC may be behind it; only overwriting is known to reach them."""


def find(host: Host, only: Sequence[str] = ()) -> list[Drive]:
    """Every drive that holds data, or those named.

    Raises:
        ValueError: a name is of no block device, or of an empty one.
    """
    for name in only:
        if not host.number(f"/sys/block/{name}/size"):
            raise ValueError(f"--only {name}: there is no such block device with data; see /sys/block")
    names = only or [name for name in storage.names(host) if not host.number(f"/sys/block/{name}/hidden")]
    found = [_drive(host, storage.disk(host, name)) for name in names]
    return _once(drive for drive in found if drive.size)


def units(drives: Iterable[Drive]) -> list[list[Drive]]:
    """Drives that one command erases together."""
    together: dict[str, list[Drive]] = {}
    for drive in drives:
        together.setdefault(drive.shares or drive.name, []).append(drive)
    return list(together.values())


def _drive(host: Host, told: Fields) -> Drive:
    name, parts = told["name"], host.real_parts(f"/sys/block/{told['name']}")
    controller = _controller(host, name) if name.startswith("nvme") else ""
    return Drive(
        name=name,
        path=told["path"],
        serial=told["serial"],
        wwn=told["wwid"],
        model=told["model"],
        transport=_transport(name, parts, told["vendor"]),
        size=told["sizeBytes"],
        rotational=told["rotational"],
        slot=_slot(host, name),
        controller=controller,
        shares=host.text(f"/sys/class/nvme/{controller}/subsysnqn") or controller if controller else "",
    )


def _transport(name: str, parts: tuple[str, ...], vendor: str) -> str:
    def passes(pattern: str) -> bool:
        return any(re.fullmatch(pattern, part) for part in parts)

    if name.startswith("nvme"):
        return NVME
    if name.startswith("mmcblk"):
        return MMC
    if passes(r"usb\d+"):
        return OTHER
    if passes(r"ata\d+") or vendor == "ATA":
        return SATA
    if passes(r"end_device-.+"):
        return SAS
    if passes(r"host\d+"):
        return SCSI
    return VIRTIO if passes(r"virtio\d+") else OTHER


def _controller(host: Host, name: str) -> str:
    """Of a namespace with several controllers (`nvme-subsys0`), the first."""
    above = host.real_parts(f"/sys/block/{name}/device")[-1]
    if re.fullmatch(r"nvme\d+", above):
        return above
    return next((each for each in host.names(f"/sys/block/{name}/device") if re.fullmatch(r"nvme\d+", each)), "")


def _slot(host: Host, name: str) -> str:
    begin = "enclosure_device:"
    links = host.names(f"/sys/block/{name}/device")
    return next((link[len(begin) :] for link in links if link.startswith(begin)), "")


def _once(drives: Iterable[Drive]) -> list[Drive]:
    """Two devices are paths to one drive only if world-wide name, serial number and size agree."""
    kept: dict[tuple[object, ...], Drive] = {}
    for drive in drives:
        known = drive.wwn.startswith(WORLD_WIDE) and drive.serial
        key = (drive.wwn, drive.serial, drive.size) if known else (drive.name,)
        first = kept.setdefault(key, drive)
        if first is not drive:
            first.paths.append(drive.path)
    return list(kept.values())
