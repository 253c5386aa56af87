"""Byte ranges (RFC 9110 section 14)."""

import re

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class Unsatisfiable(ValueError):
    """416: the range is outside of the content."""


def parse_range(header: str, size: int) -> tuple[int, int] | None:
    """(offset, length) of a single range; None where the header is to be ignored (answer 200).

    Raises Unsatisfiable.
    """
    match = _RANGE.fullmatch(header.strip().lower())
    if match is None or not (match[1] or match[2]):
        return None
    if not match[1]:
        length = min(int(match[2]), size)
        if length == 0:
            raise Unsatisfiable
        return size - length, length
    first = int(match[1])
    last = min(int(match[2]) if match[2] else size - 1, size - 1)
    if match[2] and int(match[2]) < first:
        return None
    if first >= size:
        raise Unsatisfiable
    return first, last - first + 1
