"""A machine with file-backed drives, with faults of drives, and a clock that advances only in sleep."""

import errno
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from metal.probe.erase import drives, session
from metal.probe.erase.board import Board
from metal.probe.erase.device import Device
from metal.probe.erase.methods import CLEAR, Kit
from metal.probe.erase.runner import Answer
from metal.probe.erase.task import Task
from metal.probe.erase.worker import Worker
from tests.probe.machines import FakeMachine

MIB = 1024 * 1024
SECRET = b"what the tenant wrote"


@dataclass
class Faults:
    """Faults of a drive."""

    dies_at: int | None = None
    """Writes from this byte on fail with EIO."""
    unreadable: bool = False
    unreadable_until_written: bool = False
    protected: bool = False
    """Opening it for writing fails."""
    swallows: bool = False
    """Says that it has written, and has not."""
    opal: bool = False
    """TCG Opal locks it."""
    keeps_discarded: bool = False
    """Takes discards, and keeps the data."""
    busy: int = 0
    """So many attempts to open it fail."""


class FaultyDevice(Device):
    """A file with a drive's faults."""

    def __init__(self, path: Path, faults: Faults) -> None:
        self.faults = faults
        if faults.protected:
            raise OSError(errno.EROFS, "Read-only file system")
        if faults.busy:
            faults.busy -= 1
            raise OSError(errno.EBUSY, "Device or resource busy")
        super().__init__(path)

    def read(self, offset: int, length: int) -> bytes:
        if self.faults.unreadable or self.faults.unreadable_until_written:
            raise OSError(errno.EIO, "Input/output error")
        return super().read(offset, length)

    def _write(self, data: Any, offset: int) -> None:
        if self.faults.dies_at is not None and offset + len(data) > self.faults.dies_at:
            raise OSError(errno.EIO, "Input/output error")
        self.faults.unreadable_until_written = False
        if not self.faults.swallows:
            super()._write(data, offset)

    def discard(self, offset: int, length: int) -> None:
        if not self.faults.keeps_discarded:
            self.zero(offset, length)

    def opal_locked(self) -> bool:
        return self.faults.opal


Tool = Callable[[Sequence[str]], bytes]
"""What a tool prints; raises Fails when it ends with an exit code other than 0."""


class Fails(Exception):
    """The error output of a tool."""


@dataclass
class Machine:
    """A machine with file-backed drives."""

    root: Path
    tools: dict[str, Tool] = field(default_factory=dict)
    faults: dict[str, Faults] = field(default_factory=dict)
    commands: list[tuple[str, ...]] = field(default_factory=list)
    time: float = 0.0

    def __post_init__(self) -> None:
        self.host = FakeMachine(self.root)
        self.kit = Kit(self.host, self._run, self._open, self._sleep, self._now, self._now, random.Random(7))

    def add(
        self, name: str, size: int = MIB, *, transport: str = "", faults: Faults | None = None, **files: str
    ) -> Path:
        """Add a drive full of a tenant's data; returns its backing file."""
        self.host.add_disk(name, size=f"{size // 512}\n", **{"queue__rotational": "0\n", **files})
        if transport:
            self.host.write(f"/sys/block/{name}/device/vendor", f"{transport}\n")
        medium = self.medium(name)
        medium.parent.mkdir(parents=True, exist_ok=True)
        with open(medium, "wb") as stream:
            for at in range(0, size, MIB):
                stream.write(tenant_data(at, min(MIB, size - at)))
        self.faults[name] = faults or Faults()
        return medium

    def medium(self, name: str) -> Path:
        """The file behind /dev/NAME."""
        return self.host.path(f"/dev/{name}")

    def erase(self, policy: str = CLEAR, task: Task | None = None) -> Board:
        """Erase everything, one unit after the other, and return the reported records."""
        task = task or Task(policy)
        board = session.board(self.kit, task, drives.find(self.host))
        by_name = {record.drive.name: record for record in board.records}
        for unit in drives.units([record.drive for record in board.records if record.result == "Pending"]):
            Worker(self.kit, board, [by_name[drive.name] for drive in unit], task.policy, random.Random(1)).run()
        return board

    def told(self, policy: str = CLEAR) -> dict[str, Any]:
        """Erase the only drive, and return its object in the report."""
        (told,) = self.erase(policy).wire(done=True)["drives"]
        assert isinstance(told, dict)
        return told

    def _open(self, path: Path) -> Device:
        return FaultyDevice(path, self.faults[path.name])

    def _run(self, command: Sequence[str], seconds: float) -> Answer:
        self.commands.append(tuple(command))
        tool = self.tools.get(command[0])
        if tool is None:
            return Answer(127, b"", "there is no such tool")
        try:
            return Answer(0, tool(command), "")
        except Fails as failure:
            return Answer(5, b"", str(failure))

    def _sleep(self, seconds: float) -> None:
        self.time += seconds

    def _now(self) -> float:
        return self.time


def tenant_data(offset: int, length: int) -> bytes:
    """Data in which no sector occurs twice."""
    return b"".join((SECRET + f" at {at}".encode()).ljust(512, b".") for at in range(offset, offset + length, 512))


def is_zero(path: Path) -> bool:
    """Whether a medium has only zeroes."""
    return not any(path.read_bytes())


def erase_file(path: Path, *, random_bytes: bool = False) -> None:
    """The effect of a drive's own erase command: zeroes, or the result of a lost key."""
    size = path.stat().st_size
    path.write_bytes(os.urandom(size) if random_bytes else bytes(size))
