"""What an erase method is: its name, what it reaches, and how it is applied and waited for."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from metal.probe.erase.device import Device
from metal.probe.erase.drives import MMC, OTHER, Drive
from metal.probe.erase.runner import Run
from metal.probe.erase.samples import Promise
from metal.probe.host import Host

CLEAR, PURGE = "Clear", "Purge"
"""Classes of NIST SP 800-88 revision 1."""
QUICK = 15 * 60.0
"""Seconds; a drive that says that a method takes longer is no quicker than we are by overwriting."""
POLL = 5.0
"""Seconds between two questions how far a drive is."""
GRACE = 10 * 60.0
"""Seconds added to every deadline."""
SLOW, USUAL = 2e6, 25e6
"""Bytes per second that a drive reaches at the least: memory cards and USB, and all others."""


class MethodFailed(Exception):
    """A method could not be applied, failed, or took too long."""


class Blocked(Exception):
    """Nothing can be done with a drive; `result` is its result."""

    def __init__(self, result: str, sentence: str) -> None:
        super().__init__(sentence)
        self.result = result


@dataclass(frozen=True)
class Kit:
    """What an eraser works with. Tests replace each."""

    host: Host
    run: Run
    open: Callable[[Path], Device]
    """Opens a drive for itself alone; raises OSError."""
    sleep: Callable[[float], None]
    now: Callable[[], float]
    """Seconds, from any origin."""
    wall: Callable[[], float]
    """Seconds since 1970."""
    random: random.Random

    def device(self, path: str) -> Device:
        """The open device at /dev/NAME; raises OSError."""
        return self.open(self.host.path(path))


Tell = Callable[[float, Optional[float]], None]
"""Takes percent done and seconds left, where known."""


class Course:
    """One method on its way: it tells how far it is, and ends when its time is over."""

    def __init__(self, kit: Kit, deadline: float, tell: Tell) -> None:
        self._kit, self._tell, self._deadline = kit, tell, deadline
        self._started = kit.now()

    def at(self, percent: float) -> None:
        """Tells of progress.

        Raises:
            MethodFailed: the deadline has passed.
        """
        passed = self._kit.now() - self._started
        self._tell(percent, passed * (100 - percent) / percent if percent >= 1 else None)
        if passed > self._deadline:
            raise MethodFailed(f"did not end in {self._deadline:.0f} s")

    def until_done(self, percent: Callable[[], float | None]) -> None:
        """Asks until the answer is None.

        Raises:
            MethodFailed: the deadline has passed.
        """
        while (reached := percent()) is not None:
            self.at(reached)
            self._kit.sleep(POLL)


@dataclass(frozen=True)
class Method:
    """One way to erase the drives of a unit."""

    name: str
    """As the report has it."""
    reaches: str
    """CLEAR or PURGE."""
    promise: Promise
    apply: Callable[[Course], None] = field(repr=False)
    """Erases; raises MethodFailed, ToolFailed or OSError."""
    deadline: float
    """Seconds."""
    estimate: float | None = None
    """Seconds by the drive's own word."""
    quick: bool = False
    """Whether it takes minutes whatever the drive's size."""
    whole: bool = False
    """Whether it also reaches what no device shows."""
    unreadable: bool = False
    """Whether the drive says beforehand that it answers no read of what it erased so, until that is written anew."""


@dataclass
class Offer:
    """What a drive says that it can do."""

    methods: list[Method] = field(default_factory=list)
    """Best first."""
    notes: list[str] = field(default_factory=list)
    """Sentences about better methods that it does not offer."""
    locked: str = ""
    """Why nothing can be read or written, if so."""
    frozen: str = ""
    """What its firmware has frozen, if so."""
    hidden: str = ""
    """An area that only a method with `whole` reaches; without one there is no Purge."""
    kept: str = ""
    """The same where the next user would reach it: without such a method there is no Clear either."""


def by_size(drives: Sequence[Drive]) -> float:
    """A deadline in seconds for writing drives from end to end, one after the other."""
    return GRACE + sum(drive.size / (SLOW if drive.transport in (OTHER, MMC) else USUAL) for drive in drives)


def by_estimate(estimate: float | None, otherwise: float) -> float:
    """A deadline in seconds: thrice the drive's own estimate where it gives one."""
    return GRACE + (otherwise if estimate is None else 3 * estimate)
