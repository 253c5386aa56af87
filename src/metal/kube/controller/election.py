"""Chooses one of several processes as the leader, by a Lease (coordination.k8s.io/v1), as client-go does.

In come reads of one Lease and a watch on it; out go writes of the Lease and two calls: on_lead when this process
becomes the leader, on_lose when it stops being it. A candidate reads the Lease at each retry period. It takes a Lease
that is released, its own, or not renewed for a whole lease duration. A leader renews at each retry period and stops by
itself when no renewal succeeded within the renew deadline, which is shorter. The watch only wakes a candidate early;
every decision is made on the answer to a read, so a watch that breaks costs time and not safety.

What is remembered is local: the resourceVersion that was seen last and the time of this process's clock when it was
first seen (from which a candidate counts), and the time until which this process may act (which a leader counts from
before it sent the renewal that succeeded). Times inside the Lease are never compared, because clocks of machines
differ; time for which this machine was suspended counts. Every write carries the resourceVersion, so that a request
that arrives late changes nothing. Two leaders at one moment are impossible as long as clocks run at the same speed,
because the leader's deadline ends before any candidate's wait does.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import structlog

from metal.kube.cache.informer import Informer
from metal.kube.client.errors import AlreadyExists, ApiError, Conflict, NotFound, Unavailable
from metal.kube.client.protocol import Client
from metal.kube.meta.clock import Clock, micro_time
from metal.kube.meta.objects import Kind, Metadata
from metal.kube.meta.permissions import FOLLOW, Permission, Where

_log = structlog.get_logger(__name__)
_CONFLICT_DELAY = 0.1
"""Most seconds before another attempt after a Conflict: another candidate writes at the same time."""
_RELEASE_WITHIN = 1.0
"""Seconds that the release of the Lease may take; a Lease that is not released expires."""
_CLOCK_TOLERANCE = 0.05
"""Seconds; less is what reading two clocks one after the other makes."""
_MIN_WAIT = 0.01
"""Least seconds that a standby waits: the rest of a Lease can be shorter than the resolution of a clock."""
RELEASED = 1
"""leaseDurationSeconds of a Lease that was released. One that was emptied by hand has another: its holder may act."""
PREDECESSOR = "unknown-predecessor"
"""Holder of a Lease that was missing: the holder of a deleted one may still act, so candidates wait for it."""


class LeaseSpec(Protocol):
    """What is read of spec."""

    @property
    def holder_identity(self) -> str: ...
    @property
    def lease_duration_seconds(self) -> int: ...
    @property
    def lease_transitions(self) -> int: ...


class Lease(Protocol):
    """A coordination.k8s.io/v1 Lease."""

    @property
    def metadata(self) -> Metadata: ...
    @property
    def spec(self) -> LeaseSpec: ...


class NotLeader(Exception):
    """This process may not act: another one may be the leader by now."""


@dataclass(frozen=True)
class ElectionSettings:
    """The Lease, the identity of this process, and times in seconds: lease_duration > renew_deadline > retry_period."""

    name: str
    namespace: str
    identity: str
    """Unique among all processes that ever run."""
    lease_duration: float = 10.0
    renew_deadline: float = 7.0
    retry_period: float = 1.5
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Annotations that a new leader writes to the Lease, about itself."""


def suspended() -> float:
    """Seconds that this machine was suspended since it started, which the loop's clock leaves out."""
    boot = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(boot) - time.clock_gettime(time.CLOCK_MONOTONIC)


