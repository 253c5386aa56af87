"""Reads metalprobe's report into the fields of Server.status. Pure, and tolerant of what machines send."""

import ipaddress
from collections.abc import Mapping
from typing import Any

from metal.api.server import LLDPNeighbor, NetworkInterface


def network_interfaces(report: Mapping[str, Any]) -> tuple[NetworkInterface, ...]:
    """The interfaces of a report, with LLDP neighbours merged by name. Addresses that are none are left out."""
    neighbours = {str(n.get("name", "")): n for n in _dicts(report.get("lldp"))}
    found = (_interface(nic, neighbours) for nic in _dicts(report.get("networkInterfaces")))
    return tuple(nic for nic in found if nic.name and nic.mac_address)


def _interface(nic: Mapping[str, Any], lldp: Mapping[str, Mapping[str, Any]]) -> NetworkInterface:
    name = str(nic.get("name", ""))
    raw = nic.get("ipAddresses")
    return NetworkInterface(
        name=name,
        mac_address=str(nic.get("macAddress", "")).lower().replace("-", ":"),
        ips=tuple(ip for ip in map(_address, raw if isinstance(raw, list) else []) if ip),
        carrier_status=str(nic.get("carrierStatus", "")),
        neighbors=tuple(_neighbour(n) for n in _dicts(lldp.get(name, {}).get("neighbors"))),
    )


def _neighbour(n: Mapping[str, Any]) -> LLDPNeighbor:
    return LLDPNeighbor(
        mac_address=str(n.get("chassisId", "")),
        port_id=str(n.get("portId", "")),
        port_description=str(n.get("portDescription", "")),
        system_name=str(n.get("systemName", "")),
        system_description=str(n.get("systemDescription", "")),
    )


def _address(text: object) -> str:
    try:
        return str(ipaddress.ip_address(str(text).partition("/")[0]))
    except ValueError:
        return ""


def _dicts(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
