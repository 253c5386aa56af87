"""The simulated DHCP server: reports each lease as an Endpoint, as the lease hook of a real one does."""

import asyncio
from collections.abc import Iterable

import structlog

from metal.api.kinds import Kinds
from metal.kube.client.errors import AlreadyExists, ApiError
from metal.kube.client.protocol import Client
from metal.machine.leases import canonical_mac, endpoint_name, lease_given

_log = structlog.get_logger(__name__)
_AT_ONCE = 32
_RETRY = 2.0


class Leases:
    """Reports leases. A known lease costs no request, a new one costs one."""

    def __init__(self, client: Client, kinds: Kinds) -> None:
        self._client, self._kinds = client, kinds
        self._known: dict[str, str] = {}
        self._taken: set[str] = set()
        self._slots = asyncio.Semaphore(_AT_ONCE)

    def __repr__(self) -> str:
        return f"<Leases {len(self._known)} known>"

    async def refresh(self) -> None:
        """Read the existing Endpoints. Raises ApiError."""
        found: dict[str, str] = {}
        for endpoint in (await self._client.list(self._kinds.endpoint)).items:
            try:
                found[canonical_mac(endpoint.spec.mac_address)] = endpoint.spec.ip or ""
            except ValueError:
                continue  # an Endpoint with an invalid MAC address is not a lease
        self._known, self._taken = found, set(found.values())

    async def announce(self, leases: Iterable[tuple[str, str]]) -> None:
        """Report many leases concurrently; returns when all exist. Raises ApiError when the first list fails."""
        await self.refresh()
        async with asyncio.TaskGroup() as group:
            for mac, ip in leases:
                group.create_task(self._report_until_accepted(mac, ip))

    async def give(self, mac: str, ip: str) -> None:
        """Report one lease, without retry, as the hook of a real DHCP server does."""
        try:
            await self._give(canonical_mac(mac), ip)
        except ApiError as exc:
            _log.warning("lease not reported", mac=mac, ip=ip, error=str(exc))

    async def _report_until_accepted(self, mac: str, ip: str) -> None:
        mac = canonical_mac(mac)
        while True:
            try:
                await self._give(mac, ip)
            except ApiError as exc:
                _log.warning("lease not reported, trying again", mac=mac, ip=ip, error=str(exc))
                await asyncio.sleep(_RETRY)
            else:
                return

    async def _give(self, mac: str, ip: str) -> None:
        if self._known.get(mac) == ip:
            return
        async with self._slots:
            if mac in self._known or ip in self._taken:
                await lease_given(self._client, self._kinds, mac, ip)
            else:
                await self._create(mac, ip)
        self._known[mac] = ip
        self._taken.add(ip)

    async def _create(self, mac: str, ip: str) -> None:
        body = {"metadata": {"name": endpoint_name(mac)}, "spec": {"macAddress": mac, "ip": ip}}
        try:
            await self._client.create(self._kinds.endpoint, body)
        except AlreadyExists:
            await lease_given(self._client, self._kinds, mac, ip)
