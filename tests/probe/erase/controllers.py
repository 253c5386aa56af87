"""Drives as their tools show them: an NVMe controller, a SATA and a SCSI drive, each behind a fake tool."""

import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.probe.erase.machine import MIB, Fails, Machine, erase_file


@dataclass
class Nvme:
    """The controller nvme0 and its namespaces, behind `nvme`."""

    machine: Machine
    sanitizes: int = 0
    formats: bool = False
    crypto_format: bool = False
    lies: bool = False
    """Says that all went well, and keeps everything."""
    fails: bool = False
    """Sanitize operations end in failure."""
    never_ends: bool = False
    refuses: tuple[str, ...] = ()
    """Questions to which there is no answer."""
    allocated: tuple[int, ...] = ()
    namespaces: list[str] = field(default_factory=list)
    _polls: int = 0
    _status: int = 0
    sanitized: int = 0
    """Operations begun."""

    def __post_init__(self) -> None:
        self.machine.tools["nvme"] = self

    def add(self, name: str, size: int = MIB) -> None:
        """A namespace."""
        self.machine.add(name, size, wwid=f"eui.{name}", nsid=f"{len(self.namespaces) + 1}\n")
        device = self.machine.host.path(f"/sys/block/{name}/device")
        self.machine.host.write("/sys/devices/nvme0/serial", "N1\n")
        device.symlink_to(self.machine.host.path("/sys/devices/nvme0"))
        self.namespaces.append(name)

    def __call__(self, command: Sequence[str]) -> bytes:
        options = dict(word.split("=") for word in command if "=" in word)
        if command[1] in self.refuses:
            raise Fails("Invalid Field in Command")
        answers: dict[str, Callable[[], bytes]] = {
            "id-ctrl": self._identify,
            "sanitize-log": self._log,
            "sanitize": lambda: self._sanitize(int(options["--sanact"])),
            "format": lambda: self._format(int(options["--namespace-id"])),
            "admin-passthru": lambda: struct.pack(f"<{len(self.allocated)}I", *self.allocated).ljust(4096, b"\0"),
        }
        return answers[command[1]]()

    def _identify(self) -> bytes:
        data = bytearray(4096)
        struct.pack_into("<H", data, 256, 2 * self.formats + 8 * bool(self.allocated))
        struct.pack_into("<I", data, 328, self.sanitizes)
        data[524] = 4 * self.crypto_format
        return bytes(data)

    def _log(self) -> bytes:
        if self._status == 2 and not self.never_ends:
            self._polls += 1
            if self._polls > 3:
                self._status = 3 if self.fails else 1
        return struct.pack("<HHIIII", 0x4000 * min(self._polls, 3), self._status, 0, 3600, 10, 2).ljust(512, b"\0")

    def _sanitize(self, action: int) -> bytes:
        if action == 1:
            self._status = 0
            return b""
        if not {4: 1, 2: 2, 3: 4}[action] & self.sanitizes:
            raise Fails("Invalid Field in Command")
        self.sanitized += 1
        self._polls, self._status = 0, 2
        for name in [] if self.lies or self.fails else self.namespaces:
            erase_file(self.machine.medium(name), random_bytes=action == 4)
        return b""

    def _format(self, namespace: int) -> bytes:
        if not self.lies:
            erase_file(self.machine.medium(self.namespaces[namespace - 1]))
        return b"Success formatting namespace\n"


