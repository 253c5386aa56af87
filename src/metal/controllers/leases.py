"""Records what a DHCP server says as Endpoints: BMCs are found by them, and boot scripts go by them."""

import re

from metal.api.endpoint import Endpoint
from metal.api.kinds import Kinds
from metal.kube.client import Client
from metal.kube.errors import AlreadyExists, NotFound

_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")


def canonical_mac(mac: str) -> str:
    """A MAC address in lower case with colons. Raises ValueError with a sentence when it is none.

    dnsmasq writes a hardware type before some addresses (06-02:00:…); it is left out.
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


async def lease_given(client: Client, kinds: Kinds, mac: str, ip: str) -> Endpoint:
    """A device got or renewed an address. Whoever had the address before has it no longer."""
    mac, name = canonical_mac(mac), endpoint_name(mac)
    known = (await client.list(kinds.endpoint)).items
    for other in known:
        if other.spec.ip == ip and _mac_of(other) != mac:
            await _take_address(client, kinds, other)
    mine = next((e for e in known if _mac_of(e) == mac), None)
    if mine is not None and mine.spec.ip == ip:
        return mine
    if mine is not None:
        return await client.patch(kinds.endpoint, mine.metadata.name, {"spec": {"ip": ip}})
    try:
        return await client.create(kinds.endpoint, {"metadata": {"name": name}, "spec": {"macAddress": mac, "ip": ip}})
    except AlreadyExists:
        return await client.patch(kinds.endpoint, name, {"spec": {"macAddress": mac, "ip": ip}})


async def lease_ended(client: Client, kinds: Kinds, mac: str, ip: str) -> None:
    """A lease ran out or was given back: its address proves nothing any more."""
    mac = canonical_mac(mac)
    for endpoint in (await client.list(kinds.endpoint)).items:
        if endpoint.spec.ip == ip and _mac_of(endpoint) == mac:
            await _take_address(client, kinds, endpoint)


async def _take_address(client: Client, kinds: Kinds, endpoint: Endpoint) -> None:
    try:
        await client.patch(kinds.endpoint, endpoint.metadata.name, {"spec": {"ip": None}})
    except NotFound:
        return


def _mac_of(endpoint: Endpoint) -> str:
    try:
        return canonical_mac(endpoint.spec.mac_address)
    except ValueError:
        return ""
