"""Tells volatile changes of a status from all others: texts for people, and percentages.

A BMC that counts down in its error message, an erasure that proceeds by a percent, a boot that reports its step: such
changes are worth showing, but not one write each: `VolatileBudget` limits them for each object. What another controller
or an administrator decides by (states, reasons, names, deadlines, references) is never volatile.
"""

import asyncio
import math
from typing import Any

import msgspec

from metal.api.server import FailingOperation
from metal.kube.meta.objects import Key

BURST = 4
"""Writes of one object that change volatile fields only, before the first pause: as many as the steps of a boot, which
would otherwise not be seen where the machine is quick."""
VOLATILE_EVERY = 5.0
"""Seconds in which one such write becomes possible again. People do not read faster, and after the burst at most twelve
writes a minute remain of any text, however often it changes."""
_DUE = 0.1
"""Seconds before the end of the pause from which a write is due: timers are not exact, and a shorter one only spins."""
_TEXTS = frozenset({"waiting_for", "sanitization_progress"})
"""Fields of a status that only inform people."""


def is_volatile(old: msgspec.Struct, new: msgspec.Struct) -> bool:
    """Whether the two statuses, which differ, differ in volatile fields only."""
    changed = [name for name in new.__struct_fields__ if getattr(old, name) != getattr(new, name)]
    return all(_is_volatile_field(name, getattr(old, name), getattr(new, name)) for name in changed)


def _is_volatile_field(name: str, old: Any, new: Any) -> bool:
    if name == "conditions":
        return [_decided(one) for one in old] == [_decided(one) for one in new]
    if name == "failing_operations":
        return [_without_message(one) for one in old] == [_without_message(one) for one in new]
    return name in _TEXTS and bool(old) and bool(new)


def _decided(condition: Any) -> tuple[object, ...]:
    """A condition without its message."""
    return condition.type, condition.status, condition.reason, condition.last_transition_time


def _without_message(failing: FailingOperation) -> FailingOperation:
    return msgspec.structs.replace(failing, message="")


class VolatileBudget:
    """When volatile changes of an object may be written: a bucket of BURST writes, one more each VOLATILE_EVERY."""

    def __init__(self) -> None:
        self._full_at: dict[Key, float] = {}

    def __len__(self) -> int:
        return len(self._full_at)

    def seconds_left(self, key: Key) -> float:
        """Seconds until the next write is due; 0 when it is now."""
        left = self._full_at.get(key, -math.inf) - _now() - (BURST - 1) * VOLATILE_EVERY
        return left if left >= _DUE else 0.0

    def spend(self, key: Key) -> None:
        """Volatile changes were written."""
        self._full_at[key] = max(_now(), self._full_at.get(key, -math.inf)) + VOLATILE_EVERY

    def forget(self, key: Key) -> None:
        """The object was deleted."""
        self._full_at.pop(key, None)


def _now() -> float:
    return asyncio.get_running_loop().time()
