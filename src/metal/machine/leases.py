"""Records the leases of a DHCP server as Endpoints: one for a MAC address, and one more where it has both IP families.

The Endpoint controller finds BMCs by them, and the boot server compares a client's address with the leases of the
machine. An address has one lease at a time: when a device gets it, the Endpoint that had it before loses it.
"""

import re
from ipaddress import ip_address

from metal.api.endpoint import Endpoint
from metal.api.kinds import Kinds
from metal.kube.client.errors import AlreadyExists, Conflict, NotFound
from metal.kube.client.protocol import Client

_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")

_DELETABLE = ("", "Ignored")
"""States of Endpoints that may be deleted; in others the status holds information, such as refused credentials."""


def canonical_mac(mac: str) -> str:
    """A MAC address in lower case with colons. Raises ValueError with a sentence when it is invalid.

    dnsmasq writes a hardware type before some addresses (06-02:00:…); it is removed.
    """
    text = mac.strip().lower().replace("-", ":")
    digits = text.split(":")
    text = ":".join(digits[-6:]) if len(digits) == 7 else text
    if not _MAC.fullmatch(text):
        raise ValueError(f"{mac!r} is not a MAC address: write six pairs of hexadecimal digits")
    return text


def endpoint_name(mac: str) -> str:
    """Name of the Endpoint for a MAC address."""
    return "mac-" + canonical_mac(mac).replace(":", "-")


def canonical_ip(ip: str) -> str:
    """An IP address in its canonical spelling. Raises ValueError with a sentence when it is invalid."""
    try:
        return str(ip_address(ip.strip()))
    except ValueError:
        raise ValueError(f"{ip!r} is not an IP address: write one such as 192.0.2.11 or 2001:db8::11") from None


async def lease_given(client: Client, kinds: Kinds, mac: str, ip: str) -> Endpoint:
    """A device got or renewed an address; another device that had it before loses it.

    Raises ValueError with a sentence for an invalid MAC or IP address, and ApiError.
    """
    mac, ip = canonical_mac(mac), canonical_ip(ip)
    known = (await client.list(kinds.endpoint)).items
    for other in known:
        if other.spec.ip == ip and _mac_of(other) != mac:
            await _clear_address(client, kinds, other)
    own = [e for e in known if _mac_of(e) == mac]
    mine = _for_family(own, ip)
    if mine is not None and mine.spec.ip == ip:
        return mine
    if mine is not None:
        return await client.patch(kinds.endpoint, mine.metadata.name, {"spec": {"ip": ip}})
    name = endpoint_name(mac) + (f"-ipv{ip_address(ip).version}" if own else "")
    try:
        return await client.create(kinds.endpoint, {"metadata": {"name": name}, "spec": {"macAddress": mac, "ip": ip}})
    except AlreadyExists:
        return await client.patch(kinds.endpoint, name, {"spec": {"macAddress": mac, "ip": ip}})


def _for_family(own: list[Endpoint], ip: str) -> Endpoint | None:
    """The Endpoint of this device for an address: the one with an address of the same family, or with none."""
    version = ip_address(ip).version
    ranked = sorted(own, key=lambda e: e.spec.ip is None)
    return next((e for e in ranked if not e.spec.ip or _version(e.spec.ip) in (version, None)), None)


async def lease_ended(client: Client, kinds: Kinds, mac: str, ip: str) -> None:
    """A lease expired or was released: remove its address.

    mac may be empty: a DHCPv6 server does not always know it. An Endpoint that was created for the lease, and has no
    BMC, is deleted: a client that requests addresses for ever new MAC addresses must not fill the API. Raises
    ValueError with a sentence, and ApiError.
    """
    mac, ip = canonical_mac(mac) if mac else "", canonical_ip(ip)
    for endpoint in (await client.list(kinds.endpoint)).items:
        if endpoint.spec.ip != ip or (mac and _mac_of(endpoint) != mac):
            continue
        if await _is_only_a_lease(client, kinds, endpoint):
            await _remove(client, kinds, endpoint)
        else:
            await _clear_address(client, kinds, endpoint)


def _names(mac: str) -> tuple[str, ...]:
    """The names that `lease_given` gives."""
    name = endpoint_name(mac)
    return name, f"{name}-ipv4", f"{name}-ipv6"


async def _is_only_a_lease(client: Client, kinds: Kinds, endpoint: Endpoint) -> bool:
    meta = endpoint.metadata
    if meta.name not in _names(endpoint.spec.mac_address) or meta.labels or meta.annotations or meta.finalizers:
        return False
    if endpoint.status.state not in _DELETABLE:
        return False
    try:
        await client.get(kinds.bmc, meta.name)
    except NotFound:
        return True
    return False


async def _remove(client: Client, kinds: Kinds, endpoint: Endpoint) -> None:
    """Delete it, unless it changed in between: the device may be back."""
    meta = endpoint.metadata
    try:
        await client.delete(kinds.endpoint, meta.name, uid=meta.uid, resource_version=meta.resource_version)
    except (NotFound, Conflict):
        return


async def _clear_address(client: Client, kinds: Kinds, endpoint: Endpoint) -> None:
    try:
        await client.patch(kinds.endpoint, endpoint.metadata.name, {"spec": {"ip": None}})
    except NotFound:
        return


def _mac_of(endpoint: Endpoint) -> str:
    try:
        return canonical_mac(endpoint.spec.mac_address)
    except ValueError:
        return ""


def _version(ip: str) -> int | None:
    try:
        return ip_address(ip).version
    except ValueError:
        return None
