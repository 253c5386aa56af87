"""The decision table of adoption: what happens to a Server whose past this operator may not know.

`decide` returns the first row that matches what is known of the Server. `Row.when` lists the values that match; kinds
of facts that a row does not mention do not matter. Together the rows match every combination. docs/states.md prints the
table; `adoption` collects the facts and executes the row.
"""

from dataclasses import astuple, dataclass
from enum import Enum, StrEnum, auto
from functools import cache

from metal.api.server import State
from metal.api.tenancy import Data


class Record(StrEnum):
    """What `status.tenancy` has."""

    NONE = "no record of tenancy"
    OLD = "a record in the fields of an earlier version"
    PRESENT = "a record of tenancy"


class Annotation(StrEnum):
    """What the annotation `metal.ironcore.dev/tenancy` has."""

    NONE = "no annotation"
    NEW = "the annotation `{}` of a new Server"
    HARMLESS = "the annotation without claim and data"
    DANGEROUS = "the annotation with a claim or data"


class Status(StrEnum):
    """Whose state it is: this operator always writes `status.since`."""

    EMPTY = "no state"
    FOREIGN = "a state without `status.since`"
    OWN = "a state with `status.since`"


class Claim(StrEnum):
    """What `spec.serverClaimRef` refers to."""

    NONE = "`spec.serverClaimRef` is not set"
    NOT_BOOTED = "`spec.serverClaimRef` is set"
    MAY_HAVE_BOOTED = "its claim may have booted"


class Owner(StrEnum):
    """Which claims may own the data, by `ownership`."""

    NONE = "no claim may own the data"
    ONE = "one claim owns the data"
    UNCLEAR = "it is ambiguous which claim owns the data"


class Erasure(StrEnum):
    """Whether a SanitizationEvidence says that a deleted Server of this machine was not erased."""

    NONE = "no outstanding erasure"
    OUTSTANDING = "an outstanding erasure"


@dataclass(frozen=True)
class Facts:
    """What is known of a Server."""

    record: Record = Record.PRESENT
    annotation: Annotation = Annotation.NONE
    status: Status = Status.OWN
    claim: Claim = Claim.NONE
    owner: Owner = Owner.NONE
    erasure: Erasure = Erasure.NONE


class Action(Enum):
    """What `adoption` does for a row."""

    CONVERT = auto()
    REBUILD = auto()
    KEEP_FOR_CLAIM = auto()
    AWAIT_DECISION = auto()
    GIVE_BACK = auto()
    ERASE_FIRST = auto()
    BEGIN = auto()
    TAKE_OVER_BOOTED = auto()
    TAKE_OVER = auto()
    CONTINUE = auto()


@dataclass(frozen=True)
class Row:
    """One row: the Server, what is required, and what happens."""

    server: str
    when: tuple[StrEnum, ...]
    action: Action
    data: Data | None = None
    """`status.tenancy.data` from then on; data that is known to be there stays. None: as it is recorded."""
    state: State | None = None
    """The next state; None: unchanged."""
    reported: str = ""
    never: str = ""


_REBUILT = "Event `StatusLost`; the record is that of the annotation"
_TAKEN_OVER = "`TakenOver=False`; wait `TakeoverGoAhead` if its power is not as its state requires"
ROWS = (
    Row("of an earlier version", (Record.OLD,), Action.CONVERT, never="two records that differ"),
    Row(
        "restored without status", (Record.NONE, Annotation.DANGEROUS, Status.EMPTY), Action.REBUILD,
        state=State.RESERVED, reported=_REBUILT, never="discovered before its claim is gone and it is erased",
    ),
    Row(
        "status lost", (Record.NONE, Annotation.DANGEROUS, Annotation.HARMLESS), Action.REBUILD, reported=_REBUILT,
        never="treated as another operator's, or as one without drives",
    ),
    Row(
        "new, status lost", (Record.NONE, Annotation.NEW, Status.OWN, Status.FOREIGN), Action.REBUILD, Data.CLEAN,
        reported=_REBUILT, never="treated as another operator's",
    ),
    Row(
        "of an earlier version, unused", (Record.NONE, Status.OWN), Action.CONVERT,
        never="treated as another operator's",
    ),
    Row(
        "restored, claimed", (Status.EMPTY, Claim.NOT_BOOTED, Claim.MAY_HAVE_BOOTED), Action.KEEP_FOR_CLAIM,
        Data.UNKNOWN, State.RESERVED, "`BootAssumed=True StatusLost`", "booted over the network",
    ),
    Row(
        "recreated, owner ambiguous", (Status.EMPTY, Owner.UNCLEAR), Action.AWAIT_DECISION,
        reported="wait `FormerTenant`", never="switched, booted, erased or given away",
    ),
    Row(
        "recreated, claim exists", (Status.EMPTY, Owner.ONE), Action.GIVE_BACK, Data.UNKNOWN, State.RESERVED,
        "`BootAssumed=True StatusLost`", "erased, booted over the network, or given to another claim",
    ),
    Row(
        "recreated, claim gone", (Status.EMPTY, Erasure.OUTSTANDING), Action.ERASE_FIRST, Data.DIRTY, State.CLEANUP,
        "`Discovered=False ErasedFirst`", "discovered or Available before the erasure",
    ),
    Row("new", (Status.EMPTY,), Action.BEGIN, Data.CLEAN, State.INITIAL, "", "claimed before its discovery"),
    Row(
        "taken over, claimed", (Status.FOREIGN, Claim.MAY_HAVE_BOOTED), Action.TAKE_OVER_BOOTED, Data.UNKNOWN,
        reported=f"{_TAKEN_OVER}; `BootAssumed=True TakenOver`", never="booted over the network",
    ),
    Row(
        "taken over", (Status.FOREIGN,), Action.TAKE_OVER, Data.UNKNOWN, reported=_TAKEN_OVER,
        never="given to a claim before `adoption.unknownData` is applied",
    ),
    Row("known, or moved with its status", (Record.PRESENT, Status.OWN), Action.CONTINUE, never="adopted again"),
)  # fmt: skip
"""The table; the first row that matches decides."""


@cache
def decide(facts: Facts) -> Row:
    """The first row that matches. Each pass over a Server asks, and there are fewer than a thousand different facts."""
    return next(row for row in ROWS if matches(row, facts))


def matches(row: Row, facts: Facts) -> bool:
    """True when each kind of fact that the row mentions has one of the values that it requires."""
    kinds = {type(value) for value in row.when}
    return all(fact in row.when for fact in astuple(facts) if type(fact) in kinds)


def seen(row: Row) -> str:
    """What a row requires, in words."""
    kinds = dict.fromkeys(type(value) for value in row.when)
    return ", ".join(" or ".join(value for value in row.when if type(value) is kind) for kind in kinds)
