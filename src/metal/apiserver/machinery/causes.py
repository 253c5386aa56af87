"""Causes of a refused object, worded as Kubernetes words them (metav1.StatusCause)."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

REQUIRED = "FieldValueRequired"
INVALID = "FieldValueInvalid"
NOT_SUPPORTED = "FieldValueNotSupported"
TYPE_INVALID = "FieldValueTypeInvalid"
DUPLICATE = "FieldValueDuplicate"
TOO_LONG = "FieldValueTooLong"
TOO_MANY = "FieldValueTooMany"
FORBIDDEN = "FieldValueForbidden"

BLOCKING = frozenset({REQUIRED, NOT_SUPPORTED, TYPE_INVALID, TOO_LONG, TOO_MANY})
"""Reasons after which rules in CEL are not evaluated, because the shape of the object may be wrong."""


MOST = 100
"""Causes in one Status. Each costs time and memory, and an object of 3 MB can have a million."""
_LONGEST = 4096
"""Characters of a value that a message repeats."""

OMITTED: Any = object()
"""Stands for a value that the message does not repeat."""


class Cause(NamedTuple):
    """One field and what is wrong with it. `str()` is a line as kubectl prints it."""

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def show(value: Any) -> str:
    """A value as it appears in a message: strings quoted, everything else as compact JSON; long ones are cut."""
    if isinstance(value, str):
        text = json.dumps(value[: _LONGEST + 1], ensure_ascii=False)
    else:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


class Key(str):
    """The key of an entry of a map, which a path shows in brackets."""

    __slots__ = ()


def path_text(path: Iterable[str | int], root: str = "") -> str:
    """`spec.list[0].name` from the parts of a path; entries of maps are `map[key]`."""
    text = root
    for part in path:
        if isinstance(part, int | Key):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def required(field: str, detail: str = "") -> Cause:
    """The field is required and missing."""
    return Cause(field, REQUIRED, "Required value" + _tail(detail))


def invalid(field: str, value: Any, detail: str) -> Cause:
    """The value breaks a constraint."""
    return Cause(field, INVALID, "Invalid value" + _shown(value) + _tail(detail))


def forbidden(field: str, detail: str) -> Cause:
    """The value is not allowed, or must not change."""
    return Cause(field, FORBIDDEN, "Forbidden" + _tail(detail))


def type_invalid(field: str, value: Any, detail: str) -> Cause:
    """The value has the wrong JSON type or format."""
    return Cause(field, TYPE_INVALID, f"Invalid value: {show(value)}" + _tail(detail))


def not_supported(field: str, value: Any, allowed: Sequence[Any]) -> Cause:
    """The value is not one of an enumeration."""
    texts = ", ".join(show(option if isinstance(option, str) else show(option)) for option in allowed)
    return Cause(field, NOT_SUPPORTED, f"Unsupported value: {show(value)}: supported values: {texts}")


def duplicate(field: str, value: Any) -> Cause:
    """The value, or the key of the list item, occurs twice."""
    return Cause(field, DUPLICATE, "Duplicate value" + _shown(value))


def too_long(field: str, limit: int) -> Cause:
    """The text is longer than `limit`."""
    return Cause(field, TOO_LONG, f"Too long: may not be more than {limit} bytes")


def too_many(field: str, actual: int, limit: int) -> Cause:
    """The list has more than `limit` items."""
    return Cause(field, TOO_MANY, f"Too many: {actual}: must have at most {limit} items")


def _shown(value: Any) -> str:
    return "" if value is OMITTED else f": {show(value)}"


def _tail(detail: str) -> str:
    return f": {detail}" if detail else ""
