"""One run of the eraser: every unit in a thread, the registry told of it from the one that waits."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from metal.probe.agent import Agent
from metal.probe.erase import drives as machine
from metal.probe.erase.board import PENDING, Board, records
from metal.probe.erase.methods import Kit
from metal.probe.erase.task import Task
from metal.probe.erase.worker import Worker
from metal.probe.registry import NotNow

PROGRESS_SECONDS = 10.0
"""Between two reports of progress, unless a drive has its result."""

log = logging.getLogger("metalprobe")


def board(kit: Kit, task: Task, found: list[machine.Drive]) -> Board:
    """The records of the drives that were found and of those that should have been."""
    task.place(found)
    made = Board(records(found, task.missing(found)), kit.wall)
    if not found:
        made.problems.append("no drive was found in this machine")
    return made


def start(kit: Kit, task: Task, board: Board) -> None:
    """Starts the erasure of every drive; the threads end with the process."""
    pending = {record.drive.name: record for record in board.records if record.result == PENDING}
    for unit in machine.units(record.drive for record in pending.values()):
        mine = [pending[drive.name] for drive in unit]
        worker = Worker(kit, board, mine, task.policy, random.Random(kit.random.getrandbits(64)))
        threading.Thread(target=worker.run, name=unit[0].name, daemon=True).start()


@dataclass
class Reporter:
    """Tells the registry how far the erasure is."""

    board: Board
    send: Callable[[dict[str, Any]], None]
    """Hands over a report; raises as Registry.sanitized does."""
    kit: Kit
    seen: int = -1
    """The version of the board that was told last."""
    _next: float = 0.0

    def progress(self) -> None:
        """Sends what is due. A registry that is not there costs nothing but this report.

        Raises:
            Refused, Malformed: the registry takes no report of this run.
        """
        now, version = self.kit.now(), self.board.version
        if version == self.seen and now < self._next:
            return
        wait = PROGRESS_SECONDS
        try:
            self.send(self.board.wire(done=False))
        except NotNow as failure:
            log.warning("no progress reported: %s", failure)
            wait = max(wait, failure.retry_after)
        self._next, self.seen = self.kit.now() + wait, version

    def final(self) -> int:
        """Sends the end until it is taken; returns an exit code as Agent does."""
        report = self.board.wire(done=True)
        return Agent(lambda: report, self.send, self.kit.sleep, self.kit.now, random=self.kit.random).run()
