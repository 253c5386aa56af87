"""One Redfish client for each BMC, shared by all controllers.

`get` takes a BMCEndpoint and returns the client that was created for its key, or a new one. The pool remembers the
endpoint of each client: when the address, credentials or trust of a BMC change, the old client logs out in the
background and a new one takes its place. Sharing one client keeps one session for each BMC and makes the client's
limits (one write, two reads at a time) hold for all callers together. BMCs that do not answer share a small budget
(`silent`). Nothing is sent until the first request.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

from prometheus_client import CollectorRegistry

from metal.bmc import calls
from metal.bmc.calls import RecordedBMC, Target
from metal.bmc.errors import BMCError
from metal.bmc.metrics import Metrics
from metal.bmc.pool import BMC, BMCEndpoint
from metal.bmc.redfish.client import RedfishBMC
from metal.bmc.redfish.silent import CONNECT, SilentBMCs
from metal.bmc.vendors import error_type
from metal.redfish import HTTPTransport, Limits, Permit, RedfishClient, Transport, Trust
from metal.redfish.tls import first_fingerprint

TransportFactory = Callable[[BMCEndpoint], Transport]
CertificateOf = Callable[[str, int], Awaitable[str]]
"""SHA-256 of the certificate at an address and port."""
CLOSE_DEADLINE = 1.8
"""Seconds that closing everything may take; a process that receives SIGTERM has about two."""


def http_transport(endpoint: BMCEndpoint, connect_timeout: Callable[[], float] = lambda: CONNECT) -> Transport:
    """The transport over real sockets for this endpoint.

    Args: connect_timeout returns the seconds after which an attempt to connect that begins now is given up.
    Raises: ValueError for a scheme, CA or fingerprint that cannot be used.
    """
    return HTTPTransport(
        endpoint.address,
        port=endpoint.port,
        scheme=endpoint.scheme,
        trust=Trust(endpoint.verify, endpoint.ca_pem, endpoint.fingerprint),
        connect_timeout=connect_timeout,
    )


@dataclass(frozen=True)
class _Entry:
    endpoint: BMCEndpoint
    client: RedfishClient
    bmc: BMC


class RedfishPool:
    """Implements metal.bmc.pool.Pool. Connections and sessions are opened with the first request.

    Args: permit raises when no BMC may be changed now; it is called right before each change, logins excepted.
    registry, if given, gets the metrics of requests to BMCs. silent_budget is how many requests to BMCs that did not
    answer the last one are in flight at a time.
    """

    def __init__(
        self,
        transport_factory: TransportFactory | None = None,
        *,
        certificate_of: CertificateOf = first_fingerprint,
        limits: Limits | None = None,
        permit: Permit = lambda: None,
        registry: CollectorRegistry | None = None,
        silent_budget: int = 16,
    ) -> None:
        self._silent = SilentBMCs(silent_budget)
        self._make_transport, self._certificate_of = transport_factory or self._over_sockets, certificate_of
        self._limits, self._permit = limits or Limits(), permit
        self._entries: dict[str, _Entry] = {}
        self._requests: dict[str, int] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._metrics = Metrics(registry or CollectorRegistry())
        self._metrics.watch_sessions(lambda: sum(entry.client.session.is_open for entry in self._entries.values()))
        self._metrics.watch_quiet(
            lambda: len(self._silent), lambda: sum(entry.client.paused for entry in self._entries.values())
        )

    def __repr__(self) -> str:
        return f"<RedfishPool {len(self._entries)} BMCs {self.total_requests} requests>"

    @property
    def requests(self) -> dict[str, int]:
        """Requests sent so far by BMCEndpoint.key, including BMCs that were dropped since."""
        return dict(self._requests)

    @property
    def total_requests(self) -> int:
        """Requests sent so far."""
        return sum(self._requests.values())

    def get(self, endpoint: BMCEndpoint) -> BMC:
        """The client for this endpoint; one for another endpoint of the same key is logged out in the background.

        Raises: ValueError for a scheme, CA or fingerprint that cannot be used.
        """
        entry = self._entries.get(endpoint.key)
        if entry is not None and entry.endpoint == endpoint:
            return entry.bmc
        fresh = self._connect(endpoint)
        if entry is not None:
            self._silent.answered(endpoint.key)  # another address or other credentials: nothing is known about it
            self._retire(entry)
        self._entries[endpoint.key] = fresh
        return fresh.bmc

    async def certificate(self, address: str, port: int) -> str:
        """See Pool."""
        return await self._certificate_of(address, port)

    def expect_silence(self, key: str, error: BMCError) -> None:
        """See Pool."""
        if key not in self._entries:
            self._silent.expect(key, error)

    async def drop(self, key: str) -> None:
        """Log out and forget the client; a later get creates a new one, which tries refused credentials again."""
        entry = self._entries.pop(key, None)
        self._silent.answered(key)
        if entry is not None:
            await self._retire(entry)

    async def aclose(self) -> None:
        """Log out everywhere at once, within CLOSE_DEADLINE; sessions that do not answer end by their own timeout."""
        for entry in self._entries.values():
            self._retire(entry)
        self._entries.clear()
        if self._closing:
            _, late = await asyncio.wait(self._closing, timeout=CLOSE_DEADLINE)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _connect(self, endpoint: BMCEndpoint) -> _Entry:
        address = f"[{endpoint.address}]" if ":" in endpoint.address else endpoint.address
        target = Target(endpoint.key, self._metrics)

        def observe(method: str, outcome: str, seconds: float) -> None:
            self._requests[endpoint.key] = self._requests.get(endpoint.key, 0) + 1
            target.observe(method, outcome, seconds)

        client = RedfishClient(
            self._silent.guard(endpoint.key, self._make_transport(endpoint)),
            origin=f"{endpoint.scheme}://{address}:{endpoint.port}",
            username=endpoint.username,
            password=endpoint.password,
            limits=self._limits,
            observer=observe,
            permit=self._permit_write,
            classify=error_type,
        )
        return _Entry(endpoint, client, cast("BMC", RecordedBMC(RedfishBMC(client), target)))

    def _over_sockets(self, endpoint: BMCEndpoint) -> Transport:
        return http_transport(endpoint, partial(self._silent.connect_timeout, endpoint.key))

    def _permit_write(self) -> None:
        self._permit()
        calls.note_write()

    def _retire(self, entry: _Entry) -> asyncio.Task[None]:
        task = asyncio.create_task(entry.client.aclose(), name=f"log out of {entry.endpoint.key}")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task