@dataclass
class Ata:
    """A SATA drive, behind `hdparm`."""

    machine: Machine
    name: str = "sda"
    sanitize: int = 0
    """Bits 13 to 15 of word 59."""
    security: int = 0
    """Word 128."""
    minutes: int = 2
    lies: bool = False
    erase_fails: bool = False
    sanitize_frozen: bool = False
    refuses_status: bool = False
    sectors: tuple[int, int] = (2048, 2048)
    keeps_hidden: bool = False
    kernel_is_blind: bool = False
    """The kernel does not look again when the drive shows more."""
    real_sectors: int = 0
    password: str = ""
    status: str = "SD0 Sanitize Idle"

    def __post_init__(self) -> None:
        self.machine.tools["hdparm"] = self

    def __call__(self, command: Sequence[str]) -> bytes:
        words = [word for word in command[1:-1] if word != "--yes-i-know-what-i-am-doing"]
        if words[0] == "--user-master":
            return self._secure(words[2], words[3])
        if words[0].startswith("--sanitize") and words[0] != "--sanitize-status":
            return self._erase(words[0])
        answers: dict[str, Callable[[], bytes]] = {
            "--Istdout": self._identify,
            "--sanitize-status": self._status,
            "-N": lambda: self._hidden(words[1:]),
            "--dco-identify": lambda: f"DCO Revision: 0x0002\n\tReal max sectors: {self.real_sectors}\n".encode(),
        }
        return answers[words[0]]()

    def _identify(self) -> bytes:
        words = [0] * 256
        words[59] = self.sanitize | 0x1000 * bool(self.sanitize)
        words[82] = 0x0400
        words[83] = 0x0800 * bool(self.real_sectors)
        words[89] = words[90] = self.minutes // 2
        words[128] = self.security
        lines = [" ".join(f"{word:04x}" for word in words[at : at + 8]) for at in range(0, 256, 8)]
        return ("\n/dev/sda:\n" + "\n".join(lines) + "\n").encode()

    def _status(self) -> bytes:
        if self.refuses_status:
            raise Fails("Input/output error")
        told = "SD1 Sanitize Frozen" if self.sanitize_frozen else self.status
        if "In Process" in self.status:
            self.status = "SD0 Sanitize Idle\n    Last Sanitize Operation Completed Without Error"
        return f"\n/dev/sda:\nIssuing SANITIZE_STATUS command\nSanitize status:\n    State:    {told}\n".encode()

    def _erase(self, flag: str) -> bytes:
        self.status = "SD2 Sanitize operation In Process\n    Progress: 0x8000 (50%)"
        if not self.lies:
            erase_file(self.machine.medium(self.name), random_bytes="crypto" in flag)
        return b""

    def _secure(self, flag: str, password: str) -> bytes:
        if flag == "--security-set-pass":
            self.password = password
            self.security |= 2
        elif password != self.password:
            raise Fails("SECURITY_UNLOCK: Input/output error")
        elif flag in ("--security-unlock", "--security-disable"):
            self.security &= ~(4 if flag == "--security-unlock" else 2)
        elif self.erase_fails:
            raise Fails("SECURITY_ERASE: Input/output error")
        else:
            self.security &= ~2
            if not self.lies:
                erase_file(self.machine.medium(self.name))
        return b""

    def _hidden(self, setting: Sequence[str]) -> bytes:
        shown, there = self.sectors
        if setting and not self.keeps_hidden:
            shown = int(setting[0].lstrip("p"))
            self.sectors = (shown, there)
            if not self.kernel_is_blind:
                self.machine.host.write(f"/sys/block/{self.name}/size", f"{shown}\n")
                os.truncate(self.machine.medium(self.name), shown * 512)
        state = "disabled" if shown == there else "enabled"
        return f"\n/dev/sda:\n max sectors   = {shown}/{there}, HPA is {state}\n".encode()


def add_sas(machine: Machine, rotational: str = "1") -> Path:
    """The SAS drive sda."""
    medium = machine.add("sdx", queue__rotational=rotational)
    target = machine.host.path("/sys/devices/host0/end_device-0:0/sda")
    target.parent.mkdir(parents=True)
    machine.host.path("/sys/block/sdx").rename(target)
    machine.host.path("/sys/block/sda").symlink_to(target)
    machine.faults["sda"] = machine.faults.pop("sdx")
    return medium.rename(medium.with_name("sda"))


@dataclass
class Scsi:
    """A SCSI drive, behind sg3-utils."""

    machine: Machine
    name: str = "sda"
    supports: tuple[int, ...] = ()
    unreadable_afterwards: bool = False
    lies: bool = False
    fails: bool = False
    _polls: int = 0

    def __post_init__(self) -> None:
        for tool in ("sg_opcodes", "sg_sanitize", "sg_requests"):
            self.machine.tools[tool] = self

    def __call__(self, command: Sequence[str]) -> bytes:
        if command[0] == "sg_opcodes":
            (asked,) = [word for word in command if word.startswith("--opcode=0x48,")]
            return bytes([0, 3 if int(asked.split(",")[1]) in self.supports else 1, 0, 10])
        if command[0] == "sg_requests":
            return self._sense()
        self._polls = 3
        if "--fail" not in command and not self.lies and not self.fails:
            erase_file(self.machine.medium(self.name), random_bytes="--crypto" in command)
            self.machine.faults[self.name].unreadable_until_written = self.unreadable_afterwards
        return b""

    def _sense(self) -> bytes:
        self._polls -= 1
        if self._polls > 0:
            return bytes([0x70, 0, 2, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x04, 0x1B, 0, 0x80, 0x40, 0])
        key, code, qualifier = (3, 0x31, 3) if self.fails else (0, 0, 0)
        return bytes([0x70, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, code, qualifier, 0, 0, 0, 0])
