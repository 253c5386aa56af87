"""One pass over one Server: what it knows, what it changes, and the one status patch on the way out."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from metal.api.bmc import BMC as BMCObject
from metal.api.bmc import BMCSecret
from metal.api.claim import ServerBootConfiguration, ServerClaim
from metal.api.endpoint import Endpoint
from metal.api.meta import Condition
from metal.api.server import Failure, Server, ServerStatus, State, Wait
from metal.bmc.protocols import BMC, Pool, SystemInfo
from metal.controllers.access import AccessDefaults
from metal.controllers.scope import Context, StatusScope
from metal.controllers.settings import ServerSettings
from metal.kube import conditions
from metal.kube.controller import Requeue
from metal.kube.informer import Informer
from metal.kube.objects import Key, key_of


@dataclass
class Memo:
    """What this process remembers of a server between passes. Losing it costs a request, never correctness."""

    observed_at: float = float("-inf")
    system: SystemInfo | None = None
    acted_at: float = float("-inf")
    checked_window: str = ""


@dataclass
class Deps:
    """What the reconciler works with; made once."""

    context: Context
    settings: ServerSettings
    pool: Pool
    servers: Informer[Server]
    claims: Informer[ServerClaim]
    configs: Informer[ServerBootConfiguration]
    bmcs: Informer[BMCObject]
    secrets: Informer[BMCSecret]
    endpoints: Informer[Endpoint]
    access_defaults: AccessDefaults = field(default_factory=AccessDefaults)
    memos: dict[Key, Memo] = field(default_factory=dict)


class Scope(StatusScope[Server]):
    """One pass over one Server. Events are sent with the status that they tell of, never before."""

    status: ServerStatus

    def __init__(self, deps: Deps, server: Server) -> None:
        super().__init__(deps.context, deps.context.kinds.server, deps.servers, server, ServerStatus())
        now = deps.context.clock()
        self.now: datetime = now.replace(microsecond=now.microsecond // 1000 * 1000)
        self.deps = deps
        self.memo = deps.memos.setdefault(key_of(server), Memo())
        self.bmc: BMC | None = None
        self._told: list[tuple[str, str, str]] = []

    @property
    def server(self) -> Server:
        """The server as it was last read or written."""
        return self.obj

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

    def tell(self, reason: str, message: str, *, warning: bool = False) -> None:
        """Record an Event on the server, once the status it tells of is written."""
        self._told.append(("Warning" if warning else "Normal", reason, message))

    def find_condition(self, type: str) -> Condition | None:
        """The pending condition of this type."""
        return conditions.find(self.status.conditions, type)

    def go(self, state: State, message: str, *, warning: bool = False) -> Requeue:
        """Enter a state; the next pass begins at once."""
        self.set(
            state=state.value, since=self.now, wait=None, waiting_for="", power_request=None,
            failure=self.status.failure if state is State.ERROR else None,
        )  # fmt: skip
        self.tell(state.value, message, warning=warning)
        return Requeue(0)

    def fail(self, reason: str, message: str) -> Requeue:
        """Enter Error: `message` says what failed, what was awaited, and what to do."""
        if self.status.state != State.ERROR:
            self.set(failure=Failure(state=self.status.state, reason=reason, message=message))
            self.go(State.ERROR, message, warning=True)
        self.set(waiting_for=f"{reason}: {message}")
        return Requeue(self.context.jitter(self.settings.resync))

    def wait(self, name: str, text: str, *, deadline: float | None = None, poll: float | None = None) -> Requeue:
        """Name what is awaited and until when (seconds from its beginning); come back at the deadline or after poll."""
        old = self.status.wait
        since = old.since if old and old.for_ == name and old.since else self.now
        until = since + timedelta(seconds=deadline) if deadline is not None else None
        self.set(wait=Wait(for_=name, since=since, until=until), waiting_for=text)
        left = (until - self.now).total_seconds() if until else self.settings.resync
        return Requeue(max(0.05, min(left, self.context.jitter(poll if poll is not None else self.settings.resync))))

    def overdue(self, name: str) -> bool:
        """True when the wait of this name has passed its deadline."""
        wait = self.status.wait
        return wait is not None and wait.for_ == name and wait.until is not None and self.now >= wait.until

    def no_wait(self) -> None:
        """Nothing is awaited."""
        self.set(wait=None, waiting_for="")

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
        await super().commit()
        told, self._told = self._told, []
        for kind, reason, message in told:
            self.event(kind, reason, message)

    def boot_config(self) -> ServerBootConfiguration | None:
        """The boot configuration that spec.bootConfigurationRef names."""
        ref = self.server.spec.boot_configuration_ref
        return self.deps.configs.get(Key(ref.name, ref.namespace)) if ref else None
