"""Times as Kubernetes' decoder reads and writes them: metav1.Time in seconds, metav1.MicroTime in microseconds."""

import json
import re
from datetime import UTC, datetime
from functools import lru_cache

MICRO = frozenset({"acquireTime", "renewTime", "eventTime", "lastObservedTime"})
"""Fields of built-in kinds that hold a MicroTime; every other time is a Time."""

_SECONDS = (
    (r"\d{4}", "2006"),
    ("-", "-"),
    (r"\d\d", "01"),
    ("-", "-"),
    (r"\d\d", "02"),
    ("T", "T"),
    (r"\d\d", "15"),
    (":", ":"),
    (r"\d\d", "04"),
    (":", ":"),
    (r"\d\d", "05"),
)
_ZONE = (r"Z|[+-]\d\d:\d\d", "Z07:00")
_TIME = (*_SECONDS, (r"([.,]\d+)?", ""), _ZONE)
_MICRO_TIME = (*_SECONDS, (r"[.,]\d{6}", ".000000"), _ZONE)
_LAYOUTS = {False: "2006-01-02T15:04:05Z07:00", True: "2006-01-02T15:04:05.000000Z07:00"}
_PLACES = (("month", 5, 1, 12), ("day", 8, 1, 31), ("hour", 11, 0, 23), ("minute", 14, 0, 59), ("second", 17, 0, 59))


@lru_cache(maxsize=1 << 12)  # most times of an object are those of its last version
def fault(text: str, *, micro: bool) -> str:
    """Why a text is not such a time, in the words of Go's time.Parse; empty when it is."""
    shown, rest = json.dumps(text), text
    for pattern, element in _MICRO_TIME if micro else _TIME:
        match = re.match(pattern, rest, re.ASCII)
        if match is None:
            return f'parsing time {shown} as "{_LAYOUTS[micro]}": cannot parse {json.dumps(rest)} as "{element}"'
        rest = rest[match.end() :]
    if rest:
        return f"parsing time {shown}: extra text: {json.dumps(rest)}"
    for name, begin, low, high in _PLACES:
        if not low <= int(text[begin : begin + 2]) <= high:
            return f"parsing time {shown}: {name} out of range"
    try:
        _read(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return f"parsing time {shown}: day out of range"
    return ""


def written(text: str, *, micro: bool) -> str:
    """A valid time as Go encodes it: in UTC, with the digits of its type."""
    moment = _read(text).astimezone(UTC)
    # Not strftime: its %Y writes the year 1 with one digit.
    return moment.isoformat(timespec="microseconds" if micro else "seconds").replace("+00:00", "Z")


def _read(text: str) -> datetime:
    return datetime.fromisoformat(text.replace(",", "."))
