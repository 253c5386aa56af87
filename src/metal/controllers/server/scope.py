"""One pass over one Server: what it knows, what it changes, and the one status patch on the way out."""

import asyncio
import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec

from metal.api.bmc import BMC as BMCObject
from metal.api.bmc import BMCSecret
from metal.api.claim import ServerBootConfiguration, ServerClaim
from metal.api.endpoint import Endpoint
from metal.api.kinds import Kinds
from metal.api.meta import Condition
from metal.api.server import Failure, Server, ServerStatus, State, Wait
from metal.bmc.protocols import BMC, Pool, SystemInfo
from metal.controllers.access import AccessDefaults
from metal.controllers.settings import ServerSettings
from metal.kube import conditions
from metal.kube.client import Client
from metal.kube.clock import Clock
from metal.kube.controller import Requeue
from metal.kube.events import Recorder
from metal.kube.informer import Informer
from metal.kube.mergepatch import diff
from metal.kube.objects import Key, key_of


@dataclass
class Memo:
    """What this process remembers of a server between passes. Losing it costs a request, never correctness."""

    observed_at: float = float("-inf")
    system: SystemInfo | None = None
    acted_at: float = float("-inf")
    checked_window: str = ""
    claims_refused: int = 0


@dataclass
class Deps:
    """What the reconciler works with; made once."""

    client: Client
    kinds: Kinds
    settings: ServerSettings
    clock: Clock
    rng: random.Random
    recorder: Recorder
    pool: Pool
    servers: Informer[Server]
    claims: Informer[ServerClaim]
    configs: Informer[ServerBootConfiguration]
    bmcs: Informer[BMCObject]
    secrets: Informer[BMCSecret]
    endpoints: Informer[Endpoint]
    access_defaults: AccessDefaults = field(default_factory=AccessDefaults)
    memos: dict[Key, Memo] = field(default_factory=dict)


class Scope:
    """One pass over one Server."""

    def __init__(self, deps: Deps, server: Server) -> None:
        self.deps = deps
        self.server = server
        self.status: ServerStatus = server.status
        self.memo = deps.memos.setdefault(key_of(server), Memo())
        now = deps.clock()
        self.now: datetime = now.replace(microsecond=now.microsecond // 1000 * 1000)
        self.bmc: BMC | None = None

    @property
    def name(self) -> str:
        """Name of the server."""
        return self.server.metadata.name

    @property
    def settings(self) -> ServerSettings:
        """Settings of the reconciler."""
        return self.deps.settings

    @property
    def uri(self) -> str:
        """The BMC's name for the system."""
        return self.server.spec.system_uri

    def connected(self) -> BMC:
        """The BMC; the phase before made sure that there is one."""
        if self.bmc is None:
            raise RuntimeError("this state needs a BMC")
        return self.bmc

    def set(self, **changes: Any) -> None:
        """Change fields of the pending status."""
        self.status = msgspec.structs.replace(self.status, **changes)

    def event(self, reason: str, message: str, *, warning: bool = False) -> None:
        """Tell people."""
        kind = "Warning" if warning else "Normal"
        self.deps.recorder.event(self.server, self.deps.kinds.server, kind, reason, message)

    def condition(self, type: str, status: bool, reason: str, message: str) -> None:
        """Set a condition; its time moves only when its status does."""
        new = Condition(
            type=type, status="True" if status else "False", reason=reason, message=message,
            observed_generation=self.server.metadata.generation,
        )  # fmt: skip
        self.set(conditions=conditions.set_condition(self.status.conditions, new, self.now))

    def find_condition(self, type: str) -> Condition | None:
        """The pending condition of this type."""
        return conditions.find(self.status.conditions, type)

    def go(self, state: State, message: str, *, warning: bool = False) -> Requeue:
        """Enter a state; the next pass begins at once."""
        self.set(
            state=state.value, since=self.now, wait=None, waiting_for="", power_request=None,
            failure=self.status.failure if state is State.ERROR else None,
        )  # fmt: skip
        self.event(state.value, message, warning=warning)
        return Requeue(0)

    def fail(self, reason: str, message: str) -> Requeue:
        """Enter Error: `message` says what failed, what was awaited, and what to do."""
        if self.status.state != State.ERROR:
            self.set(failure=Failure(state=self.status.state, reason=reason, message=message))
            self.go(State.ERROR, message, warning=True)
        self.set(waiting_for=f"{reason}: {message}")
        return Requeue(self.jitter(self.settings.resync))

    def wait(self, name: str, text: str, *, deadline: float | None = None, poll: float | None = None) -> Requeue:
        """Name what is awaited and until when (seconds from its beginning); come back at the deadline or after poll."""
        old = self.status.wait
        since = old.since if old and old.for_ == name and old.since else self.now
        until = since + timedelta(seconds=deadline) if deadline is not None else None
        self.set(wait=Wait(for_=name, since=since, until=until), waiting_for=text)
        left = (until - self.now).total_seconds() if until else self.settings.resync
        return Requeue(max(0.05, min(left, self.jitter(poll if poll is not None else self.settings.resync))))

    def overdue(self, name: str) -> bool:
        """True when the wait of this name has passed its deadline."""
        wait = self.status.wait
        return wait is not None and wait.for_ == name and wait.until is not None and self.now >= wait.until

    def no_wait(self) -> None:
        """Nothing is awaited."""
        self.set(wait=None, waiting_for="")

    def jitter(self, seconds: float) -> float:
        """The duration give or take a tenth, so that a fleet does not move in step."""
        return seconds * self.deps.rng.uniform(0.9, 1.1)

    async def observe(self, *, max_age: float | None = None) -> SystemInfo:
        """Read power, boot override and LED from the BMC, unless a reading is fresh enough. Raises BMCError."""
        limit = self.settings.observe_max_age if max_age is None else max_age
        loop_now = asyncio.get_running_loop().time()
        if self.memo.system is None or loop_now - self.memo.observed_at > limit:
            self.memo.system = await self.connected().system(self.uri)
            self.memo.observed_at = loop_now
        system = self.memo.system
        self.set(power_state=system.power_state.value, indicator_led=system.indicator_led)
        return system

    def stale(self) -> None:
        """The last reading is worth nothing any more."""
        self.memo.system = None

    async def commit(self) -> None:
        """Write the pending status now, guarded by resourceVersion. Raises Conflict, NotFound or another ApiError."""
        old, new = msgspec.to_builtins(self.server.status), msgspec.to_builtins(self.status)
        changes = diff(old, new)
        if not changes:
            return
        body = {"metadata": {"resourceVersion": self.server.metadata.resource_version}, "status": changes}
        self._adopt(await self.deps.client.patch_status(self.deps.kinds.server, self.name, body))

    async def patch(self, **changes: Any) -> None:
        """Change spec or metadata, guarded by resourceVersion; the pending status stays pending."""
        metadata = {**changes.pop("metadata", {}), "resourceVersion": self.server.metadata.resource_version}
        body = {"metadata": metadata, **changes}
        pending = self.status
        self._adopt(await self.deps.client.patch(self.deps.kinds.server, self.name, body))
        self.status = pending

    def _adopt(self, server: Server) -> None:
        self.server, self.status = server, server.status
        self.deps.servers.observe(server)

    def boot_config(self) -> ServerBootConfiguration | None:
        """The boot configuration that spec.bootConfigurationRef names."""
        ref = self.server.spec.boot_configuration_ref
        return self.deps.configs.get(Key(ref.name, ref.namespace)) if ref else None
