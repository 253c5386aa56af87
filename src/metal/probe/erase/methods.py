"""Erase methods: their names, classes and deadlines, and how they are applied and awaited."""

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
"""Seconds; a method with a longer estimate is not faster than overwriting."""
POLL = 5.0
"""Seconds between two polls of a drive's progress."""
GRACE = 10 * 60.0
"""Seconds added to every deadline."""
SLOW, USUAL = 2e6, 25e6
"""Minimum write rates in bytes per second: memory cards and USB, and all others."""


class MethodFailed(Exception):
    """A method could not be applied, failed, or took too long."""


class Blocked(Exception):
    """A drive cannot be erased; `result` is its result."""

    def __init__(self, result: str, sentence: str) -> None:
        super().__init__(sentence)
        self.result = result


@dataclass(frozen=True)
class Kit:
    """Access to devices, tools and clocks. Tests replace each."""

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


ReportProgress = Callable[[float, Optional[float]], None]
"""Takes percent done and seconds left, where known."""


class RunningMethod:
    """Progress and deadline of one running method."""

    def __init__(self, kit: Kit, deadline: float, report: ReportProgress) -> None:
        self._kit, self._report, self._deadline = kit, report, deadline
        self._started = kit.now()

    def at(self, percent: float) -> None:
        """Report progress.

        Raises:
            MethodFailed: the deadline has passed.
        """
        passed = self._kit.now() - self._started
        self._report(percent, passed * (100 - percent) / percent if percent >= 1 else None)
        if passed > self._deadline:
            raise MethodFailed(f"did not end in {self._deadline:.0f} s")

    def until_done(self, percent: Callable[[], float | None]) -> None:
        """Poll until the result is None.

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
    apply: Callable[[RunningMethod], None] = field(repr=False)
    """Erases; raises MethodFailed, ToolFailed or OSError."""
    deadline: float
    """Seconds."""
    estimate: float | None = None
    """The drive's estimate in seconds."""
    quick: bool = False
    """Whether it takes only minutes, independent of the drive's size."""
    whole: bool = False
    """Whether it also reaches areas that no block device exposes."""
    unreadable: bool = False
    """Whether the drive declares that erased blocks cannot be read until they are written again."""


@dataclass
class Offer:
    """Methods that a drive supports, and what prevents better ones."""

    methods: list[Method] = field(default_factory=list)
    """Best first."""
    notes: list[str] = field(default_factory=list)
    """Sentences about better methods that it does not offer."""
    locked: str = ""
    """Why the drive can neither be read nor written, if so."""
    frozen: str = ""
    """The commands that its firmware has frozen, if so."""
    hidden: str = ""
    """A hidden area that only a method with `whole` reaches; without one, Purge is not possible."""
    kept: str = ""
    """A hidden area that the next user could reach; without such a method, Clear is not possible either."""


def by_size(drives: Sequence[Drive]) -> float:
    """A deadline in seconds for writing drives from end to end, one after the other."""
    return GRACE + sum(drive.size / (SLOW if drive.transport in (OTHER, MMC) else USUAL) for drive in drives)


def by_estimate(estimate: float | None, otherwise: float) -> float:
    """A deadline in seconds: three times the drive's estimate, where it gives one."""
    return GRACE + (otherwise if estimate is None else 3 * estimate)
