"""Functions that Kubernetes adds to CEL: URLs, IP addresses, regular expressions, lists."""

import ipaddress
import itertools
import re
import urllib.parse
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from metal.apiserver.cel.search import find, find_all


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


def quantity(text: str) -> str:
    """A Kubernetes quantity; it remains a string, which the functions below parse. Raises ValueError."""
    _quantity(text)
    return text


def is_quantity(text: str) -> bool:
    """Whether text is a Kubernetes quantity."""
    return _QUANTITY.fullmatch(text) is not None


def _quantity(text: str) -> Decimal:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"quantities must match the regular expression '{_QUANTITY.pattern}'")
    number, suffix = match.groups()
    if suffix[:1] in ("e", "E") and len(suffix) > 1:
        return Decimal(number).scaleb(int(suffix[1:]))
    return Decimal(number) * _SUFFIXES[suffix]


_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))((?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?)")
_SUFFIXES = {
    "": Decimal(1),
    **{unit: Decimal(10) ** power for unit, power in zip("num", (-9, -6, -3), strict=True)},
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", 1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", 1)},
}


def _compare(one: str, other: str) -> int:
    a, b = _quantity(one), _quantity(other)
    return (a > b) - (a < b)


def _sign(text: str) -> int:
    value = _quantity(text)
    return (value > 0) - (value < 0)


def family(text: str) -> int:
    """4 or 6, the version of an address."""
    return ipaddress.ip_address(text).version


def contains_ip(network: str, address: str) -> bool:
    """Whether a network contains an address."""
    return ipaddress.ip_address(address) in ipaddress.ip_network(network, strict=False)


def _address(text: str) -> str:
    ipaddress.ip_address(text)
    return text


def _network(text: str) -> str:
    ipaddress.ip_interface(text)
    return text


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
    "quantity": quantity,
    "isQuantity": is_quantity,
    "isLessThan": lambda one, other: _compare(one, other) < 0,
    "isGreaterThan": lambda one, other: _compare(one, other) > 0,
    "compareTo": _compare,
    "sign": _sign,
    "isInteger": lambda text: _quantity(text) == int(_quantity(text)),
    "asInteger": lambda text: int(_quantity(text)),
    "asApproximateFloat": lambda text: float(_quantity(text)),
    "ip": _address,
    "cidr": _network,
    "family": family,
    "containsIP": contains_ip,
}
"""By name. Each takes its receiver as the first argument."""
