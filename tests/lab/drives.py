"""A machine's drives, and their backing files as the host reads them."""

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MIB = 1024**2
CHUNK = 8 * MIB


@dataclass(frozen=True)
class Drive:
    """QEMU's settings of one drive. What the machine sees has to agree with this."""

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
        """The type that blkid finds: gpt, LVM2_member, linux_raid_member, ext4, …; empty for none."""
        asked = ["blkid", "--probe", "--output", "export", str(self.path)]
        told = dict(line.split("=", 1) for line in _output(asked).splitlines() if "=" in line)
        return told.get("TYPE") or told.get("PTTYPE", "")

    def _chunks(self) -> Iterator[bytes]:
        with self.path.open("rb") as raw:
            while chunk := raw.read(CHUNK):
                yield chunk


def _output(command: list[str]) -> str:
    """blkid exits with 2 when it finds nothing."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 2):
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def create(folder: Path, drives: Sequence[Drive]) -> list[Backing]:
    """Create the files, empty."""
    made = [Backing(drive, folder / f"{drive.serial}.raw") for drive in drives]
    for backing in made:
        with backing.path.open("wb") as raw:
            raw.truncate(backing.drive.size)
    return made
