"""The event receiver without HTTP: who may wake the Servers of a BMC, and how often that is written down."""

import asyncio
import hmac
from dataclasses import dataclass

import structlog
from prometheus_client import CollectorRegistry, Counter

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
from metal.machineapi.http.answer import Answer, text
from metal.machineapi.http.refusals import Refusals

_log = structlog.get_logger(__name__)
_WRITERS = 8
"""Notes that are written at the same time."""


@dataclass(frozen=True)
class ReceiverSettings:
    """What events may cost."""

    body: int = 1 << 20
    """Bytes of one delivery; it is received and thrown away."""
    pause: float = 2.0
    """Seconds between two notes about the same BMC: a BMC that raves costs a look at its machines every two seconds."""


class EventReceiver:
    """Takes deliveries from BMCs. That one came is written to the BMC's status, which wakes its Servers everywhere.

    It is answered before that is written: a note that is lost costs nothing but the time until the next poll.
    """

    def __init__(
        self, client: Client, kinds: Kinds, bmcs: Informer[BMC], refusals: Refusals, *, clock: Clock,
        settings: ReceiverSettings | None = None, registry: CollectorRegistry | None = None,
    ) -> None:  # fmt: skip
        self._client, self._kinds, self._bmcs, self._clock = client, kinds, bmcs, clock
        self._refusals, self.settings = refusals, settings or ReceiverSettings()
        self._queue: WorkQueue[Key] = WorkQueue()
        self._noted: dict[Key, float] = {}
        self._counter = Counter(
            "metal_bmc_event_deliveries", "Event deliveries of BMCs that were accepted.",
            registry=registry or CollectorRegistry(),
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"<EventReceiver {self._queue!r}>"

    def admit(self, name: str, token: str, client: str) -> Answer | None:
        """None for the holder of the BMC's token, else the refusal, the same for every reason: it tells nothing.

        Raises Unavailable while BMCs are not known.
        """
        bmc = self._bmcs.get(Key(name))
        if bmc is None and (self._bmcs.failure is not None or not self._bmcs.synced.is_set()):
            raise Unavailable("BMCs cannot be followed at the moment")
        expected = bmc.status.event_token_digest if bmc is not None else ""
        if expected and hmac.compare_digest(expected, digest(token)):
            return None
        return self._refusals.refuse("events", "EventTokenInvalid", client, "no BMC has this name and token")

    def accept(self, name: str) -> Answer:
        """Note that something happened there; what it was is for the machines' own controllers to find out."""
        self._counter.inc()
        key = Key(name)
        passed = asyncio.get_running_loop().time() - self._noted.get(key, float("-inf"))
        self._queue.add_after(key, max(0.0, self.settings.pause - passed))
        return text(200, "noted")

    async def run(self) -> None:
        """Write what was noted, for ever."""
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
                _log.warning("an event could not be noted", bmc=key.name, error=str(exc), retry=delay)
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
    """What the receiver does with the API."""
    return (
        *follows(kinds.bmc, why="BMCs are known by the token of their events"),
        Permission(kinds.bmc, ("patch",), "notes that a BMC sent an event", "status"),
    )
