"""The drives of a machine, and their users."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from metal.probe.erase import drives, holders
from metal.probe.erase.runner import Answer
from tests.probe.machines import FakeMachine


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)


def test_every_drive_with_data_is_found(machine: FakeMachine) -> None:
    """Removable ones too; empty card readers, optical drives and stacked devices are excluded."""
    for name in ("sda", "sdb", "mmcblk0", "nvme0n1", "sr0", "loop0", "ram0", "zram0", "dm-0", "md0"):
        machine.add_disk(name, size="2048\n", removable="1\n")
    machine.add_disk("sdc", size="0\n")
    machine.add_disk("nvme0c0n1", size="2048\n", hidden="1\n")

    assert [drive.name for drive in drives.find(machine)] == ["mmcblk0", "nvme0n1", "sda", "sdb"]


def test_two_paths_to_one_drive_are_one_drive(machine: FakeMachine) -> None:
    """The world-wide name, the serial number and the size agree."""
    for name in ("sda", "sdb"):
        machine.add_disk(name, size="2048\n", wwid="naa.5000c500a1b2c3d4", device__serial="S1")

    (drive,) = drives.find(machine)

    assert (drive.path, drive.paths) == ("/dev/sda", ["/dev/sdb"])


@pytest.mark.parametrize(
    "second",
    [
        {"wwid": "naa.5000c500a1b2c3d4", "device__serial": "S2", "size": "2048\n"},
        {"wwid": "naa.5000c500a1b2c3d4", "device__serial": "S1", "size": "4096\n"},
        {"wwid": "naa.5000c500a1b2c3d5", "device__serial": "S1", "size": "2048\n"},
    ],
)
def test_drives_that_only_look_alike_are_two(machine: FakeMachine, second: dict[str, str]) -> None:
    """A drive that is mistaken for another's path would keep its data."""
    machine.add_disk("sda", size="2048\n", wwid="naa.5000c500a1b2c3d4", device__serial="S1")
    machine.add_disk("sdb", **second)

    assert len(drives.find(machine)) == 2


def test_names_that_vendors_repeat_prove_nothing(machine: FakeMachine) -> None:
    """Two memory sticks of the same model."""
    for name in ("sda", "sdb"):
        machine.add_disk(name, size="2048\n", wwid="t10.USB stick", device__serial="0123456789")

    assert len(drives.find(machine)) == 2


@pytest.mark.parametrize(
    ("name", "device", "vendor", "transport"),
    [
        ("nvme0n1", "pci0000:00/nvme/nvme0/nvme0n1", "", "NVMe"),
        ("sda", "pci0000:00/ata1/host0/target0:0:0/0:0:0:0/block/sda", "ATA", "SATA"),
        ("sda", "pci0000:00/host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0/block/sda", "ATA", "SATA"),
        ("sda", "pci0000:00/host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0/block/sda", "SEAGATE", "SAS"),
        ("sda", "pci0000:00/host0/target0:2:0/0:2:0:0/block/sda", "DELL", "SCSI"),
        ("sda", "pci0000:00/usb1/1-1/1-1:1.0/host6/target6:0:0/6:0:0:0/block/sda", "ATA", ""),
        ("vda", "pci0000:00/virtio1/block/vda", "", "virtio"),
        ("mmcblk0", "pci0000:00/mmc_host/mmc0/mmc0:0001/block/mmcblk0", "", "MMC"),
    ],
)
def test_the_transport_is_read_off_the_way_to_the_drive(
    machine: FakeMachine, name: str, device: str, vendor: str, transport: str
) -> None:
    """A SATA drive behind a SAS adapter uses ATA commands; one behind USB is only overwritten."""
    machine.link(f"/sys/block/{name}", f"/sys/devices/{device}")
    machine.write(f"/sys/devices/{device}/size", "2048\n")
    machine.write(f"/sys/devices/{device}/device/vendor", f"{vendor}     \n")

    assert [drive.transport for drive in drives.find(machine)] == [transport]


