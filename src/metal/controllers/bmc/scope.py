"""The state of one pass over one BMC, and the dependencies that all passes share."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from metal.api.bmc import BMC, BMCSecret, BMCStatus
from metal.api.endpoint import Endpoint
from metal.api.names import OPERATION
from metal.api.server import Server
from metal.bmc.errors import BMCTimeout
from metal.bmc.pool import BMC as BMCClient
from metal.bmc.pool import BMCEndpoint, Pool
from metal.bmc.shell import Shell
from metal.bmc.systems import SystemInfo
from metal.controllers.bmc.dns_template import Template
from metal.controllers.bmc.settings import BMCSettings
from metal.controllers.shared.access.bmc_endpoint import BMCEndpointDefaults
from metal.controllers.shared.clock_jump import Moments, Record
from metal.controllers.shared.condition_types import RESET
from metal.controllers.shared.scope import Context, StatusScope
from metal.kube.cache.informer import Informer
from metal.kube.client.backoff import Backoff
from metal.kube.client.discovery import Discovery
from metal.kube.meta.objects import Key, key_of
from metal.machine.system_lease import SystemLeases

BY_ENDPOINT = "bmc-endpoint"
"""Index of BMCs by the name of their Endpoint."""


@dataclass
class Memo:
    """What this process remembers about a BMC. Losing it costs a request, never correctness."""

    backoff: Backoff
    refused: BMCEndpoint | None = None
    """The endpoint whose credentials the BMC refused last."""
    bmc_endpoint: BMCEndpoint | None = None
    """The last complete one: Endpoint and BMCSecret may be deleted before their BMC."""
    compared_at: float = float("-inf")
    """Loop time at which the manager was last compared with those of other BMC objects."""
    subscribed_at: float = float("-inf")
    """Loop time at which the event subscription was checked last."""
    record: tuple[dict[str, Any], str] | None = None
    """The DNS record that was applied last, and its resourceVersion after that."""


@dataclass
class Deps:
    """What all passes share; created once."""

    context: Context
    settings: BMCSettings
    defaults: BMCEndpointDefaults
    pool: Pool
    shell: Shell
    bmcs: Informer[BMC]
    secrets: Informer[BMCSecret]
    endpoints: Informer[Endpoint]
    servers: Informer[Server]
    discovery: Discovery
    template: Template | None = None
    """Template of the DNS records."""
    new_token: Callable[[], str] = lambda: secrets.token_urlsafe(32)
    """Makes the unguessable part of the path that a BMC sends its events to."""
    memos: dict[Key, Memo] = field(default_factory=dict)
    leases: SystemLeases = field(init=False)

    def __post_init__(self) -> None:
        context = self.context
        self.leases = SystemLeases(context.client, context.kinds, self.settings.namespace, context.clock)

    def memo(self, key: Key) -> Memo:
        """What is remembered about this BMC."""
        if key not in self.memos:
            backoff = Backoff(self.context.rng, base=self.settings.retry, cap=self.settings.interval)
            self.memos[key] = Memo(backoff)
        return self.memos[key]


class Scope(StatusScope[BMC]):
    """One pass over one BMC."""

    moments = Moments(
        fields=("since",),
        records={"restart": Record("at", "until"), "refused": Record("at")},
        conditions=(RESET, "Ready"),
    )

    def __init__(self, deps: Deps, bmc: BMC) -> None:
        super().__init__(deps.context, deps.context.kinds.bmc, deps.bmcs, bmc, BMCStatus())
        self.deps = deps
        self.memo = deps.memo(key_of(bmc))
        self.bmc_endpoint: BMCEndpoint | None = None
        self.systems: tuple[SystemInfo, ...] = ()

    @property
    def operation(self) -> str:
        """Value of the operation annotation, or empty."""
        return self.obj.metadata.annotations.get(self.context.kinds.key(OPERATION), "")

    @property
    def endpoint(self) -> Endpoint | None:
        """The Endpoint that the BMC names, if it exists."""
        ref = self.obj.spec.endpoint_ref
        return self.deps.endpoints.get(Key(ref.name)) if ref else None

    @property
    def secret(self) -> BMCSecret | None:
        """The BMCSecret that the BMC names, if it exists."""
        return self.deps.secrets.get(Key(self.obj.spec.bmc_secret_ref.name))

    @property
    def address(self) -> str:
        """IP address of the BMC, empty when unknown."""
        return self.bmc_endpoint.address if self.bmc_endpoint else self.status.ip or ""

    def require_bmc_endpoint(self) -> BMCEndpoint:
        """The resolved address and credentials; `connect.resolve_endpoint` runs before every phase that needs them."""
        if self.bmc_endpoint is None:
            raise RuntimeError("resolve_endpoint has not run")
        return self.bmc_endpoint

    async def contact(self, action: Callable[["Scope", BMCClient], Awaitable[None]]) -> None:
        """Run `action` with the BMC's client, within the deadline of one check. Raises BMCError."""
        limit = self.deps.settings.contact_timeout
        try:
            async with asyncio.timeout(limit):
                await action(self, self.deps.pool.get(self.require_bmc_endpoint()))
        except TimeoutError:
            raise BMCTimeout(f"the BMC at {self.address} did not finish within {limit:g} s") from None

    async def consume_operation(self) -> None:
        """Remove the operation annotation: it was carried out, or never can be."""
        await self.patch({"metadata": {"annotations": {self.context.kinds.key(OPERATION): None}}})

    def seconds_left(self, since: datetime | None, duration: float) -> float:
        """Seconds until `duration` seconds after `since`; 0 when that has passed or `since` is None."""
        if since is None:
            return 0.0
        return max(0.0, (since + timedelta(seconds=duration) - self.now).total_seconds())
