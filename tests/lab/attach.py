"""The definition of a machine's drives: for libvirt, and as QEMU arguments where libvirt 9 has no support."""

from collections.abc import Sequence

from tests.lab.drives import Backing, Drive

LETTERS = "abcdefgh"
PREFIXES = {"virtio": "vd", "scsi": "sd", "sata": "sd"}
"""How libvirt wants targets to be named, by bus."""


def devices(backings: Sequence[Backing]) -> str:
    """The <disk> elements of a libvirt domain."""
    known = [backing for backing in backings if backing.drive.bus in PREFIXES]
    targets = [PREFIXES[backing.drive.bus] + letter for backing, letter in zip(known, LETTERS, strict=False)]
    disks = [_disk(backing, target) for backing, target in zip(known, targets, strict=True)]
    scsi = ["<controller type='scsi' model='virtio-scsi'/>"] if any(b.drive.bus == "scsi" for b in known) else []
    return "\n".join([*scsi, *disks])


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
    """The elements for QEMU behind a domain's <devices>: NVMe drives, and the world-wide names of SATA drives."""
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
