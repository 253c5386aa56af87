"""Network interfaces: the ones with hardware behind them."""

from __future__ import annotations

from collections.abc import Callable

from metal.probe.collectors import Fields
from metal.probe.host import Host

NET = "/sys/class/net/"
SKIPPED = ("lo", "docker0")

Addresses = Callable[[], "dict[str, list[str]]"]
"""IP addresses by interface name; raises OSError."""


def interfaces(host: Host) -> list[str]:
    """Names of the interfaces with a device: no loopback, tunnel or bridge."""
    names = host.names(NET)
    return [name for name in names if _is_hardware(host, name)]


def _is_hardware(host: Host, name: str) -> bool:
    return name not in SKIPPED and not name.startswith("tun") and host.exists(f"{NET}{name}/device")


def mac(host: Host, name: str) -> str:
    """The interface's MAC address in lower case."""
    return host.text(f"{NET}{name}/address").lower()


def has_carrier(host: Host, name: str) -> bool:
    """Whether the interface is up and its link too."""
    return host.number(f"{NET}{name}/carrier") == 1


def is_usb(host: Host, name: str) -> bool:
    """Whether the interface is on a USB bus, as the one that a BMC offers to its operating system."""
    return any(part.startswith("usb") for part in host.real_parts(f"{NET}{name}/device")[:-1])


def collect(host: Host, addresses: Addresses) -> list[Fields]:
    """One entry per interface.

    Raises:
        LookupError: there is none.
        OSError: addresses cannot be read.
    """
    names = interfaces(host)
    if not names:
        raise LookupError("/sys/class/net shows no network interface with a device behind it")
    known = addresses()
    return [
        {
            "name": name,
            "ipAddresses": known.get(name, []),
            "macAddress": mac(host, name),
            "carrierStatus": "up" if has_carrier(host, name) else "down",
            **({"bus": "usb"} if is_usb(host, name) else {}),
        }
        for name in names
    ]
