"""What a call of the lease hook says, by dnsmasq or by Kea.

dnsmasq calls its dhcp-script with ACTION, MAC (or the DUID of a DHCPv6 client), ADDRESS and further arguments. Kea's
hook library run_script calls its program with the name of a hook point; all else is in the environment.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address

_DNSMASQ = ("add", "old", "del")
_DNSMASQ_OTHERS = ("init", "tftp", "arp-add", "arp-del", "relay-snoop")
_KEA_GIVEN = ("renew", "rebind")
_KEA_ENDED = ("expire", "release", "decline")
_KEA_OTHERS = ("leases4_recover", "lease4_recover", "lease6_recover", "lease4_offer")
_LINK_LAYER = ((14, ["00", "01"]), (10, ["00", "03"]))
_ALL_SERVERS = "ff02::1:2"
"""Where clients send to, and relays do not."""
_MOST = 256
"""Leases in one call of Kea; a client gets a few."""


class UnknownAction(ValueError):
    """The first argument is none that a DHCP server gives. str() is a sentence."""


@dataclass(frozen=True)
class LeaseChange:
    """One lease that was given (or renewed), or has ended. The MAC address is empty where the DHCP server has none."""

    given: bool
    mac: str
    ip: str


def changes(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[LeaseChange, ...]:
    """The changes in one call of the hook, in their order. Raises UnknownAction."""
    action, *rest = arguments
    if action in _DNSMASQ:
        return (_of_dnsmasq(action, rest, environment),)
    if action in _DNSMASQ_OTHERS or action in _KEA_OTHERS:
        return ()
    for version in "46":
        if action == f"leases{version}_committed":
            return tuple(_committed(version, environment))
        if action.startswith(f"lease{version}_"):
            return tuple(_single(version, action.partition("_")[2], environment))
    raise UnknownAction(f"ACTION is {action!r}: use add, old or del, or a hook point of Kea such as leases4_committed")


def _of_dnsmasq(action: str, rest: Sequence[str], environment: Mapping[str, str]) -> LeaseChange:
    mac, ip = (*rest, "", "")[:2]
    given = action != "del"
    if "DNSMASQ_IAID" not in environment:
        return LeaseChange(given, mac, ip)
    # A DHCPv6 client has a DUID in the place of the MAC address; dnsmasq finds the latter among its neighbours.
    return LeaseChange(given, environment.get("DNSMASQ_MAC", "") if given else "", ip)


def _committed(version: str, environment: Mapping[str, str]) -> Iterator[LeaseChange]:
    """Ended leases come first: the client may have got another one in their place."""
    for prefix, given in ((f"DELETED_LEASES{version}", False), (f"LEASES{version}", True)):
        size = environment.get(f"{prefix}_SIZE", "")
        for number in range(min(int(size), _MOST) if size.isdecimal() else 0):
            yield from _lease(f"{prefix}_AT{number}", given, environment)


def _single(version: str, what: str, environment: Mapping[str, str]) -> Iterator[LeaseChange]:
    # Kea calls lease4_renew for a DISCOVER, too, which leases nothing: anybody may send one.
    if environment.get("QUERY4_TYPE") == "DHCPDISCOVER":
        return
    if what in _KEA_GIVEN + _KEA_ENDED:
        yield from _lease(f"LEASE{version}", what in _KEA_GIVEN, environment)
    else:
        raise UnknownAction(f"ACTION is 'lease{version}_{what}', which is no hook point of a lease in Kea")


def _lease(prefix: str, given: bool, environment: Mapping[str, str]) -> Iterator[LeaseChange]:
    kind = environment.get(f"{prefix}_TYPE", "IA_NA")
    ip = environment.get(f"{prefix}_ADDRESS", "")
    if not ip or kind == "IA_PD":
        return
    mac = environment.get(f"{prefix}_HWADDR", "")
    if f"{prefix}_DUID" in environment:
        mac = (mac or _mac_in_duid(environment[f"{prefix}_DUID"]) or _mac_of_client(environment)) if given else ""
    yield LeaseChange(given, mac, ip)


def _mac_in_duid(duid: str) -> str:
    """The MAC address in a DUID-LLT (type 1) or DUID-LL (type 3) of Ethernet, else an empty string."""
    octets = duid.lower().split(":")
    is_link_layer = octets[2:4] == ["00", "01"] and (len(octets), octets[:2]) in _LINK_LAYER
    return ":".join(octets[-6:]) if is_link_layer else ""


def _mac_of_client(environment: Mapping[str, str]) -> str:
    """The MAC address in the link-local address of a client that is no relay, else an empty string.

    Kea 2.2 gives no MAC address for the DUID of a UUID, which UEFI sends.
    """
    if environment.get("QUERY6_LOCAL_ADDR") != _ALL_SERVERS:
        return ""
    try:
        address = IPv6Address(environment.get("QUERY6_REMOTE_ADDR", ""))
    except ValueError:
        return ""
    octets = address.packed[8:]
    if not address.is_link_local or octets[3:5] != b"\xff\xfe":
        return ""
    return bytes([octets[0] ^ 2, *octets[1:3], *octets[5:]]).hex(":")
