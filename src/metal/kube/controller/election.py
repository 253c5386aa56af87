"""Chooses one of several processes as the leader, by a Lease (coordination.k8s.io/v1), as client-go does.

What makes it safe: a candidate waits a whole lease duration, by its own clock, from the moment when it saw the last
change of the Lease; a leader counts its shorter deadline from before it sent the renewal that succeeded, and time for
which its machine was suspended counts, too. Times in the Lease are for people. Every write is guarded by
resourceVersion, so a request that arrives late changes nothing.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from metal.kube.cache.informer import Informer
from metal.kube.client.errors import AlreadyExists, ApiError, Conflict, NotFound, Unavailable
from metal.kube.client.protocol import Client
from metal.kube.meta.clock import Clock, micro_time
from metal.kube.meta.objects import Kind, Metadata
from metal.kube.meta.permissions import FOLLOW, Permission, Where

_log = structlog.get_logger(__name__)
_SOON = 0.1
"""Seconds before another try after a Conflict: somebody else is at it."""
_RELEASE_WITHIN = 1.0
"""Seconds that giving the Lease back may take; a Lease that is kept expires by itself."""
_GAP = 0.05
"""Seconds; less is what reading two clocks one after the other makes."""
_TICK = 0.01
"""Seconds that a standby waits at least: what is left of a Lease can be less than a clock can tell."""
_RELEASED = 1
"""leaseDurationSeconds of a Lease that was given back. The holder of one that somebody emptied may still act."""
PREDECESSOR = "unknown-predecessor"
"""Holder of a Lease that was not there: whoever had the deleted one may still act, so it has to be waited for."""


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
    """Which Lease, who we are, and times in seconds: lease_duration > renew_deadline > retry_period."""

    name: str
    namespace: str
    identity: str
    """Must be another one for each process that ever runs."""
    lease_duration: float = 10.0
    renew_deadline: float = 7.0
    retry_period: float = 1.5


def slept() -> float:
    """Seconds that this machine was suspended since it started, which the loop's clock leaves out."""
    boot = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(boot) - time.clock_gettime(time.CLOCK_MONOTONIC)


