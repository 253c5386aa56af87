"""Corrects the times of a status when the clock was set back, so that no deadline moves to a later time.

A moment that lies in the past by its meaning (the begin of a wait, the opening of a boot window, the time of a request)
and in the future by the clock was written before the clock was set back. Its record, that moment with the deadline
that belongs to it, is shifted by the difference: the record begins now, and its deadline is as far away as it was at
its begin. This happens once: afterwards the record is not in the future. Without it, each pass would compute another
deadline from the present time.

Only moments that the controller itself writes shift a deadline. Those that another replica writes (the boot server) are
limited to the present, since its clock may be ahead.

What is less than TOLERANCE in the future stays as it is: clocks of replicas differ a little, and a moment that another
replica has just written must not be changed, because it recognizes its own write by it when the answer was lost.

`StatusScope` corrects the status that a pass begins with; its `moments` say what the status of its kind contains.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from metal.api.meta import Condition

S = TypeVar("S", bound=msgspec.Struct)
TOLERANCE = timedelta(seconds=5)
"""Difference between the clocks of replicas that is no reason for a correction; no deadline is that short."""


@dataclass(frozen=True)
class Record:
    """A record of a status: the fields of the moment at which it began, of its deadline, and of further moments."""

    begun: str
    deadline: str = ""
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Moments:
    """What is never in the future: fields of a status, its records, and the last transition of conditions.

    Only those conditions count from which a deadline follows; others may be written by other components.
    """

    fields: tuple[str, ...] = ()
    records: Mapping[str, Record] = field(default_factory=dict)
    conditions: tuple[str, ...] = ()


def corrected(status: S, now: datetime, moments: Moments) -> S:
    """The status with no such moment well after `now`; the very same object where nothing is wrong."""
    changes: dict[str, Any] = {name: now for name in moments.fields if is_late(getattr(status, name), now)}
    for name, kind in moments.records.items():
        record = getattr(status, name)
        fresh = _corrected(record, kind, now) if record is not None else None
        if fresh is not record:
            changes[name] = fresh
    if moments.conditions:
        present: tuple[Condition, ...] = getattr(status, "conditions")  # noqa: B009  each kind has its own type
        conditions = tuple(_limited_condition(one, moments.conditions, now) for one in present)
        if any(one is not other for one, other in zip(conditions, present, strict=True)):
            changes["conditions"] = conditions
    return msgspec.structs.replace(status, **changes) if changes else status


def is_late(moment: datetime | None, now: datetime) -> bool:
    """Whether the moment was written before the clock was set back."""
    return moment is not None and moment > now + TOLERANCE


def _corrected(record: S, kind: Record, now: datetime) -> S:
    begun = getattr(record, kind.begun)
    changes: dict[str, Any] = {name: now for name in kind.others if is_late(getattr(record, name), now)}
    if is_late(begun, now):
        changes[kind.begun] = now
        until = getattr(record, kind.deadline) if kind.deadline else None
        if until is not None:
            changes[kind.deadline] = until - (begun - now)
    return msgspec.structs.replace(record, **changes) if changes else record


def _limited_condition(condition: Condition, types: tuple[str, ...], now: datetime) -> Condition:
    if condition.type not in types or not is_late(condition.last_transition_time, now):
        return condition
    return msgspec.structs.replace(condition, last_transition_time=now.replace(microsecond=0))
