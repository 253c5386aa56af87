"""Endpoint: a MAC and IP pair seen by a DHCP server."""

import msgspec

from metal.api.meta import Condition, Model, ObjectMeta


class EndpointSpec(Model, frozen=True, kw_only=True):
    """What the DHCP server said."""

    mac_address: str = ""
    """MAC address of the device, six pairs of hexadecimal digits."""
    ip: str | None = msgspec.field(name="ip", default=None)
    """IPv4 or IPv6 address that the device got."""


class EndpointStatus(Model, frozen=True, kw_only=True):
    """What became of the endpoint."""

    conditions: tuple[Condition, ...] = ()
    """Ready says whether a BMC was made of this endpoint, and why not."""


class Endpoint(Model, frozen=True, kw_only=True):
    """A device on the network, known by its MAC and IP address; a BMC when its MAC prefix is known as one."""

    metadata: ObjectMeta = ObjectMeta()
    spec: EndpointSpec = EndpointSpec()
    status: EndpointStatus = EndpointStatus()
