"""One run of `metalprobe sanitize`: a thread for each unit of drives, and reports to the registry from the main thread.

Nothing is erased before the registry has allowed it. The first report is a question: it lists the drives that this
system sees. The registry confirms that the token is that of a sanitization boot of this machine in progress, so a
machine that booted an outdated or foreign task keeps its drives; and the control plane looks the drives up, because one
that no BMC lists may have data of another server's claim. A registry that never answers is asked for
`CONFIRM_SECONDS`; then the run ends without erasing. Once it has answered that the drives are being looked up, it is
asked until it allows or refuses the erasure, also after an outage. A registry of a former version allows it at once.

Drives that one command erases together form a unit. The worker threads record progress on the `Board`; the main thread
sends a report when a drive has its result, and at intervals. A registry that cannot be reached then costs only that
report. The final report is repeated until the registry accepts or refuses it.
"""

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
from metal.probe.registry import NotAccepted, NotAllowed

PROGRESS_SECONDS = 10.0
"""Between two reports of progress, unless a drive has its result."""

CONFIRM_SECONDS = 1800.0
"""How long the question is repeated to a registry that has never answered it: longer than restarts and updates of a
control plane take. Afterwards the control plane boots the machine again when its own deadline has passed."""

log = logging.getLogger("metalprobe")


def board(kit: Kit, task: Task, found: list[machine.Drive]) -> Board:
    """The records of all drives found, and of drives of the inventory that were not."""
    task.place(found)
    made = Board(records(found, task.missing(found)), kit.wall)
    if not found:
        made.problems.append("no drive was found in this machine")
    return made


def start(kit: Kit, task: Task, board: Board) -> None:
    """Start the erasure of every drive; the threads end with the process."""
    pending = {record.drive.name: record for record in board.records if record.result == PENDING}
    for unit in machine.units(record.drive for record in pending.values()):
        mine = [pending[drive.name] for drive in unit]
        worker = Worker(kit, board, mine, task.policy, random.Random(kit.random.getrandbits(64)))
        threading.Thread(target=worker.run, name=unit[0].name, daemon=True).start()


@dataclass
class Reporter:
    """Reports the progress of the erasure to the registry."""

    board: Board
    send: Callable[[dict[str, Any]], None]
    """Sends a report; raises as Registry.sanitized does."""
    kit: Kit
    seen: int = -1
    """The version of the board that was reported last."""
    _next: float = 0.0

    def confirm(self) -> int:
        """Ask until the registry allows the erasure of the drives; returns an exit code as Agent does."""
        question, seen = {**self.board.wire(done=False), "awaitsPermission": True}, self.board.version

        def ask(question: dict[str, Any]) -> None:
            try:
                self.send(question)
            except NotAllowed:
                agent.deadline = 0.0  # the control plane knows this run: it decides, or switches the machine off
                raise

        agent = Agent(
            lambda: question, ask, self.kit.sleep, self.kit.now, deadline=CONFIRM_SECONDS, random=self.kit.random
        )
        code = agent.run()
        self._next, self.seen = self.kit.now() + PROGRESS_SECONDS, seen
        return code

    def progress(self) -> None:
        """Send progress if due. An unreachable registry costs only this report.

        Raises:
            Refused, Malformed: the registry accepts no report of this run.
        """
        now, version = self.kit.now(), self.board.version
        if version == self.seen and now < self._next:
            return
        wait = PROGRESS_SECONDS
        try:
            self.send(self.board.wire(done=False))
        except NotAccepted as failure:
            log.warning("no progress reported: %s", failure)
            wait = max(wait, failure.retry_after)
        self._next, self.seen = self.kit.now() + wait, version

    def final(self) -> int:
        """Send the final report until it is accepted; returns an exit code as Agent does."""
        report = self.board.wire(done=True)
        return Agent(lambda: report, self.send, self.kit.sleep, self.kit.now, random=self.kit.random).run()
