"""Conditions in status: replace one, keep the moment of its last change of status."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Protocol, TypeVar, cast

import msgspec


class Condition(Protocol):
    """metav1.Condition, as far as it is read here. Implementations are msgspec Structs."""

    @property
    def type(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def last_transition_time(self) -> datetime | None: ...


C = TypeVar("C", bound=Condition)


def find(conditions: Iterable[C], type: str) -> C | None:
    """The condition of this type, or None."""
    return next((condition for condition in conditions if condition.type == type), None)


def is_true(conditions: Iterable[Condition], type: str) -> bool:
    """Whether the condition is there and its status is True."""
    condition = find(conditions, type)
    return condition is not None and condition.status == "True"


def set_condition(conditions: tuple[C, ...], new: C, now: datetime) -> tuple[C, ...]:
    """The conditions with `new` in the place of its type, or at the end.

    lastTransitionTime is kept while the status stays the same, otherwise it becomes `now`, in whole seconds. When
    nothing changes the very same tuple comes back.
    """
    old = find(conditions, new.type)
    if old is not None and old.status == new.status and old.last_transition_time is not None:
        since = old.last_transition_time
    else:
        since = now.replace(microsecond=0)
    fresh = cast("C", msgspec.structs.replace(cast("Any", new), last_transition_time=since))
    if old is None:
        return (*conditions, fresh)
    if old == fresh:
        return conditions
    return tuple(fresh if condition is old else condition for condition in conditions)
