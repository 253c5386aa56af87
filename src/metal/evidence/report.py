"""Reads the report of an erasure, which a machine sends in band: untrusted, so it is limited and reduced to text."""

from datetime import datetime
from typing import Any

import msgspec

from metal.api.sanitization import DriveErasure, Result

_DRIVES = 512
"""Drives that one report may have; the largest servers hold some hundred."""
_PROBLEMS = 64
_LONGEST = 512
"""Characters of a text that are kept."""
_LARGEST = 1 << 62
_CLASSES = ("", "Clear", "Purge")


class InvalidReport(ValueError):
    """The body is not a valid report; str() names the member and quotes no value."""


class SanitizationReport(msgspec.Struct, frozen=True, rename="camel"):
    """One report. `done` is true only in the last one, when no erasure is running any more."""

    done: bool
    drives: tuple[DriveErasure, ...]
    problems: tuple[str, ...] = ()
    awaits_permission: bool = False
    """Asks whether these drives may be erased, before the first one is. A probe of a former version never asks."""


def read(body: bytes) -> SanitizationReport:
    """The report in a JSON document that is within the registry's limits. Raises InvalidReport."""
    try:
        raw = msgspec.json.decode(body, type=SanitizationReport)
    except msgspec.DecodeError as exc:  # ValidationError is one of them, and says where
        raise InvalidReport(f"not a valid report of an erasure: {exc}") from None
    if len(raw.drives) > _DRIVES:
        raise InvalidReport(f"more than {_DRIVES} drives")
    drives = tuple(_clean(number, drive) for number, drive in enumerate(raw.drives))
    return msgspec.structs.replace(raw, drives=drives, problems=tuple(_text(text) for text in raw.problems[:_PROBLEMS]))


def _clean(number: int, drive: DriveErasure) -> DriveErasure:
    if drive.result not in tuple(Result):
        raise InvalidReport(f"drives[{number}].result must be one of {', '.join(Result)}")
    if drive.class_ not in _CLASSES:
        raise InvalidReport(f"drives[{number}].class must be Clear, Purge or empty")
    return msgspec.structs.replace(drive, **{name: _value(number, name, drive) for name in drive.__struct_fields__})


def _value(number: int, name: str, drive: DriveErasure) -> Any:
    value = getattr(drive, name)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, datetime):
        return value if value.tzinfo is not None else None
    if isinstance(value, int) and not 0 <= value < _LARGEST:
        raise InvalidReport(f"drives[{number}].{name} is out of range")
    return value


def _text(value: str) -> str:
    """The text without line breaks and escape sequences, since it is printed to terminals."""
    return "".join(char if char.isprintable() else " " for char in value[:_LONGEST]).strip()
