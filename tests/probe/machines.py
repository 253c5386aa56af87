"""Fake machines: trees of /sys and /proc as the kernel shows them, and tables as firmware provides them."""

import struct
from pathlib import Path

from metal.probe.ethtool import Ethtool
from metal.probe.host import Host

CPUINFO = """\
processor\t: {thread}
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz
physical id\t: {socket}
flags\t\t: fpu sse2 avx512f

"""


class FakeMachine(Host):
    """A host below a temporary directory, with methods that add hardware."""

    def write(self, name: str, content: str | bytes) -> None:
        """Create a kernel file."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def link(self, name: str, target: str) -> None:
        """Create a symbolic link within the same tree."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path(target).mkdir(parents=True, exist_ok=True)
        path.symlink_to(self.path(target))

    def add_cpus(self, sockets: int = 2, cores: int = 2, threads: int = 2) -> None:
        """Number threads as Linux does: first one of each core, then the siblings."""
        cpuinfo = ""
        for number in range(sockets * cores * threads):
            core = number % (sockets * cores)
            top = f"/sys/devices/system/cpu/cpu{number}/topology/"
            self.write(top + "physical_package_id", f"{core // cores}\n")
            self.write(top + "core_id", f"{core % cores}\n")
            cpuinfo += CPUINFO.format(thread=number, socket=core // cores)
        self.write("/proc/cpuinfo", cpuinfo)

    def add_nic(self, name: str, mac: str, pci: str, *, carrier: str = "1\n", speed: str = "25000\n") -> None:
        """An adapter at a PCI address."""
        device = f"/sys/devices/pci0000:00/{pci}"
        self.link(f"/sys/class/net/{name}/device", device)
        self.link(f"{device}/driver", "/sys/bus/pci/drivers/mlx5_core")
        self.write(f"/sys/class/net/{name}/address", mac + "\n")
        self.write(f"/sys/class/net/{name}/speed", speed)
        if carrier:
            self.write(f"/sys/class/net/{name}/carrier", carrier)

    def add_disk(self, name: str, **files: str | bytes) -> None:
        """A block device; `files` are paths below it, with __ for a slash."""
        self.path(f"/sys/block/{name}").mkdir(parents=True)
        for key, content in files.items():
            self.write(f"/sys/block/{name}/{key.replace('__', '/')}", content)

    def add_pci(self, address: str, vendor: str, device: str, numa: str = "-1\n") -> None:
        """A PCI function."""
        top = f"/sys/bus/pci/devices/{address}/"
        self.write(top + "vendor", f"0x{vendor}\n")
        self.write(top + "device", f"0x{device}\n")
        self.write(top + "numa_node", numa)


def smbios(kind: int, fields: dict[int, tuple[str, int]], strings: list[str], length: int = 0x5C) -> bytes:
    """One SMBIOS structure: numbers by offset as (struct format, value), then its strings."""
    formatted = bytearray(length)
    struct.pack_into("<BBH", formatted, 0, kind, length, 0x1100)
    for offset, (form, value) in fields.items():
        struct.pack_into("<" + form, formatted, offset, value)
    packed = b"".join(text.encode() + b"\0" for text in strings) or b"\0"
    return bytes(formatted) + packed + b"\0"


def module(size_word: int, *, extended: int = 0) -> bytes:
    """A DDR4 memory module (SMBIOS type 17)."""
    fields = {
        0x0C: ("H", size_word), 0x10: ("B", 1), 0x11: ("B", 2), 0x12: ("B", 0x1A), 0x15: ("H", 3200), 0x17: ("B", 3),
        0x18: ("B", 4), 0x1A: ("B", 5), 0x1C: ("I", extended), 0x20: ("H", 2933), 0x22: ("H", 1140), 0x24: ("H", 1260),
        0x26: ("H", 1200),
    }  # fmt: skip
    return smbios(17, fields, ["DIMM_A1", "BANK 0", "Samsung", "S123", "M393A4K40DB3"])


END = smbios(127, {}, [], length=4)


def server(root: Path) -> FakeMachine:
    """A two-socket server with two adapters, two disks and one memory module."""
    machine = FakeMachine(root)
    machine.add_cpus()
    machine.add_nic("enp1s0f0", "AA:BB:CC:00:00:01", "0000:01:00.0")
    machine.add_nic("enp1s0f1", "aa:bb:cc:00:00:02", "0000:01:00.1", carrier="", speed="-1\n")
    for virtual in ("lo", "docker0", "br0", "tun0"):
        machine.write(f"/sys/class/net/{virtual}/address", "00:00:00:00:00:00\n")
    machine.add_disk(
        "nvme0n1", size="4000797360\n", wwid="eui.0025\n", device__model="PM9A3   \n", device__serial="S6\n",
        queue__rotational="0\n", queue__logical_block_size="512\n", device__device__numa_node="1\n",
    )  # fmt: skip
    machine.add_disk(
        "sda", size="976773168\n", queue__rotational="1\n", device__vendor="ATA     \n",
        device__vpd_pg80=b"\x00\x80\x00\x08  Z1D4XY",
    )  # fmt: skip
    machine.add_disk("loop0", size="8\n")
    machine.add_disk("dm-0", size="8\n")
    machine.add_pci("0000:01:00.0", "15b3", "101b", "1\n")
    machine.write("/sys/firmware/dmi/tables/DMI", module(0x7FFF, extended=65536) + module(0) + END)
    machine.write("/sys/class/dmi/id/sys_vendor", "Dell Inc.\n")
    machine.write("/sys/class/dmi/id/product_uuid", "4c4c4544-0042-3510-8058-b4c04f4c4d33\n")
    machine.write("/sys/class/dmi/id/bios_version", "1.2.3\n")
    machine.write("/sys/class/dmi/id/board_serial", ".ABC.\n")
    return machine


class SilentDriver(Ethtool):
    """A driver that supports no query."""

    def _ask(self, interface: str, question: bytes) -> bytes:
        return b""
