"""One pass over one BMC, and what the passes work with."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from metal.api.bmc import BMC, BMCSecret, BMCStatus
from metal.api.endpoint import Endpoint
from metal.api.names import OPERATION
from metal.api.server import Server
from metal.bmc.pool import BMCEndpoint, Pool
from metal.bmc.shell import Shell
from metal.bmc.systems import SystemInfo
from metal.controllers.bmc.dns_template import Template
from metal.controllers.bmc.settings import BMCSettings
from metal.controllers.shared.bmc_endpoint import BMCEndpointDefaults
from metal.controllers.shared.scope import Context, StatusScope
from metal.kube.cache.informer import Informer
from metal.kube.client.backoff import Backoff
from metal.kube.client.discovery import Discovery
from metal.kube.meta.objects import Key, key_of

BY_UUID = "system-uuid"
"""Index of Servers by the UUID of their system."""


@dataclass
class Memo:
    """What this process remembers of a BMC. Losing it costs a request, never correctness."""

    backoff: Backoff
    refused: BMCEndpoint | None = None
    access: BMCEndpoint | None = None
    """The last one that was complete: Endpoint and BMCSecret may be deleted before their BMC."""
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    subscribed_at: float = float("-inf")
    record: tuple[dict[str, Any], str] | None = None
    """The DNS record that was applied last, and the resourceVersion that it had then."""


@dataclass
class Deps:
    """What the reconciler works with; made once."""

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
    """That of DNS records."""
    new_token: Callable[[], str] = lambda: secrets.token_urlsafe(32)
    """For the path that a BMC sends its events to: nobody can guess it."""
    memos: dict[Key, Memo] = field(default_factory=dict)

    def memo(self, key: Key) -> Memo:
        """What is remembered of this BMC."""
        if key not in self.memos:
            backoff = Backoff(self.context.rng, base=self.settings.retry, cap=self.settings.interval)
            self.memos[key] = Memo(backoff)
        return self.memos[key]


class Scope(StatusScope[BMC]):
    """One pass over one BMC."""

    def __init__(self, deps: Deps, bmc: BMC) -> None:
        super().__init__(deps.context, deps.context.kinds.bmc, deps.bmcs, bmc, BMCStatus())
        self.deps = deps
        self.memo = deps.memo(key_of(bmc))
        self.access: BMCEndpoint | None = None
        self.systems: tuple[SystemInfo, ...] = ()

    @property
    def operation(self) -> str:
        """What the operation annotation asks for, or empty."""
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
        """Where the BMC is, as far as that is known."""
        return self.access.address if self.access else self.status.ip or ""

    def connected(self) -> BMCEndpoint:
        """The access; the phase before made sure that there is one."""
        if self.access is None:
            raise RuntimeError("the access phase has not run")
        return self.access

    async def consume_operation(self) -> None:
        """Remove the operation annotation: it has been obeyed, or never can be."""
        await self.patch({"metadata": {"annotations": {self.context.kinds.key(OPERATION): None}}})

    def seconds_left(self, since: datetime | None, duration: float) -> float:
        """Seconds until `duration` seconds after a moment of the API; 0 when it has passed or never was."""
        if since is None:
            return 0.0
        return max(0.0, (since + timedelta(seconds=duration) - self.now).total_seconds())
