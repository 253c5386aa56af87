"""The event receiver without HTTP: authenticates deliveries and records them in the BMC's status.

A delivery names a BMC and its token; the digest of the token is in the BMC's status. An accepted delivery is answered
at once and queued; workers patch `status.lastEventTime` of the BMC, at most once in `pause` seconds, and that change
triggers a reconcile of its Servers on every replica. The content of an event is ignored: the controllers read the
state from the BMC. A lost write costs only the time until the next poll.
"""

import asyncio
import hmac
from dataclasses import dataclass

import structlog
from prometheus_client import CollectorRegistry

from metal.api.bmc import BMC
from metal.api.kinds import Kinds
from metal.kube.cache.informer import Informer
from metal.kube.client.errors import ApiError, NotFound, Unavailable
from metal.kube.client.protocol import Client
from metal.kube.controller.queue import WorkQueue
from metal.kube.meta.clock import Clock
from metal.kube.meta.objects import Key
from metal.kube.meta.permissions import Permission, follows
from metal.machine.boot_window import digest
from metal.machineapi import metrics
from metal.machineapi.http.refusals import Refusals
from metal.machineapi.http.response import Response, text

_log = structlog.get_logger(__name__)
_WRITERS = 8
"""Status patches in flight."""


@dataclass(frozen=True)
class ReceiverSettings:
    """Limits of event deliveries."""

    body: int = 1 << 20
    """Bytes of one delivery, which is received and discarded."""
    pause: float = 2.0
    """Seconds between two status patches of the same BMC, which bounds the reconciles that a faulty BMC causes."""


class EventReceiver:
    """Accepts event deliveries from BMCs and records the time of the last one in the BMC's status."""

    def __init__(
        self, client: Client, kinds: Kinds, bmcs: Informer[BMC], refusals: Refusals, *, clock: Clock,
        settings: ReceiverSettings | None = None, registry: CollectorRegistry | None = None,
    ) -> None:  # fmt: skip
        self._client, self._kinds, self._bmcs, self._clock = client, kinds, bmcs, clock
        self._refusals, self.settings = refusals, settings or ReceiverSettings()
        self._queue: WorkQueue[Key] = WorkQueue()
        self._noted: dict[Key, float] = {}
        self._counter = metrics.event_deliveries(registry or CollectorRegistry())

    def __repr__(self) -> str:
        return f"<EventReceiver {self._queue!r}>"

    def admit(self, name: str, token: str, client: str) -> Response | None:
        """None for a valid token of this BMC, else the refusal, which is the same for every reason.

        Raises Unavailable while the cache of BMCs is not synced.
        """
        bmc = self._bmcs.get(Key(name))
        if bmc is None and (self._bmcs.failure is not None or not self._bmcs.synced.is_set()):
            raise Unavailable("the cache of BMCs is not available")
        expected = bmc.status.event_token_digest if bmc is not None else ""
        if expected and hmac.compare_digest(expected, digest(token)):
            return None
        return self._refusals.refuse("events", "EventTokenInvalid", client, "no BMC has this name and token")

    def accept(self, name: str) -> Response:
        """Queue the status patch of this BMC."""
        self._counter.inc()
        key = Key(name)
        passed = asyncio.get_running_loop().time() - self._noted.get(key, float("-inf"))
        self._queue.add_after(key, max(0.0, self.settings.pause - passed))
        return text(200, "recorded")

    async def run(self) -> None:
        """Patch the status of queued BMCs until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(_WRITERS):
                group.create_task(self._work(), name=f"events-{number}")

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                await self._write(key)
            except ApiError as exc:
                delay = self._queue.add_rate_limited(key)
                _log.warning("event not recorded", bmc=key.name, error=str(exc), retry=delay)
            else:
                self._queue.forget(key)
            finally:
                self._queue.done(key)

    async def _write(self, key: Key) -> None:
        self._noted[key] = asyncio.get_running_loop().time()
        moment = self._clock().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        try:
            body = {"status": {"lastEventTime": moment}}
            self._bmcs.observe(await self._client.patch_status(self._kinds.bmc, key.name, body))
        except NotFound:
            self._noted.pop(key, None)


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """The permissions of the event receiver."""
    return (
        *follows(kinds.bmc, why="authenticates BMC events by the BMC's token"),
        Permission(kinds.bmc, ("patch",), "records the time of a BMC's last event", "status"),
    )