class Elector:
    """One candidate. `run` until cancelled, then `release`; `leader` and `require` compare with the clock at each call.

    Args: on_lead is called when this process becomes the leader, on_lose awaited when it stops being it; it must stop
    all work at once. What on_lose raises ends `run`. The attribute on_contact is called when the API answers again.
    """

    def __init__(
        self,
        client: Client,
        kind: Kind[Lease],
        settings: ElectionSettings,
        *,
        clock: Clock,
        rng: random.Random,
        on_lead: Callable[[], None] = lambda: None,
        on_lose: Callable[[], Awaitable[None]] | None = None,
        suspended: Callable[[], float] = suspended,
    ) -> None:
        self.settings = settings
        self.on_lead, self.on_lose = on_lead, on_lose
        self.on_contact: Callable[[], None] = lambda: None
        self.former: Lease | None = None
        """The Lease as it was before this process claimed it."""
        self._client, self._kind, self._clock, self._rng = client, kind, clock, rng
        self._suspended, self._suspended_before = suspended, suspended()
        self._deadline = float("-inf")
        self._has_run = False
        self._version = ""
        self._seen_at = 0.0
        self._held_transitions = 0
        self._changed = asyncio.Event()
        self._follower = self._informer()
        self._failure_type = ""
        self._waiting_for = ""
        self._log = _log.bind(lease=f"{settings.namespace}/{settings.name}", identity=settings.identity)

    def __repr__(self) -> str:
        return f"<Elector {self.settings.identity} {'leader' if self.leader else 'standby'}>"

    @property
    def leader(self) -> bool:
        """Whether this process may act now."""
        return self._now() < self._deadline

    def _now(self) -> float:
        """The loop's time plus the time for which the machine was suspended."""
        gap = self._suspended() - self._suspended_before
        return asyncio.get_running_loop().time() + (gap if gap > _CLOCK_TOLERANCE else 0.0)

    def require(self) -> None:
        """Raises NotLeader unless this process is the leader. Call it right before each action that needs the lead."""
        if not self.leader:
            raise NotLeader(f"{self.settings.identity} is not the leader")

    async def run(self) -> None:
        """Stand by, lead, stop leading, and again, until cancelled. The Lease is kept then; `release` releases it."""
        self._has_run = True
        following = asyncio.create_task(self._follower.run(), name="election/watch")
        try:
            while True:
                await self._stand_by()
                self._log.info("became leader")
                self.on_lead()
                why = await self._lead()
                self._deadline = float("-inf")
                self._log.warning("stopped leading", reason=why)
                if self.on_lose is not None:
                    await self.on_lose()
        finally:
            self._deadline = float("-inf")
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    async def release(self) -> None:
        """Release the Lease, so that a standby takes over at once; only after `run` and all work have ended.

        Nothing is done before the first `run`: the process never was a candidate.
        """
        self._deadline = float("-inf")
        if not self._has_run:
            return
        try:
            async with asyncio.timeout(_RELEASE_WITHIN):
                await self._release()
        except (ApiError, TimeoutError) as exc:
            self._log.warning("the Lease is not released; it expires", error=str(exc) or type(exc).__name__)

    def _informer(self) -> Informer[Lease]:
        """A watch on the one Lease, which only wakes `_wait`."""
        name, namespace = self.settings.name, self.settings.namespace
        fields = f"metadata.name={name}"
        informer = Informer(self._client, self._kind, namespace=namespace, fields=fields, rng=self._rng)
        informer.add_handler(self._note)
        return informer

    def _note(self, _: Lease | None, lease: Lease | None) -> None:
        if lease is None or lease.spec.holder_identity != self.settings.identity:
            self._changed.set()

    async def _stand_by(self) -> None:
        """Until this process has the Lease."""
        while True:
            self._changed.clear()
            pause = await self._attempt(self._acquire)
            if self.leader:
                return
            await self._wait(pause)

    async def _lead(self) -> str:
        """Until this process may not act any more; returns why."""
        pause = self.settings.retry_period
        while self.leader:
            await self._wait(min(pause, self._deadline - self._now()))
            self._changed.clear()
            try:
                async with asyncio.timeout(self._deadline - self._now()):
                    pause = await self._attempt(self._renew)
            except TimeoutError:
                break
            except NotLeader as exc:
                return str(exc)
        return f"the Lease was not renewed within {self.settings.renew_deadline:g} s"

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._changed.wait()

    async def _attempt(self, step: Callable[[], Awaitable[float]]) -> float:
        """One step; returns the seconds until the next one."""
        try:
            pause = await step()
        except (Conflict, AlreadyExists):
            return self._rng.uniform(0.0, _CONFLICT_DELAY)
        except ApiError as exc:
            self._report(exc)
            return self.settings.retry_period * self._rng.uniform(0.5, 1.0)
        self._answered()
        return pause

    async def _acquire(self) -> float:
        """Take the Lease if it is free. Returns how long to wait otherwise."""
        try:
            lease = await self._read()
        except NotFound:
            await self._create(PREDECESSOR)
            return self.settings.lease_duration
        spec, now = lease.spec, asyncio.get_running_loop().time()
        # A shorter duration in the Lease does not count: its holder may act for as long as this process would.
        left = self._seen_at + max(spec.lease_duration_seconds, self._duration) - now
        free = not spec.holder_identity and spec.lease_duration_seconds == RELEASED and not self._is_older(spec)
        if not free and spec.holder_identity != self.settings.identity and left > 0:
            self._log_standby(spec.holder_identity or "none, but the Lease was not released")
            return max(min(left, self.settings.retry_period * self._rng.uniform(1.0, 1.2)), _MIN_WAIT)
        self._waiting_for = ""
        if spec.holder_identity == self.settings.identity:
            await self._patch(self._renewal())
        else:
            self.former = lease
            await self._patch(self._claim(spec.lease_transitions), annotations=self.settings.annotations)
        return self.settings.retry_period

    async def _renew(self) -> float:
        """Renew the Lease. Raises NotLeader when another process holds it."""
        try:
            await self._patch(self._renewal())
        except (Conflict, NotFound):
            await self._recover()
        return self.settings.retry_period

    async def _recover(self) -> None:
        """The Lease has changed: edited, deleted, or written by a request of this process whose answer was lost."""
        try:
            lease = await self._read()
        except NotFound:
            await self._create(self.settings.identity)
            return
        if lease.spec.holder_identity != self.settings.identity:
            raise NotLeader(f"the Lease is held by {lease.spec.holder_identity or 'no process'}")
        await self._patch(self._renewal())

    async def _read(self) -> Lease:
        lease = await self._in_time(self._client.get(self._kind, self.settings.name, self.settings.namespace))
        self._see(lease)
        return lease

    async def _in_time(self, request: Coroutine[Any, Any, Lease]) -> Lease:
        """Two requests that are lost fit into the renewal deadline."""
        limit = self.settings.renew_deadline / 2.5
        try:
            async with asyncio.timeout(limit):
                return await request
        except TimeoutError:
            raise Unavailable(f"no answer within {limit:g} s") from None

    async def _patch(self, spec: Mapping[str, Any], **metadata: object) -> None:
        sent = self._now()
        body = {"metadata": {**metadata, "resourceVersion": self._version}, "spec": spec}
        request = self._client.patch(self._kind, self.settings.name, body, self.settings.namespace)
        self._see(await self._in_time(request))
        self._deadline = sent + self.settings.renew_deadline

    async def _create(self, holder: str) -> None:
        sent = self._now()
        metadata = {"name": self.settings.name, "namespace": self.settings.namespace}
        body = {"metadata": metadata, "spec": {**self._claim(-1), "holderIdentity": holder}}
        self._see(await self._in_time(self._client.create(self._kind, body)))
        if holder == self.settings.identity:
            self._deadline = sent + self.settings.renew_deadline
        else:
            self._log.info("the Lease is missing; its last holder may still act", seconds=self._duration)

    async def _release(self) -> None:
        lease = await self._read()
        while lease.spec.holder_identity == self.settings.identity:
            spec = {"holderIdentity": "", "leaseDurationSeconds": RELEASED, **self._renewal()}
            body = {"metadata": {"resourceVersion": lease.metadata.resource_version}, "spec": spec}
            try:
                await self._client.patch(self._kind, self.settings.name, body, self.settings.namespace)
            except Conflict:  # a renewal whose answer was not awaited has arrived
                lease = await self._read()
            else:
                self._log.info("the Lease is released")
                return

    def _see(self, lease: Lease) -> None:
        if lease.metadata.resource_version != self._version:
            self._version = lease.metadata.resource_version
            self._seen_at = asyncio.get_running_loop().time()

        if lease.spec.holder_identity:
            self._held_transitions = lease.spec.lease_transitions

    def _is_older(self, spec: LeaseSpec) -> bool:
        """Whether the Lease is that of a backup: it was released before its last holder got it, who may still act."""
        return spec.lease_transitions < self._held_transitions

    @property
    def _duration(self) -> int:
        return int(self.settings.lease_duration)

    def _renewal(self) -> dict[str, Any]:
        return {"renewTime": micro_time(self._clock())}

    def _claim(self, transitions: int) -> dict[str, Any]:
        now = micro_time(self._clock())
        return {
            "holderIdentity": self.settings.identity,
            "leaseDurationSeconds": self._duration,
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": transitions + 1,
        }

    def _log_standby(self, holder: str) -> None:
        if holder != self._waiting_for:
            self._waiting_for = holder
            self._log.info("standing by", leader=holder)

    def _report(self, failure: ApiError) -> None:
        if type(failure).__name__ != self._failure_type:
            self._failure_type = type(failure).__name__
            self._log.warning("cannot reach the Lease, retrying", error=str(failure))

    def _answered(self) -> None:
        if self._failure_type:
            self._failure_type = ""
            self._follower.retry()
            self.on_contact()


def required_permissions(kind: Kind[Lease], name: str) -> tuple[Permission, ...]:
    """Permissions of an Elector: it creates the Lease when it is missing, and no other."""
    why = "one of several processes acts, by a Lease"
    return (
        Permission(kind, ("create",), why, where=Where.HOME),
        Permission(kind, ("get", "patch", *FOLLOW), why, where=Where.HOME, names=(name,)),
    )
