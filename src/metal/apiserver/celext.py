"""Functions that Kubernetes adds to CEL: URLs, IP addresses, regular expressions, lists."""

import ipaddress
import itertools
import re
import urllib.parse
from collections.abc import Callable
from typing import Any


def is_url(text: str) -> bool:
    """Whether text is an absolute URL or an absolute path (Kubernetes' isURL)."""
    try:
        parts = urllib.parse.urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme) or text.startswith("/")


def _url_part(read: Callable[[urllib.parse.SplitResult], str]) -> Callable[[str], str]:
    return lambda text: read(urllib.parse.urlsplit(text))


def _identity(text: str) -> str:
    if not is_url(text):
        raise ValueError(f"URL parse error: {text}")
    return text


def is_ip(text: str) -> bool:
    """Whether text is an IPv4 or IPv6 address (Kubernetes' isIP)."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_cidr(text: str) -> bool:
    """Whether text is an address with a prefix length (Kubernetes' isCIDR)."""
    try:
        ipaddress.ip_interface(text)
    except ValueError:
        return False
    return "/" in text


def find(text: str, pattern: str) -> str:
    """The first match, or an empty string."""
    match = re.search(pattern, text)
    return match[0] if match else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Matches in order, at most `limit` of them."""
    found = [match[0] for match in re.finditer(pattern, text)]
    return found if limit < 0 else found[:limit]


def is_sorted(values: list[Any]) -> bool:
    """Whether a list is in ascending order."""
    return all(a <= b for a, b in itertools.pairwise(values))


def index_of(value: Any, item: Any, start: int = 0) -> int:
    """Where an item or a substring first occurs, -1 if nowhere."""
    if isinstance(value, str):
        return value.find(item, start)
    return value.index(item) if item in value else -1


def last_index_of(value: Any, item: Any) -> int:
    """Where an item or a substring last occurs, -1 if nowhere."""
    if isinstance(value, str):
        return value.rfind(item)
    return len(value) - 1 - value[::-1].index(item) if item in value else -1


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "isURL": is_url,
    "url": _identity,
    "getScheme": _url_part(lambda parts: parts.scheme),
    "getHost": _url_part(lambda parts: parts.netloc.rpartition("@")[2]),
    "getHostname": _url_part(lambda parts: parts.hostname or ""),
    "getPort": _url_part(lambda parts: str(parts.port or "")),
    "getEscapedPath": _url_part(lambda parts: parts.path),
    "isIP": is_ip,
    "isCIDR": is_cidr,
    "find": find,
    "findAll": find_all,
    "isSorted": is_sorted,
    "indexOf": index_of,
    "lastIndexOf": last_index_of,
}
"""By name. Each takes its receiver as the first argument."""
