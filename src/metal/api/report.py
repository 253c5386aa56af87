"""What metalprobe reports about network interfaces, as a Server shows it. Never raises: a report is foreign."""

import re
from collections.abc import Mapping, Sequence
from ipaddress import ip_interface
from typing import Any

from metal.api.server import LLDPNeighbor, NetworkInterface

_SEPARATORS = re.compile(r"[:.-]")
_HEX = re.compile(r"[0-9a-f]{12}")
_MOST = 256
"""Interfaces, and addresses or neighbours of one, that are shown."""
_LONGEST = 256
"""Characters of a text that are shown."""


def network_interfaces(report: Mapping[str, object]) -> tuple[NetworkInterface, ...]:
    """The report's interfaces with a MAC address, with their LLDP neighbours; addresses that are none are left out."""
    neighbors = _neighbors(report)
    found: dict[str, NetworkInterface] = {}
    for entry in _objects(report.get("networkInterfaces")):
        name, mac = _text(entry.get("name")), normal_mac(entry.get("macAddress"))
        if name and mac and name not in found:
            found[name] = NetworkInterface(
                name=name,
                mac_address=mac,
                ips=_addresses(entry),
                carrier_status=_carrier(entry.get("carrierStatus")),
                neighbors=neighbors.get(name, ()),
            )
    return tuple(found.values())


def normal_mac(value: object) -> str:
    """A MAC address in lower case with colons; empty for anything else, and for one of zeros only (loopback)."""
    plain = _SEPARATORS.sub("", value).lower() if isinstance(value, str) else ""
    if not _HEX.fullmatch(plain) or not plain.strip("0"):
        return ""
    return ":".join(plain[place : place + 2] for place in range(0, 12, 2))


def _neighbors(report: Mapping[str, object]) -> dict[str, tuple[LLDPNeighbor, ...]]:
    """By interface name; what several entries say of one interface is put together."""
    found: dict[str, tuple[LLDPNeighbor, ...]] = {}
    for entry in _objects(report.get("lldp")):
        name = _text(entry.get("name"))
        seen = found.get(name, ())
        fresh = (_neighbor(neighbor) for neighbor in _objects(entry.get("neighbors")))
        found[name] = tuple(dict.fromkeys((*seen, *fresh)))[:_MOST]
    return found


def _neighbor(entry: Mapping[str, Any]) -> LLDPNeighbor:
    chassis = entry.get("chassisId")
    return LLDPNeighbor(
        mac_address=normal_mac(chassis) or _text(chassis),
        port_id=_text(entry.get("portId")),
        port_description=_text(entry.get("portDescription")),
        system_name=_text(entry.get("systemName")),
        system_description=_text(entry.get("systemDescription")),
    )


def _addresses(entry: Mapping[str, Any]) -> tuple[str, ...]:
    listed = entry.get("ipAddresses")
    told = [*(listed if isinstance(listed, list | tuple) else ()), entry.get("ipAddress")]
    return tuple(dict.fromkeys(address for one in told if (address := _address(one))))[:_MOST]


def _address(value: object) -> str:
    if not isinstance(value, str):
        return ""
    bare, slash, length = value.partition("/")
    try:
        address = ip_interface(bare.partition("%")[0] + slash + length).ip
    except ValueError:
        return ""
    return "" if address.is_loopback or address.is_unspecified or address.is_multicast else str(address)


def _carrier(value: object) -> str:
    return value if value in ("up", "down") and isinstance(value, str) else ""


def _objects(value: object) -> list[Mapping[str, Any]]:
    entries: Sequence[object] = value if isinstance(value, list | tuple) else ()
    return [entry for entry in entries[:_MOST] if isinstance(entry, Mapping)]


def _text(value: object) -> str:
    """Without line breaks and escape sequences: kubectl describe writes it to a terminal as it is."""
    told = value[:_LONGEST] if isinstance(value, str) else ""
    return "".join(char if char.isprintable() else " " for char in told)