class Elector:
    """One candidate. `run` until cancelled, then `release`; `leader` and `require` are true to the instant.

    Args: on_lead is called when this process has become the leader, on_lose awaited when it is none any more; it must
    stop all work at once. What on_lose raises ends `run`. The attribute on_contact is called when the API is back.
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
        slept: Callable[[], float] = slept,
    ) -> None:
        self.settings = settings
        self.on_lead, self.on_lose = on_lead, on_lose
        self.on_contact: Callable[[], None] = lambda: None
        self._client, self._kind, self._clock, self._rng = client, kind, clock, rng
        self._slept, self._awake = slept, slept()
        self._deadline = float("-inf")
        self._version = ""
        self._seen_at = 0.0
        self._changed = asyncio.Event()
        self._follower = self._informer()
        self._trouble = ""
        self._waits_for = ""
        self._log = _log.bind(lease=f"{settings.namespace}/{settings.name}", identity=settings.identity)

    def __repr__(self) -> str:
        return f"<Elector {self.settings.identity} {'leader' if self.leader else 'standby'}>"

    @property
    def leader(self) -> bool:
        """Whether this process may act now."""
        return self._now() < self._deadline

    def _now(self) -> float:
        """The loop's time, and what the machine was suspended meanwhile."""
        gap = self._slept() - self._awake
        return asyncio.get_running_loop().time() + (gap if gap > _GAP else 0.0)

    def require(self) -> None:
        """Raises NotLeader unless this process is the leader: to be asked right before whatever could do harm."""
        if not self.leader:
            raise NotLeader(f"{self.settings.identity} is not the leader")

    async def run(self) -> None:
        """Stand by, lead, lose, and again, until cancelled: then it is no leader any more, but the Lease is kept."""
        following = asyncio.create_task(self._follower.run(), name="election/watch")
        try:
            while True:
                await self._stand_by()
                self._log.info("this process is the leader")
                self.on_lead()
                why = await self._lead()
                self._deadline = float("-inf")
                self._log.warning("this process is not the leader any more", why=why)
                if self.on_lose is not None:
                    await self.on_lose()
        finally:
            self._deadline = float("-inf")
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    async def release(self) -> None:
        """Give the Lease back, so that a standby takes over at once; only when `run` and all work have ended."""
        self._deadline = float("-inf")
        try:
            async with asyncio.timeout(_RELEASE_WITHIN):
                await self._give_back()
        except (ApiError, TimeoutError) as exc:
            self._log.warning("the Lease is not given back; it expires", error=str(exc) or type(exc).__name__)

    def _informer(self) -> Informer[Lease]:
        """A watch on the one Lease. It only wakes: what counts is read anew, so a dead watch costs time, not safety."""
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
            return self._rng.uniform(0.0, _SOON)
        except ApiError as exc:
            self._report(exc)
            return self.settings.retry_period * self._rng.uniform(0.5, 1.0)
        self._answered()
        return pause

    async def _acquire(self) -> float:
        """Take the Lease if nobody has it. Returns how long to wait otherwise."""
        try:
            lease = await self._read()
        except NotFound:
            await self._create(PREDECESSOR)
            return self.settings.lease_duration
        spec, now = lease.spec, asyncio.get_running_loop().time()
        # Whatever somebody wrote into the Lease: its leader may act for as long as ours would.
        left = self._seen_at + max(spec.lease_duration_seconds, self._duration) - now
        free = not spec.holder_identity and spec.lease_duration_seconds == _RELEASED
        if not free and spec.holder_identity != self.settings.identity and left > 0:
            self._tell_waiting(spec.holder_identity or "nobody, but it was not given back")
            return max(min(left, self.settings.retry_period * self._rng.uniform(1.0, 1.2)), _TICK)
        self._waits_for = ""
        ours = spec.holder_identity == self.settings.identity
        await self._patch(self._renewal() if ours else self._claim(spec.lease_transitions))
        return self.settings.retry_period

    async def _renew(self) -> float:
        """Renew the Lease that we have. Raises NotLeader when somebody else has it."""
        try:
            await self._patch(self._renewal())
        except (Conflict, NotFound):
            await self._recover()
        return self.settings.retry_period

    async def _recover(self) -> None:
        """The Lease is not as we left it: edited, deleted, or written by a request of ours whose answer was lost."""
        try:
            lease = await self._read()
        except NotFound:
            await self._create(self.settings.identity)
            return
        if lease.spec.holder_identity != self.settings.identity:
            raise NotLeader(f"the Lease is held by {lease.spec.holder_identity or 'nobody'}")
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

    async def _patch(self, spec: Mapping[str, Any]) -> None:
        sent = self._now()
        body = {"metadata": {"resourceVersion": self._version}, "spec": spec}
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
            self._log.info("there was no Lease; waiting in case that somebody had it", seconds=self._duration)

    async def _give_back(self) -> None:
        lease = await self._read()
        while lease.spec.holder_identity == self.settings.identity:
            spec = {"holderIdentity": "", "leaseDurationSeconds": _RELEASED, **self._renewal()}
            body = {"metadata": {"resourceVersion": lease.metadata.resource_version}, "spec": spec}
            try:
                await self._client.patch(self._kind, self.settings.name, body, self.settings.namespace)
            except Conflict:  # a renewal that was cut off has arrived after all
                lease = await self._read()
            else:
                self._log.info("the Lease is given back")
                return

    def _see(self, lease: Lease) -> None:
        if lease.metadata.resource_version != self._version:
            self._version = lease.metadata.resource_version
            self._seen_at = asyncio.get_running_loop().time()

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

    def _tell_waiting(self, holder: str) -> None:
        if holder != self._waits_for:
            self._waits_for = holder
            self._log.info("standing by", leader=holder)

    def _report(self, failure: ApiError) -> None:
        if type(failure).__name__ != self._trouble:
            self._trouble = type(failure).__name__
            self._log.warning("cannot reach the Lease, trying on", error=str(failure))

    def _answered(self) -> None:
        if self._trouble:
            self._trouble = ""
            self._follower.retry()
            self.on_contact()


def required_permissions(kind: Kind[Lease], name: str) -> tuple[Permission, ...]:
    """What an Elector does with the API: it makes the Lease when there is none, and no other."""
    why = "one of several processes acts, by a Lease"
    return (
        Permission(kind, ("create",), why, where=Where.HOME),
        Permission(kind, ("get", "patch", *FOLLOW), why, where=Where.HOME, names=(name,)),
    )
