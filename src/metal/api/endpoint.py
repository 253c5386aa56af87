"""Endpoint: a MAC address and the IP address that a DHCP server leased to it."""

from datetime import datetime
from typing import Annotated

import msgspec

from metal.api.markers import IP, MAC, Choice
from metal.api.meta import Conditions, Model, ObjectMeta


class EndpointSpec(Model, frozen=True, kw_only=True):
    """The DHCP lease of a device."""

    mac_address: MAC = ""
    """MAC address of the device: six pairs of hexadecimal digits."""
    ip: IP = msgspec.field(name="ip", default=None)
    """IPv4 or IPv6 address of the device."""


class EndpointStatus(Model, frozen=True, kw_only=True):
    """Observed state of an endpoint."""

    state: Annotated[str, Choice("", "Pending", "Ready", "Ignored", "Error")] = ""
    """State of the endpoint: Pending, Ready (its BMC object exists), Ignored (the device is not a BMC) or Error."""
    since: datetime | None = None
    """Time at which the state last changed."""
    waiting_for: str = ""
    """What the controller currently waits for. Empty when it waits for nothing."""
    credentials_refused_at: datetime | None = None
    """Time at which the BMC rejected the last of the known credentials. They are not tried again for an hour, so that
    the account is not locked."""
    observed_generation: int = 0
    """The metadata.generation that this status was computed from."""
    conditions: Conditions = ()
    """Conditions of the endpoint: Ready (a BMC object was created for it)."""


class Endpoint(Model, frozen=True, kw_only=True):
    """A device on the network, known by its MAC and IP address. A device whose MAC prefix is listed as that of a BMC is
    enrolled as a BMC."""

    metadata: ObjectMeta = ObjectMeta()
    spec: EndpointSpec = EndpointSpec()
    status: EndpointStatus = EndpointStatus()
