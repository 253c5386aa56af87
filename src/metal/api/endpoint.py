"""Endpoint: a MAC address and the IP address that a DHCP server leased to it."""

from datetime import datetime
from typing import Annotated

import msgspec

from metal.api.markers import IP, MAC, Choice
from metal.api.meta import Conditions, Model, ObjectMeta


class EndpointSpec(Model, frozen=True, kw_only=True):
    """MAC and IP address of a device, usually from its DHCP lease."""

    mac_address: MAC = ""
    """MAC address of the device: six pairs of hexadecimal digits, separated by colons or hyphens or not separated."""
    ip: IP = msgspec.field(name="ip", default=None)
    """IPv4 or IPv6 address of the device."""


class EndpointStatus(Model, frozen=True, kw_only=True):
    """Observed state of an endpoint."""

    state: Annotated[str, Choice("", "Pending", "Ready", "Ignored", "Error")] = ""
    """State of the endpoint: Pending (the BMC does not answer yet), Ready (its BMC object exists), Ignored (the device
    is not a BMC, or another BMC object has its MAC address) or Error."""
    since: datetime | None = None
    """Time at which the state last changed."""
    waiting_for: str = ""
    """Human-readable description of what the controller currently waits for. Empty when it waits for nothing."""
    credentials_refused_at: datetime | None = None
    """Time at which the BMC rejected the last of the known credentials. They are not used again until the Endpoint, its
    BMCSecret or the MAC prefix file changes, or one hour has passed, so that the BMC does not lock the account."""
    observed_generation: int = 0
    """The most recent metadata.generation of the object that the controller has observed."""
    conditions: Conditions = ()
    """Conditions of the endpoint: Ready (a BMC object was created for it)."""


class Endpoint(Model, frozen=True, kw_only=True):
    """Endpoint is a device on the network, identified by its MAC and IP address. A BMC object is created for a device
    whose MAC prefix is that of a BMC in the manager's MAC prefix database."""

    metadata: ObjectMeta = ObjectMeta()
    spec: EndpointSpec = EndpointSpec()
    status: EndpointStatus = EndpointStatus()
