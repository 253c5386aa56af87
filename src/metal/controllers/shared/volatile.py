"""Tells volatile changes of a status from all others: texts for people, and percentages.

A BMC that counts down in its error message, an erasure that proceeds by a percent, a boot that reports its step: such
changes are worth showing, but not one write each. What another controller or a person decides by (states, reasons,
names, deadlines, references) is never volatile.
"""

from typing import Any

import msgspec

VOLATILE_EVERY = 5.0
"""Shortest time between two writes of one object that change volatile fields only, in seconds. People do not read
faster, and at most twelve writes a minute remain of any text, however often it changes."""
_TEXTS = frozenset({"waiting_for", "sanitization_progress"})
"""Fields of a status that only inform people."""


def is_volatile(old: msgspec.Struct, new: msgspec.Struct) -> bool:
    """Whether the two statuses, which differ, differ in volatile fields only."""
    changed = [name for name in new.__struct_fields__ if getattr(old, name) != getattr(new, name)]
    return all(_is_volatile_field(name, getattr(old, name), getattr(new, name)) for name in changed)


def _is_volatile_field(name: str, old: Any, new: Any) -> bool:
    if name == "conditions":
        return [_decided(one) for one in old] == [_decided(one) for one in new]
    return name in _TEXTS and bool(old) and bool(new)


def _decided(condition: Any) -> tuple[object, ...]:
    """A condition without its message."""
    return condition.type, condition.status, condition.reason, condition.last_transition_time
