"""A machine's drives: how QEMU attaches them, and their backing files as the host reads them."""

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MIB = 1024**2
CHUNK = 8 * MIB
LETTERS = "abcdefgh"
PREFIXES = {"virtio": "vd", "scsi": "sd", "sata": "sd"}
"""How libvirt wants targets to be named."""


@dataclass(frozen=True)
class Drive:
    """What QEMU is told about one drive. What the machine sees of it has to agree with this."""

    bus: str
    """virtio, scsi, sata or nvme."""
    serial: str
    size: int
    """Bytes."""
    wwn: str = ""
    """16 hexadecimal digits; SCSI and SATA only. Linux does not believe QEMU's NVMe drives theirs."""
    discards: bool = True
    """Otherwise QEMU confirms each discard, and keeps the data."""


@dataclass(frozen=True)
class Backing:
    """A drive and the raw file behind it."""

    drive: Drive
    path: Path

    def count(self, marker: bytes) -> int:
        """How often the bytes occur in the file; the whole file is read."""
        kept, found = b"", 0
        for chunk in self._chunks():
            data = kept + chunk
            found += data.count(marker)
            kept = data[-(len(marker) - 1) :]
        return found

    def written_bytes(self) -> int:
        """How many bytes of the file are not zero; the whole file is read."""
        return sum(len(chunk) - chunk.count(0) for chunk in self._chunks())

    def signature(self) -> str:
        """What blkid takes the content for: gpt, LVM2_member, linux_raid_member, ext4, …; empty when for nothing."""
        asked = ["blkid", "--probe", "--output", "export", str(self.path)]
        told = dict(line.split("=", 1) for line in _output(asked).splitlines() if "=" in line)
        return told.get("TYPE") or told.get("PTTYPE", "")

    def _chunks(self) -> Iterator[bytes]:
        with self.path.open("rb") as raw:
            while chunk := raw.read(CHUNK):
                yield chunk


def _output(command: list[str]) -> str:
    """blkid ends with 2 when it finds nothing."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 2):
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def create(folder: Path, drives: Sequence[Drive]) -> list[Backing]:
    """Makes the files, empty."""
    made = [Backing(drive, folder / f"{drive.serial}.raw") for drive in drives]
    for backing in made:
        with backing.path.open("wb") as raw:
            raw.truncate(backing.drive.size)
    return made


def devices(backings: Sequence[Backing]) -> str:
    """The <disk> elements of a libvirt domain, for all that libvirt knows."""
    names = {prefix: iter(LETTERS) for prefix in PREFIXES.values()}
    known = [backing for backing in backings if backing.drive.bus in PREFIXES]
    disks = [
        _disk(backing, PREFIXES[bus] + next(names[PREFIXES[bus]])) for backing in known if (bus := backing.drive.bus)
    ]
    scsi = any(backing.drive.bus == "scsi" for backing in known)
    return "\n".join(["<controller type='scsi' model='virtio-scsi'/>"] * scsi + disks)


def _disk(backing: Backing, target: str) -> str:
    drive = backing.drive
    discard = "unmap" if drive.discards else "ignore"
    wwn = f"<wwn>{drive.wwn}</wwn>" if drive.wwn and drive.bus != "sata" else ""
    return f"""\
                <disk type='file' device='disk'>
                  <driver name='qemu' type='raw' discard='{discard}'/><source file='{backing.path}'/>
                  <target dev='{target}' bus='{drive.bus}'/><serial>{drive.serial}</serial>{wwn}
                  <alias name='ua-{drive.serial}'/>
                </disk>"""


def arguments(backings: Sequence[Backing]) -> str:
    """What libvirt 9 has no words for, in QEMU's: NVMe drives, and the world-wide names of SATA drives."""
    nvme = [backing for backing in backings if backing.drive.bus == "nvme"]
    words = [word for number, backing in enumerate(nvme) for word in _nvme(number, backing)]
    inner = "".join(f"<qemu:arg value='{word}'/>" for word in words)
    names = [_sata_name(drive) for backing in backings if (drive := backing.drive).bus == "sata" and drive.wwn]
    command_line = f"<qemu:commandline>{inner}</qemu:commandline>" if words else ""
    return command_line + (f"<qemu:override>{''.join(names)}</qemu:override>" if names else "")


def _nvme(number: int, backing: Backing) -> list[str]:
    drive, name = backing.drive, f"nvme{number}"
    return [
        "-drive", f"file={backing.path},if=none,id={name}-file,format=raw,discard=unmap",
        "-device", f"nvme,drive={name}-file,serial={drive.serial},bus=pcie.0,addr={0x10 + number:#x}",
    ]  # fmt: skip


def _sata_name(drive: Drive) -> str:
    wwn = f"<qemu:property name='wwn' type='unsigned' value='{int(drive.wwn, 16)}'/>"
    return f"<qemu:device alias='ua-{drive.serial}'><qemu:frontend>{wwn}</qemu:frontend></qemu:device>"
