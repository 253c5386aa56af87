"""One pass over one Server: what it knows, what it changes, and the one status patch at its end."""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from metal.api.bmc import BMC as BMCObject
from metal.api.bmc import BMCSecret
from metal.api.boot_window import Phase, Purpose
from metal.api.claim import ServerBootConfiguration, ServerClaim
from metal.api.common import ObjectRef
from metal.api.endpoint import Endpoint
from metal.api.maintenance import ServerMaintenance
from metal.api.meta import Condition
from metal.api.names import OPERATION
from metal.api.sanitization import SanitizationEvidence
from metal.api.server import Failure, Server, ServerStatus, State, Wait
from metal.api.tenancy import Tenancy
from metal.bmc.boot import BootOverride
from metal.bmc.pool import BMC, BMCEndpoint, Pool
from metal.bmc.power import PowerState
from metal.bmc.systems import SystemInfo
from metal.controllers.server import clock_jump, system_check
from metal.controllers.server.reasons import ConditionType, WaitFor, purpose_of_retry, summary
from metal.controllers.server.settings import ServerSettings
from metal.controllers.server.traits import WAITS, traits_of
from metal.controllers.shared import bmc_events
from metal.controllers.shared.access.bmc_endpoint import BMCEndpointDefaults
from metal.controllers.shared.scope import Context, StatusScope
from metal.evidence.keys import KeyStore
from metal.kube.cache.informer import Informer
from metal.kube.controller.controller import Requeue
from metal.kube.meta import conditions
from metal.kube.meta.objects import Key, key_of
from metal.machine import boot_window, tenancy
from metal.machine.system_lease import SystemLeases

_LEARNED = frozenset({
    "power_state", "indicator_led", "manufacturer", "model", "sku", "serial_number", "bios_version",
    "total_system_memory", "processors", "storages", "network_interfaces", "failing_operations",
})  # fmt: skip
"""Fields that only repeat what the BMC showed."""
_PROGRESS = frozenset({"waiting_for", "wait", "conditions", "sanitization_progress"})
"""Fields that describe the pass, and are true unless it also decided something."""


@dataclass
class Memo:
    """What this process remembers of a server between passes. Its loss costs a request, never correctness."""

    observed_at: float = float("-inf")
    system: SystemInfo | None = None
    acted_at: float = float("-inf")
    poll_at: float = float("-inf")
    reset_at: float = float("-inf")
    checked_window: str = ""
    contact_at: float = float("-inf")
    """When the BMC is asked for its system again after it did not answer, as time of the loop."""
    verified: tuple[BMCEndpoint | None, str] | None = None
    """Where the Server's own system was read last: another address may be that of another machine."""
    record_compared: datetime | None = None
    """`since` of the record of tenancy that was last compared with its copy in the Lease of the machine."""
    compared: dict[str, float] = field(default_factory=dict)
    """When this Server was first compared with a Server with a tenancy, by its UID, as time of the loop."""


