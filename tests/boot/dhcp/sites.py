"""Sites that the tests configure DHCP servers for."""

from typing import Any

from metal.boot.dhcp.site import Site, prefix, site, subnets

DUAL = "http://boot.example:8082"


def ipv4(**more: Any) -> Site:
    """One IPv4 network."""
    return site(Site("eth1", "http://192.0.2.1:8082", subnets=subnets(["192.0.2.0/24"], [], []), **more))


def ipv6(**more: Any) -> Site:
    """One IPv6 network."""
    return site(Site("eth1", "http://[2001:db8::1]:8082", prefix=prefix("2001:db8::/64"), **more))
