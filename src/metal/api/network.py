"""The network interfaces of a server, and how their MAC addresses are known."""

from enum import StrEnum
from typing import Annotated

import msgspec

from metal.api.markers import IP, Choice
from metal.api.meta import Model


class MACSource(StrEnum):
    """How a MAC address is known."""

    OUT_OF_BAND = "OutOfBand"
    IN_BAND = "InBand"


class LLDPNeighbor(Model, frozen=True, kw_only=True):
    """LLDPNeighbor is a switch port that the probe discovered by LLDP."""

    mac_address: str = ""
    """Chassis ID of the switch, usually a MAC address."""
    port_id: str = msgspec.field(name="portID", default="")
    """Port ID of the switch port."""
    port_description: str = ""
    """Description of the switch port."""
    system_name: str = ""
    """Name of the switch."""
    system_description: str = ""
    """Description of the switch."""


class NetworkInterface(Model, frozen=True, kw_only=True):
    """A network interface of the server."""

    name: str
    """Name in the operating system of the probe if it reported the interface, else the name that the BMC uses."""
    mac_address: str
    """MAC address, in lower case with colons."""
    source: Annotated[str, Choice("", *MACSource)] = ""
    """How the MAC address is known: OutOfBand (the BMC shows it) or InBand (only the probe reported it). An InBand
    address does not identify the machine. Empty when an earlier version recorded it."""
    ip: IP = msgspec.field(name="ip", default=None)
    """Deprecated and not set. Use ips."""
    ips: tuple[str, ...] = msgspec.field(name="ips", default=())
    """IP addresses that the probe reported."""
    carrier_status: str = ""
    """Link state of the interface that the probe reported: up or down."""
    neighbors: tuple[LLDPNeighbor, ...] = ()
    """Switch ports, reported by LLDP."""