@dataclass
class Deps:
    """What the reconciler works with; created once."""

    context: Context
    settings: ServerSettings
    pool: Pool
    servers: Informer[Server]
    claims: Informer[ServerClaim]
    configs: Informer[ServerBootConfiguration]
    bmcs: Informer[BMCObject]
    secrets: Informer[BMCSecret]
    endpoints: Informer[Endpoint]
    maintenances: Informer[ServerMaintenance]
    owed: Informer[SanitizationEvidence]
    keys: KeyStore
    endpoint_defaults: BMCEndpointDefaults = field(default_factory=BMCEndpointDefaults)
    memos: dict[Key, Memo] = field(default_factory=dict)
    erasure_wave: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the adopted servers that are being erased are counted and one joins them. Its write is in the cache
    of servers before the lock is released."""
    leases: SystemLeases = field(init=False)

    def __post_init__(self) -> None:
        context = self.context
        self.leases = SystemLeases(context.client, context.kinds, self.settings.namespace, context.clock)

    def count_cleanup(self, sanitization: str) -> None:
        """Count a server that left Cleanup, by the result of its sanitization."""
        self.context.metrics.recycled.labels(sanitization).inc()


class Scope(StatusScope[Server]):
    """One pass over one Server. Events are sent after the status that they report is written, never before."""

    status: ServerStatus

    def __init__(self, deps: Deps, server: Server) -> None:
        super().__init__(deps.context, deps.context.kinds.server, deps.servers, server, ServerStatus())
        now = deps.context.clock()
        self.now: datetime = now.replace(microsecond=now.microsecond // 1000 * 1000)
        self.status = clock_jump.corrected(self.status, self.now)
        self.deps = deps
        self.memo = deps.memos.setdefault(key_of(server), Memo())
        self.bmc: BMC | None = None
        self.endpoint: BMCEndpoint | None = None
        self.client: BMC | None = None
        self.attempted: set[str] = set()
        """Operations on the BMC that this pass has sent or postponed."""
        self.has_contact = False
        """Whether the BMC has shown a system in this pass."""
        self.is_blocked = False
        """Whether the BMC prevented the pass from acting on the present spec."""
        self.generation_observed = False  # until the pass has ended
        self._events: list[tuple[str, str, str]] = []
        self._is_latest = False
        self._is_in_charge = False
        self._settings = _slower(deps, server, self.now)

    @property
    def server(self) -> Server:
        """The server as it was last read or written."""
        return self.obj

    @property
    def settings(self) -> ServerSettings:
        """Settings of the reconciler; an idle server is polled less often while its BMC sends events."""
        return self._settings

    @property
    def uri(self) -> str:
        """The BMC's name for the system."""
        return self.server.spec.system_uri

    @property
    def tenancy(self) -> Tenancy:
        """The record of tenancy, as it is pending."""
        return tenancy.read(self.server.spec, self.status)

    def connected(self) -> BMC:
        """The BMC, which `connect.run` has attached."""
        if self.bmc is None:
            raise RuntimeError("this state needs a BMC")
        return self.bmc

    def unrecorded(self) -> BMC:
        """The BMC without the record of failing operations, for requests that have a record of their own."""
        if self.client is None:
            raise RuntimeError("this state needs a BMC")
        return self.client

    def record_event(self, reason: str, message: str, *, warning: bool = False) -> None:
        """Record an Event on the server after the status that it reports is written."""
        self._events.append(("Warning" if warning else "Normal", reason, message))

    def bmc_was_unreachable(self) -> bool:
        """True in the first pass after an outage: a deadline that passed during the outage does not count."""
        known = self.find_condition(ConditionType.BMC_REACHABLE)
        return known is not None and known.status == "False"

    def find_condition(self, type: str) -> Condition | None:
        """The pending condition of this type."""
        return conditions.find(self.status.conditions, type)

    def transition(self, state: State, message: str, *, warning: bool = False) -> Requeue:
        """Enter a state; the next pass begins at once."""
        if traits_of(state).closes_boot_window and not self._is_erasing(state):
            self.close_window()
        self.set(
            state=state.value, since=self.now, wait=None, waiting_for="", power_request=None,
            failure=self.status.failure if state is State.ERROR else None,
        )  # fmt: skip
        self.condition(ConditionType.READY, False, state.value, message)
        self.record_event(state.value, message, warning=warning)
        return Requeue(0)

    def _is_erasing(self, state: State) -> bool:
        """True for the boot of an erasure that Cleanup continues, after an outage of the BMC."""
        window = self.status.boot_window
        return state is State.CLEANUP and window is not None and window.purpose == Purpose.SANITIZATION

    def fail(self, reason: str, message: str, operation: str = "") -> Requeue:
        """Enter Error: `message` says what failed, what was awaited, and what to do; the retry command is added.

        Its first sentence is what `status.waitingFor` has. `operation` is the operation on the BMC that failed, if it
        was one.
        """
        annotation = f"{self.context.kinds.key(OPERATION)}=retry"
        retry = f"{purpose_of_retry(reason)}: kubectl annotate servers {self.name} {annotation}"
        message = f"{message.rstrip('.')}. {retry}"
        if self.status.state != State.ERROR:
            failure = Failure(state=self.status.state, operation=operation, reason=reason, message=message)
            self.set(failure=failure)
            self.transition(State.ERROR, message, warning=True)
            self.condition(ConditionType.READY, False, reason, message)
        self.set(waiting_for=summary(reason, message))
        return Requeue(self.context.jitter(self.settings.resync))

    def wait(
        self,
        name: WaitFor,
        text: str,
        *,
        deadline: float | None = None,
        until: datetime | None = None,
        poll: float | None = None,
        since: datetime | None = None,
    ) -> Requeue:
        """Name what is awaited, and until when: `until`, or `deadline` seconds after this wait began (`since`).

        The next pass is after `poll` seconds, or at the deadline. `traits.WAITS` has the defaults of both. The
        caller decides what a missed deadline means.
        """
        old = self.status.wait
        if since is None:
            since = min(old.since, self.now) if old and old.for_ == name and old.since else self.now
        end = until if until is not None else self._deadline(name, since, deadline)
        self.set(wait=Wait(for_=name.value, since=since, until=end), waiting_for=text)
        if self.status.state != State.ERROR:
            self.condition(ConditionType.READY, False, name, text)
        pause = self.context.jitter(getattr(self.settings, WAITS[name].poll) if poll is None else poll)
        left = (end - self.now).total_seconds() if end is not None else 0.0
        return Requeue(min(pause, max(left, 0.05)) if left > 0 else pause)

    def _deadline(self, name: WaitFor, since: datetime, seconds: float | None) -> datetime | None:
        setting = WAITS[name].deadline
        if seconds is None and setting:
            seconds = getattr(self.settings, setting)
        return since + timedelta(seconds=seconds) if seconds is not None else None

    def overdue(self, name: WaitFor) -> bool:
        """True when the wait of this name has passed its deadline."""
        wait = self.status.wait
        return wait is not None and wait.for_ == name and wait.until is not None and self.now >= wait.until

    def clear_wait(self) -> None:
        """Nothing is awaited."""
        self.set(wait=None, waiting_for="")

    def close_window(self) -> None:
        """Serve nothing more to the machine, unless its boot has succeeded."""
        window = self.status.boot_window
        if window is not None and window.phase not in (Phase.SUCCEEDED, Phase.CLOSED):
            self.set(boot_window=boot_window.close(window))

    async def observe(self, *, max_age: float | None = None) -> SystemInfo:
        """Read power, boot override and LED from the BMC, unless the last reading is recent enough. Raises BMCError."""
        limit = self.settings.observe_max_age if max_age is None else max_age
        loop_now = asyncio.get_running_loop().time()
        source = (self.endpoint, self.uri)
        if self.memo.system is None or self.memo.verified != source or loop_now - self.memo.observed_at > limit:
            self.memo.verified = None
            self.memo.system = system_check.require(self.server, await self.connected().system(self.uri))
            self.memo.observed_at, self.memo.verified = loop_now, source
        system = self.memo.system
        self.set(power_state=system.power_state.value, indicator_led=system.indicator_led)
        if system.power_state is PowerState.ON:
            self.set(on_requested_at=None)
        return system

    async def verify_system(self) -> None:
        """Make sure that the BMC at the present address shows this Server's system. Raises BMCError."""
        if self.memo.verified != (self.endpoint, self.uri):
            await self.observe(max_age=0.0)

    def record_override(self, override: BootOverride) -> None:
        """The override as it was read back after a write; the rest of the last reading stays valid."""
        if self.memo.system is not None:
            self.memo.system = replace(self.memo.system, boot=override)

    def invalidate(self) -> None:
        """Discard the last reading."""
        self.memo.system = None

    async def commit(self) -> None:
        """Write the pending status now, guarded by resourceVersion. Raises Conflict, NotFound or another ApiError."""
        before = self.obj
        await super().commit()
        self._is_latest = self._is_latest or self.obj is not before
        events, self._events = self._events, []
        for kind, reason, message in events:
            self.event(kind, reason, message)

    async def patch(self, changes: dict[str, Any]) -> None:
        """Change metadata or spec now, guarded by resourceVersion; the pending status stays pending."""
        await super().patch(changes)
        self._is_latest = True

    def keep_learned(self) -> None:
        """Keep observations. A decision, such as another state, is kept only with the requests that belong to it."""
        super().keep_learned()
        old, new = self.server.status, self.status
        changed = {name for name in new.__struct_fields__ if getattr(old, name) != getattr(new, name)}
        if changed - _LEARNED - _PROGRESS:
            self._events.clear()
            learned = {name: getattr(new, name) for name in changed & _LEARNED}
            self.status = msgspec.structs.replace(old, **learned)

    async def require_latest(self) -> None:
        """Have the API confirm, once in a pass, that this is the newest version of the server, and in charge.

        Raises Conflict, NotInCharge and Unidentified.

        Required before anything that could harm a tenant: a process that lost its leadership may act on an old cache.
        """
        await self.commit()
        if not self._is_latest:
            await self.patch({})
        await self.require_in_charge()

    async def require_in_charge(self, *, again: bool = False) -> None:
        """Have the API confirm, once in a pass, that this Server acts on its machine, and no other Server.

        The Lease that confirms it has a copy of the record of tenancy, which is brought up to date: also later in a
        pass that has changed the record, with `again`. Raises NotInCharge, Unidentified, RecordOutdated, Conflict and
        ApiError.
        """
        if again or not self._is_in_charge:
            await self.deps.leases.require(self.server, self.status)
            self._is_in_charge = True
        self.memo.record_compared = self.tenancy.since

    def boot_config(self) -> ServerBootConfiguration | None:
        """The boot configuration that spec.bootConfigurationRef names."""
        return self._config(self.server.spec.boot_configuration_ref)

    def maintenance_config(self) -> ServerBootConfiguration | None:
        """The boot configuration that spec.maintenanceBootConfigurationRef names."""
        return self._config(self.server.spec.maintenance_boot_configuration_ref)

    def _config(self, ref: ObjectRef | None) -> ServerBootConfiguration | None:
        return self.deps.configs.get(Key(ref.name, ref.namespace)) if ref else None


def _slower(deps: Deps, server: Server, now: datetime) -> ServerSettings:
    settings, ref = deps.settings, server.spec.bmc_ref
    bmc = deps.bmcs.get(Key(ref.name)) if ref is not None and settings.event_slowdown > 1 else None
    if bmc is None or not bmc_events.received_recently(bmc.status, now, settings.event_max_age):
        return settings
    return replace(settings, resync=settings.resync * settings.event_slowdown)
