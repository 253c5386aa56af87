"""Endpoint: a MAC and IP pair seen by a DHCP server."""

from datetime import datetime
from typing import Annotated

import msgspec

from metal.api.markers import IP, MAC, Choice
from metal.api.meta import Conditions, Model, ObjectMeta


class EndpointSpec(Model, frozen=True, kw_only=True):
    """What the DHCP server said."""

    mac_address: MAC = ""
    """MAC address of the device, six pairs of hexadecimal digits."""
    ip: IP = msgspec.field(name="ip", default=None)
    """IPv4 or IPv6 address that the device got."""


class EndpointStatus(Model, frozen=True, kw_only=True):
    """What became of the endpoint."""

    state: Annotated[str, Choice("", "Pending", "Ready", "Ignored", "Error")] = ""
    """Pending, Ready (its BMC exists), Ignored (not a BMC) or Error."""
    since: datetime | None = None
    """When state last changed."""
    waiting_for: str = ""
    """What is awaited, in a few words; empty when nothing is."""
    credentials_refused_at: datetime | None = None
    """When the BMC last refused the last of the known credentials; they rest for an hour, for fear of a lock-out."""
    observed_generation: int = 0
    """metadata.generation that this status was computed from."""
    conditions: Conditions = ()
    """Ready says whether a BMC was made of this endpoint, and why not."""


class Endpoint(Model, frozen=True, kw_only=True):
    """A device on the network, known by its MAC and IP address; a BMC when its MAC prefix is known as one."""

    metadata: ObjectMeta = ObjectMeta()
    spec: EndpointSpec = EndpointSpec()
    status: EndpointStatus = EndpointStatus()
