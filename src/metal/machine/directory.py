"""Finds Servers by system UUID, and leased IP addresses by MAC address."""

from collections.abc import Collection, Iterable
from ipaddress import ip_address
from typing import Any, Protocol

from metal.api.endpoint import Endpoint
from metal.api.kinds import Kinds
from metal.api.server import Server
from metal.kube.cache.informer import Informer
from metal.kube.client.errors import Unavailable
from metal.kube.client.protocol import Client
from metal.kube.meta.permissions import Permission, follows
from metal.machine.report import normal_mac
from metal.machine.uuids import spellings

BY_MAC = "lease-mac"
"""Index of Endpoints by their MAC address."""
_BY_UUID = "machine-uuid"
"""Index of Servers by their system UUID. The index by identity has no key for a UUID that many machines have; a machine
with such a UUID boots, and names itself by it."""


class Directory(Protocol):
    """The lookups for each request of a machine."""

    async def servers(self, uuid: str) -> list[str]:
        """Names of the Servers with this UUID (in either byte order). Raises ValueError if it is not a UUID."""
        ...

    async def leases(self, macs: Collection[str]) -> frozenset[str]:
        """IP addresses that are leased to any of these MAC addresses, as far as the DHCP server reports leases."""
        ...


class CachedDirectory:
    """Reads informer caches, without requests to the API.

    When nothing is found in a cache that is not synced, or whose watch fails, Unavailable is raised, so that the
    machine asks again: the object may exist.
    """

    def __init__(self, servers: Informer[Server], endpoints: Informer[Endpoint]) -> None:
        servers.add_index(_BY_UUID, by_uuid)
        endpoints.add_index(BY_MAC, by_mac)
        self._servers, self._endpoints = servers, endpoints

    async def servers(self, uuid: str) -> list[str]:
        found = (server for form in spellings(uuid) for server in self._servers.by_index(_BY_UUID, form))
        return sorted({server.metadata.name for server in found}) or self._require_synced(self._servers)

    async def leases(self, macs: Collection[str]) -> frozenset[str]:
        found = addresses(obj for mac in macs for obj in self._endpoints.by_index(BY_MAC, normal_mac(mac)))
        return found or frozenset(self._require_synced(self._endpoints) if macs else ())

    def _require_synced(self, informer: Informer[Any]) -> list[str]:
        if informer.failure is not None or not informer.synced.is_set():
            raise Unavailable(f"{informer.kind.plural} cannot be watched at the moment")
        return []


class ListingDirectory:
    """Lists the objects for each lookup: for small sites and tests."""

    def __init__(self, client: Client, kinds: Kinds) -> None:
        self._client, self._kinds = client, kinds

    async def servers(self, uuid: str) -> list[str]:
        forms = spellings(uuid)
        page = await self._client.list(self._kinds.server)
        return sorted(server.metadata.name for server in page.items if server.uuid in forms)

    async def leases(self, macs: Collection[str]) -> frozenset[str]:
        wanted = {normal_mac(mac) for mac in macs} - {""}
        page = await self._client.list(self._kinds.endpoint)
        return addresses(obj for obj in page.items if normal_mac(obj.spec.mac_address) in wanted)


def by_uuid(server: Server) -> tuple[str, ...]:
    """Index of Servers."""
    return (server.uuid,) if server.uuid else ()


def by_mac(endpoint: Endpoint) -> tuple[str, ...]:
    """Index of Endpoints."""
    mac = normal_mac(endpoint.spec.mac_address)
    return (mac,) if mac else ()


def with_mac(endpoints: Informer[Endpoint], endpoint: Endpoint) -> list[Endpoint]:
    """All Endpoints with the MAC address of this one."""
    return [found for mac in by_mac(endpoint) for found in endpoints.by_index(BY_MAC, mac)]


def plain_ip(text: str) -> str:
    """Normalizes an address: IPv4-mapped IPv6 becomes IPv4, a zone is removed. Raises ValueError."""
    address = ip_address(text.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def addresses(endpoints: Iterable[Endpoint]) -> frozenset[str]:
    """The normalized IP addresses of these leases."""
    found: set[str] = set()
    for endpoint in endpoints:
        try:
            found.add(plain_ip(endpoint.spec.ip or ""))
        except ValueError:
            continue  # an Endpoint without a valid address has no lease
    return frozenset(found)


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """Permissions to watch Servers and Endpoints."""
    return follows(kinds.server, kinds.endpoint, why="finds machines by UUID and by leased address")
