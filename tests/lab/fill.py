"""What a tenant leaves behind: every drive full of one marker, signed as a tenant's drives are. Runs on the machine.

The demo OS starts it as /opt/tenant.py; it reads /etc/fill.json: the marker, where to phone home, and for serial
numbers the signature that goes onto the drive.
"""

import json
import os
import struct
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

MIB = 1024**2
SECTOR = 512
MARKER = 24
"""Bytes of a marker; with eight for the sector's number it is a sixteenth of a sector."""
PER_SECTOR = SECTOR // (MARKER + 8)
PER_MIB = MIB // SECTOR


def fill(path: str, marker: bytes) -> None:
    """Write the marker into each sector of a drive, sixteen times; no two sectors are the same."""
    content = bytearray((marker + bytes(8)) * PER_SECTOR * PER_MIB)
    for number in range(PER_MIB):
        struct.pack_into(">Q", content, number * SECTOR + MARKER, number)
    with open(path, "r+b", buffering=0) as drive:
        size = drive.seek(0, os.SEEK_END)
        drive.seek(0)
        for number in range(size // MIB):
            for place, byte in enumerate(number.to_bytes(4, "big"), MARKER):
                content[place::SECTOR] = bytes([byte]) * PER_MIB
            drive.write(content)
        os.fsync(drive.fileno())


def partition_table(path: str) -> None:
    """A GPT with one partition, at both ends of the drive."""
    _tool("sgdisk", "--new=1:2048:0", path)


def file_system(path: str) -> None:
    """An ext4 that fills the drive. It overwrites no more of the marker than necessary."""
    _tool("mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-E", "nodiscard,lazy_itable_init=1", path)


def physical_volume(path: str) -> None:
    """The label of an LVM2 physical volume, in the second sector (lib/format_text/layout.h of lvm2)."""
    body = struct.pack("<I8s32s", 32, b"LVM2 001", b"MetalLabPhysicalVolumeOfATenant0").ljust(SECTOR - 20, b"\0")
    label = b"LABELONE" + struct.pack("<QI", 1, _lvm_crc(body)) + body
    _write(path, SECTOR, label)


def _lvm_crc(data: bytes) -> int:
    """CRC-32 as in LVM2: the polynomial of Ethernet, another initial value, and no inversion."""
    crc = 0xF597A6CF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
    return crc


def raid_member(path: str) -> None:
    """The superblock of an MD RAID 1, version 1.2, at 4 KiB (md_p.h of Linux)."""
    block = bytearray(SECTOR)
    struct.pack_into("<IIII16s32sQii", block, 0, 0xA92B4EFC, 1, 0, 0, b"tenant's own md0", b"tenant:0", 0, 1, 0)
    struct.pack_into("<QQQ", block, 128, 2048, 100_000, 8)
    struct.pack_into("<I", block, 220, 2)
    _write(path, 4096, bytes(block))


SIGNATURES: dict[str, Callable[[str], None]] = {
    "gpt": partition_table,
    "ext4": file_system,
    "LVM2_member": physical_volume,
    "linux_raid_member": raid_member,
}
"""By the name that blkid gives them."""


def drives() -> dict[str, str]:
    """The paths of the machine's drives by serial number."""
    told = json.loads(_tool("lsblk", "--json", "--nodeps", "--output", "PATH,SERIAL,TYPE"))["blockdevices"]
    return {each["serial"]: each["path"] for each in told if each["type"] == "disk" and each["serial"]}


def _write(path: str, offset: int, data: bytes) -> None:
    with open(path, "r+b") as drive:
        drive.seek(offset)
        drive.write(data)
        drive.flush()
        os.fsync(drive.fileno())


def _tool(*command: str) -> bytes:
    return subprocess.run(command, check=True, capture_output=True).stdout


def run(task: dict[str, Any]) -> dict[str, str]:
    """Fill and sign every drive; returns their paths by serial number."""
    found = drives()
    for serial, path in found.items():
        fill(path, task["marker"].encode())
        if signature := task["signatures"].get(serial):
            SIGNATURES[signature](path)
    os.sync()
    return found


if __name__ == "__main__":
    given = json.loads(Path("/etc/fill.json").read_text())
    told = json.dumps({"marker": given["marker"], "filled": run(given)})
    urllib.request.urlopen(given["home"], told.encode(), timeout=30)  # noqa: S310 - always http
