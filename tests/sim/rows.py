"""The rows of docs/failures.md: a fault, the step at which it comes, what is reported, and how it ends.

`tests.sim.failures` asserts every value of a row; `tests.pages` prints the rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from metal.api.docstrings import field_docs
from metal.sim.faults import Faults
from tests.sim.failing import ERASED, Act, FailingPlane, nothing

AGAIN = "Ready=False BootRetry, Event NetworkBootFailed"
"""A network boot failed, and is tried again."""
FAILED = f"{AGAIN}, Error NetworkBootFailed"
"""All network boots failed."""
OPEN, SCRIPT, STARTED = "last step: Open", "last step: ScriptServed", "last step: IgnitionServed"
"""How far a boot came that failed."""
SILENT = "the machine fetched its Ignition and does not report"


@dataclass(frozen=True)
class Fault:
    """Something that fails: how it begins, and how it is removed."""

    begin: Act
    remove: Act = nothing
    prepare: Act = nothing
    """What is so from the beginning."""
    what: str = ""
    """What fails, in one sentence of docs/failures.md."""
    remedy: str = ""
    """What `remove` does, where it is an action of an administrator."""


def of_machine(name: str) -> Fault:
    """A fault of the simulator by its name (`metalctl sim`)."""

    async def begin(world: FailingPlane) -> None:
        world.machine.faults.switch(name)

    async def remove(world: FailingPlane) -> None:
        world.machine.faults.switch(name, False)

    return Fault(begin, remove, what=field_docs(Faults)[name])


class End(Enum):
    """How a row ends: `live` asserts it, docs/failures.md prints the words."""

    COMPLETES = "completes in spite of the fault"
    RECOVERS = "recovers"
    REMOVED = "recovers on removal"
    WITHIN_AN_HOUR = "recovers within an hour of the removal"
    RETRY_SERVER = "`operation=retry` on the Server after the removal"
    RETRY_BMC = "`operation=retry` on the BMC after the removal"
    TAKEN_OVER = "another manager leads within 12 s"


@dataclass(frozen=True)
class Row:
    """One fault at one step: a row of docs/failures.md, whose test injects it and asserts every value."""

    fault: str
    """Its name on the page; a name of the simulator unless `inject` says what it is."""
    step: str
    """When it comes: one of STEPS."""
    wait: str = ""
    """Name of the wait in status.wait that stands meanwhile."""
    reports: str = ""
    """`Type=Status Reason` of a condition, `Event Reason`, `Error Reason`; `Kind: ` before it if not a Server's."""
    may_report: str = ""
    """Reasons of warning Events that chance decides about."""
    message: str = ""
    """Parts of one message of what `reports` names, with … between them."""
    minutes: float = 16
    """How long it lasts."""
    end: End = End.REMOVED
    """How it ends; a fault that lasts a moment ends with RECOVERS."""
    inject: Fault | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    machines: int = 1
    shaky: bool = False
    """Whether the manager's way to the API can fail."""
    disk: bool = False
    """Whether the API keeps its objects on a disk."""
    also: Act = nothing
    """What is asserted before it is removed; its docstring is printed."""
    sanitization: str = ""
    """`status.tenancy.sanitization` in the end, if not that of the step."""

    def __str__(self) -> str:
        return f"{self.fault}-{self.step}-{self.minutes:g}min".replace(" ", "_")

    @property
    def injected(self) -> Fault:
        """The fault itself."""
        return self.inject or of_machine(self.fault)

    @property
    def ends(self) -> End:
        """How it ends: a fault that nothing removes lasted a moment."""
        momentary = self.end is End.REMOVED and self.injected.remove is nothing
        return End.RECOVERS if momentary else self.end

    @property
    def final(self) -> tuple[str, str]:
        """State and `status.sanitization` of the server when everything is at rest."""
        if self.step in ("claim", "boot", "tenant"):
            return "Reserved", ""
        if self.sanitization:
            return "Available", self.sanitization
        if self.step in ("release", "erasure"):
            return "Available", "Clear" if self.step == "erasure" or "sanitization" in self.config else "None"
        return "Available", ""

    @property
    def words(self) -> frozenset[str]:
        """What is reported, one by one."""
        return frozenset(word for word in self.reports.split(", ") if word)


def at(steps: str, faults: str, **rest: Any) -> tuple[Row, ...]:
    """The same row at several steps, divided by blanks; for several faults of the simulator, divided likewise."""
    names = (faults,) if "inject" in rest else faults.split()
    return tuple(Row(fault, step, **rest) for fault in names for step in steps.split())


def attempts(faults: str, where: str, late: str = "", **rest: Any) -> tuple[Row, ...]:
    """Faults that make network boots fail, at `step wait, ...`: removed after the first boot, and after the last.

    `late` is reported besides after the last one.
    """
    last = ", ".join(filter(None, (FAILED, late)))
    rows: list[Row] = []
    for step, wait in (one.split() for one in where.split(", ")):
        common = {"wait": wait, "config": ERASED if step == "release" else {}, **rest}
        rows += at(step, faults, reports=AGAIN, minutes=15 if step == "release" else 13, **common)
        rows += at(step, faults, reports=last, minutes=45, end=End.RETRY_SERVER, **common)
    return tuple(rows)
