"""Records core/v1 Events in the background; a repeated Event raises the count of the first one.

`event` puts an occurrence into one of a few queues ("lanes"), chosen by the object, and returns at once; `run` writes
them. Events of one object are in one lane and so stay in order, and a slow write delays one lane only. Occurrences with
the same object, type, reason and message within ten minutes are one series: the first creates an Event whose name
follows from these and the time window, so that another process continues the series instead of starting a second one.
Writes are retried a few times and then dropped and counted, because Events inform people and nothing depends on them.
"""

import asyncio
import hashlib
import zlib
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog

from metal.kube.client.errors import AlreadyExists, ApiError, NotFound, TooManyRequests, Unavailable
from metal.kube.client.protocol import Client
from metal.kube.controller.metrics import Metrics
from metal.kube.meta.clock import Clock, timestamp
from metal.kube.meta.objects import Kind, Object
from metal.kube.meta.permissions import Permission

_log = structlog.get_logger(__name__)
_WINDOW = timedelta(minutes=10)
_REMEMBERED = 4096
_LANES = 8
"""Events written at the same time; one at a time would fall behind a fleet that is being enrolled."""
_ATTEMPTS = 3
_MESSAGE_LIMIT = 1024


@dataclass(frozen=True)
class _Occurrence:
    """What makes two events the same, and when this one happened."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    type: str
    reason: str
    message: str
    at: datetime

    @property
    def identity(self) -> tuple[str, ...]:
        return self.kind, self.namespace, self.name, self.uid, self.type, self.reason, self.message

    @property
    def lane(self) -> int:
        """The same for all events of an object, and the same in every run."""
        return zlib.crc32(f"{self.kind}/{self.namespace}/{self.name}".encode()) % _LANES


@dataclass
class _Series:
    """An Event in the API, and its count."""

    name: str
    count: int
    last: datetime


class Recorder:
    """Accepts events without waiting and writes them from `run`; lost ones are counted in `dropped`.

    Only the kind passed as event_kind is written; its struct may expose `count`.
    """

    def __init__(
        self,
        client: Client,
        event_kind: Kind[Object],
        *,
        component: str,
        clock: Clock,
        limit: int = 10_000,
        metrics: Metrics | None = None,
    ) -> None:
        self.dropped = 0
        self._client, self._kind, self._component, self._clock = client, event_kind, component, clock
        self._limit = limit
        self._lanes: list[asyncio.Queue[_Occurrence]] = [asyncio.Queue() for _ in range(_LANES)]
        self._series: OrderedDict[tuple[str, ...], _Series] = OrderedDict()
        self._metrics = metrics
        self._failing = False

    def event(self, obj: Object, kind: Kind[Object], type: str, reason: str, message: str) -> None:
        """Record that something happened to obj. type is Normal or Warning, reason a CamelCase word."""
        meta = obj.metadata
        text = message if len(message) <= _MESSAGE_LIMIT else message[: _MESSAGE_LIMIT - 1] + "…"
        occurrence = _Occurrence(
            kind.api_version, kind.kind, meta.namespace, meta.name, meta.uid, type, reason, text, self._clock()
        )
        if sum(lane.qsize() for lane in self._lanes) >= self._limit:
            self._drop("the queue is full")
            return
        self._lanes[occurrence.lane].put_nowait(occurrence)

    async def run(self) -> None:
        """Write events until cancelled."""
        async with asyncio.TaskGroup() as group:
            for lane in self._lanes:
                group.create_task(self._drain(lane))

    async def _drain(self, lane: asyncio.Queue[_Occurrence]) -> None:
        """Events of one object are all in one lane, in their order."""
        while True:
            occurrence = await lane.get()
            try:
                await self._record(occurrence)
            finally:
                lane.task_done()

    async def flush(self) -> None:
        """Wait until every event so far is written or dropped. `run` must be running."""
        for lane in self._lanes:
            await lane.join()

    async def _record(self, occurrence: _Occurrence) -> None:
        for attempt in range(_ATTEMPTS):
            try:
                await self._write(occurrence)
            except (Unavailable, TooManyRequests) as exc:
                if attempt + 1 == _ATTEMPTS:
                    self._drop(str(exc))
                else:
                    await asyncio.sleep(max(exc.retry_after or 0.0, 2.0**attempt))
            except ApiError as exc:
                self._drop(str(exc))
                return
            except Exception as exc:  # one Event that cannot be written must not end all others
                self._drop(f"{type(exc).__name__}: {exc}")
                return
            else:
                self._written()
                return

    async def _write(self, occurrence: _Occurrence) -> None:
        series = self._series.get(occurrence.identity)
        if series is not None and occurrence.at - series.last <= _WINDOW:
            try:
                await self._count_up(occurrence, series)
                return
            except NotFound:
                pass  # the Event expired: create another one
        await self._begin(occurrence)

    async def _begin(self, occurrence: _Occurrence) -> None:
        name = _name(occurrence)
        body = _body(occurrence, name, self._component)
        try:
            await self._client.create(self._kind, body)
        except AlreadyExists:
            await self._continue(occurrence, name)
            return
        self._remember(occurrence, _Series(name, 1, occurrence.at))

    async def _continue(self, occurrence: _Occurrence, name: str) -> None:
        """Continue a series that an earlier process began in the same window."""
        there = await self._client.get(self._kind, name, _namespace(occurrence))
        await self._count_up(occurrence, _Series(name, int(getattr(there, "count", 1) or 1), occurrence.at))

    async def _count_up(self, occurrence: _Occurrence, series: _Series) -> None:
        patch = {"count": series.count + 1, "lastTimestamp": timestamp(occurrence.at)}
        await self._client.patch(self._kind, series.name, patch, _namespace(occurrence))
        self._remember(occurrence, _Series(series.name, series.count + 1, occurrence.at))

    def _remember(self, occurrence: _Occurrence, series: _Series) -> None:
        self._series[occurrence.identity] = series
        self._series.move_to_end(occurrence.identity)
        while len(self._series) > _REMEMBERED:
            self._series.popitem(last=False)

    def _written(self) -> None:
        if self._metrics is not None:
            self._metrics.events.labels("written").inc()
        if self._failing:
            self._failing = False
            _log.info("events are written again", dropped=self.dropped)

    def _drop(self, why: str) -> None:
        self.dropped += 1
        if self._metrics is not None:
            self._metrics.events.labels("dropped").inc()
        if not self._failing:
            self._failing = True
            _log.warning("dropping events", error=why)


def _namespace(occurrence: _Occurrence) -> str:
    return occurrence.namespace or "default"


def _name(occurrence: _Occurrence) -> str:
    """The same occurrence in the same window has the same name, also after a restart."""
    window = int(occurrence.at.timestamp() // _WINDOW.total_seconds())
    digest = hashlib.sha256("\0".join((*occurrence.identity, str(window))).encode()).hexdigest()[:16]
    return f"{occurrence.name[:236].rstrip('.-')}.{digest}"


def _body(occurrence: _Occurrence, name: str, component: str) -> dict[str, Any]:
    involved = {
        "apiVersion": occurrence.api_version,
        "kind": occurrence.kind,
        "name": occurrence.name,
        "namespace": occurrence.namespace,
        "uid": occurrence.uid,
    }
    return {
        "metadata": {"name": name, "namespace": _namespace(occurrence)},
        "involvedObject": {field: value for field, value in involved.items() if value},
        "type": occurrence.type,
        "reason": occurrence.reason,
        "message": occurrence.message,
        "source": {"component": component},
        "reportingComponent": component,
        "firstTimestamp": timestamp(occurrence.at),
        "lastTimestamp": timestamp(occurrence.at),
        "count": 1,
    }


def required_permissions(event_kind: Kind[Any]) -> tuple[Permission, ...]:
    """Permissions of a Recorder: Events are in the namespace of their object, in `default` for cluster-scoped ones."""
    return (Permission(event_kind, ("create", "get", "patch"), "records Events, and counts repeated ones up"),)