def test_namespaces_of_one_subsystem_are_one_unit(machine: FakeMachine) -> None:
    """Through any of its controllers; other drives are units of their own."""
    for name, controller in (("nvme0n1", "nvme0"), ("nvme0n2", "nvme0"), ("nvme1n1", "nvme1")):
        machine.add_disk(name, size="2048\n", wwid=f"eui.{name}")
        machine.link(f"/sys/block/{name}/device", f"/sys/devices/{controller}")
        machine.write(f"/sys/class/nvme/{controller}/subsysnqn", f"nqn.{controller}\n")
    machine.link("/sys/block/nvme2n1/device", "/sys/devices/nvme-subsys2")
    machine.write("/sys/block/nvme2n1/size", "2048\n")
    machine.write("/sys/devices/nvme-subsys2/nvme5/state", "live\n")
    machine.add_disk("sda", size="2048\n")

    found = drives.find(machine)

    assert [[drive.name for drive in unit] for unit in drives.units(found)] == [
        ["nvme0n1", "nvme0n2"], ["nvme1n1"], ["nvme2n1"], ["sda"],
    ]  # fmt: skip
    assert [drive.controller for drive in found] == ["nvme0", "nvme0", "nvme1", "nvme5", ""]


def test_the_enclosure_names_the_slot(machine: FakeMachine) -> None:
    """As reported by its SES processor."""
    machine.add_disk("sda", size="2048\n")
    machine.write("/sys/block/sda/device/enclosure_device:Slot 07/slot", "7\n")

    assert drives.find(machine)[0].slot == "Slot 07"


def test_only_what_was_named_is_found(machine: FakeMachine) -> None:
    """Also a device without hardware; an unknown name is an error."""
    machine.add_disk("sda", size="2048\n")
    machine.add_disk("loop0", size="2048\n")

    assert [drive.name for drive in drives.find(machine, ["loop0"])] == ["loop0"]
    with pytest.raises(ValueError, match="--only sdz"):
        drives.find(machine, ["sdz"])


class Tools:
    """Records the commands; the listed ones fail."""

    def __init__(self, *failing: str) -> None:
        self.commands: list[tuple[str, ...]] = []
        self._failing = failing

    def __call__(self, command: Sequence[str], seconds: float) -> Answer:
        self.commands.append(tuple(command))
        return Answer(1, b"", "target is busy") if command[0] in self._failing else Answer(0, b"", "")


@pytest.fixture
def held(machine: FakeMachine) -> FakeMachine:
    """A partition with an array, with a volume, that is mounted; swap and a btrfs beside it; and another drive."""
    for number, name in enumerate(("sda", "sdb", "dm-0", "md0")):
        machine.add_disk(name, size="2048\n", dev=f"8:{number}\n")
    for number in (1, 2, 3):
        machine.write(f"/sys/block/sda/sda{number}/partition", f"{number}\n")
        machine.write(f"/sys/block/sda/sda{number}/dev", f"9:{number}\n")
    machine.write("/sys/block/sda/sda1/holders/md0/dev", "")
    machine.write("/sys/block/md0/md/array_state", "clean")
    machine.write("/sys/block/md0/holders/dm-0/dev", "")
    machine.write("/sys/block/dm-0/dm/name", "vg-root\n")
    machine.write("/sys/block/dm-0/dev", "253:0\n")
    machine.write("/proc/swaps", "Filename Type Size\n/dev/sda2 partition 1\n/dev/sdb1 partition 1\n")
    machine.write(
        "/proc/self/mountinfo",
        "20 1 253:0 / /mnt\\040old rw - ext4 /dev/mapper/vg-root rw\n"
        "21 20 253:0 / /mnt\\040old/var rw - ext4 /dev/mapper/vg-root rw\n"
        "22 1 0:44 / /data rw shared:1 - btrfs /dev/sda3 rw\n"
        "23 1 8:1 / /other rw - ext4 /dev/sdb1 rw\n",
    )
    return machine


def find(machine: FakeMachine, name: str) -> drives.Drive:
    return drives.find(machine, [name])[0]


def test_whatever_holds_a_drive_is_taken_away_from_the_top(held: FakeMachine) -> None:
    """Mounts before the volume, the volume before the array; another drive is not changed."""
    tools = Tools()

    assert holders.release(held, tools, find(held, "sda")) == []
    assert tools.commands == [
        ("umount", "--", "/mnt old/var"),
        ("umount", "--", "/mnt old"),
        ("dmsetup", "remove", "--force", "--retry", "vg-root"),
        ("swapoff", "/dev/sda2"),
        ("umount", "--", "/data"),
    ]
    assert held.text("/sys/block/md0/md/array_state").startswith("clear")


def test_what_does_not_let_go_is_told(held: FakeMachine) -> None:
    """The others are removed anyway."""
    tools = Tools("umount")

    problems = holders.release(held, tools, find(held, "sda"))

    assert problems == ["umount ended with exit code 1: target is busy"] * 2
    assert ("swapoff", "/dev/sda2") in tools.commands
