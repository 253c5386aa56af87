"""The names and addresses under which clients of other machines reach this one."""

import ipaddress
import re
import socket
from pathlib import Path

EVERYWHERE = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared with, not listened on
"""Listen addresses that stand for every address of this machine."""
_IPV4 = Path("/proc/net/fib_trie")
_IPV6 = Path("/proc/net/if_inet6")
_LOCAL = re.compile(r"\|-- (\S+)\n\s+/32 host LOCAL")


def reachable_names(host: str) -> tuple[str, ...]:
    """Names and addresses for the certificate of a server that listens on `host`."""
    if host not in EVERYWHERE:
        return (host,)
    hostname = socket.gethostname()
    return tuple(sorted({*local_addresses(), *([hostname] if _is_name(hostname) else [])}))


def local_addresses() -> frozenset[str]:
    """Addresses of all interfaces, as Linux lists them, without those of loopback and of one link only."""
    found = _LOCAL.findall(_text(_IPV4)) + [_ipv6(line) for line in _text(_IPV6).splitlines()]
    addresses = [ipaddress.ip_address(text) for text in found]
    return frozenset(str(a) for a in addresses if not (a.is_loopback or a.is_link_local or a.is_multicast))


def _ipv6(line: str) -> str:
    return str(ipaddress.IPv6Address(bytes.fromhex(line.split()[0])))


def _is_name(hostname: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z0-9]([-.A-Za-z0-9]{0,251}[A-Za-z0-9])?", hostname))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
