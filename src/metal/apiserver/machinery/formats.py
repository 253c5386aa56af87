"""String formats that a CRD schema may require (those of OpenAPI and of Kubernetes)."""

import base64
import binascii
import ipaddress
import re
import urllib.parse
import uuid
from collections.abc import Callable
from datetime import date, datetime, timedelta

_DURATION = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_MAC = re.compile(r"[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}([:-][0-9A-Fa-f]{2}){0,2}|([0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4}")
_HOSTNAME = re.compile(
    r"(?=.{1,253}\Z)[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
)
_DATETIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:?\d\d)")


def parse_duration(text: str) -> timedelta:
    """A Go duration such as `1h30m`, `-2.5s` or `0`. Raises ValueError."""
    if text in ("0", "+0", "-0"):
        return timedelta()
    sign = -1.0 if text.startswith("-") else 1.0
    body, total = text.lstrip("+-") if text[:1] in "+-" else text, 0.0
    position = 0
    while position < len(body):
        match = _DURATION.match(body, position)
        if match is None:
            raise ValueError(f"{text!r} is not a duration such as 1h30m")
        total += float(match[1]) * _UNITS[match[3]]
        position = match.end()
    if not body:
        raise ValueError("a duration must not be empty")
    return timedelta(seconds=sign * total)


def parse_datetime(text: str) -> datetime:
    """An RFC 3339 time. Raises ValueError."""
    if not _DATETIME.fullmatch(text):
        raise ValueError(f"{text!r} is not an RFC 3339 time")
    digits = re.sub(r"\.(\d+)", lambda m: "." + m[1][:6].ljust(6, "0"), text.upper())
    return datetime.fromisoformat(digits)


def _ok(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


def _byte(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _uri(text: str) -> bool:
    try:
        parts = urllib.parse.urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme or text.startswith("/"))


def _uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)).replace("-", "") == text.replace("-", "").lower()
    except ValueError:
        return False


FORMATS: dict[str, Callable[[str], bool]] = {
    "byte": _byte,
    "date": _ok(date.fromisoformat),
    "date-time": _ok(parse_datetime),
    "datetime": _ok(parse_datetime),
    "duration": _ok(parse_duration),
    "email": lambda text: re.fullmatch(r"[^@\s]+@[^@\s]+", text) is not None,
    "hostname": lambda text: _HOSTNAME.fullmatch(text) is not None,
    "ipv4": _ok(ipaddress.IPv4Address),
    "ipv6": _ok(ipaddress.IPv6Address),
    "cidr": _ok(ipaddress.ip_interface),
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "uri": _uri,
    "uuid": _uuid,
    "uuid3": _uuid,
    "uuid4": _uuid,
    "uuid5": _uuid,
}
"""Checks by format. Other formats are documentation only, as in Kubernetes."""

INTEGERS = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
"""Bounds of the integer formats."""
