"""Runs a reconcile function over keys from informers, with workers, backoff and a deadline for each call.

In come changes: `watches` maps each change that an informer reports to keys of the reconciled kind (the object itself,
its owner, an object that it names), and the queue holds every key once. A fixed number of workers take keys. Each calls
reconcile(key), which reads the present state from caches, acts, and returns Done or Requeue(after). A status write of
the controller itself causes no pass (`watches_own`).

Nothing is remembered about a change, only that there was one: reconcile is level-triggered and must come to the same
result whether it saw every change or the last alone. After an exception the key returns with a backoff that doubles,
after a Conflict likewise but without a warning (the object was written meanwhile, and its newer version is on its way).
A call that exceeds the deadline is cancelled and counts as failed, so that one BMC or API that hangs costs one worker
for a bounded time. `stop` ends the workers after the calls in progress; `reopen` queues every object again, because
changes meanwhile were not recorded.
"""

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog
from prometheus_client import CollectorRegistry

from metal.kube.cache.informer import Informer
from metal.kube.client.errors import ApiError, Conflict, ServerError, TooManyRequests, Unavailable
from metal.kube.controller.metrics import Metrics
from metal.kube.controller.own_writes import OwnWrites
from metal.kube.controller.predicates import spec_or_metadata_changed
from metal.kube.controller.queue import QueueShutDown, WorkQueue
from metal.kube.meta.objects import Key, Kind, Object, key_of

T = TypeVar("T", bound=Object)

_log = structlog.get_logger(__name__)
_TRANSIENT = (TooManyRequests, ServerError, Unavailable)
"""Errors of the API that say nothing about the object."""
_LONGEST_AFTER_API = 10.0
"""Longest pause after one of them, in seconds. Where the API fails one request in five, a pass of five requests fails
two times in three, and some object fails ten times in a row. It must not wait for the minute that a permanent failure
reaches."""


@dataclass(frozen=True)
class Done:
    """Nothing to do until something changes."""


@dataclass(frozen=True)
class Requeue:
    """Reconcile again after so many seconds, or earlier if something changes."""

    after: float


Result = Done | Requeue
Reconcile = Callable[[Key], Awaitable[Result]]
Mapper = Callable[[T], Iterable[Key]]
Predicate = Callable[[T | None, T | None], bool]
ChangeMapper = Callable[[T | None, T | None], Iterable[Key]]


def own_key(obj: Object) -> Iterable[Key]:
    """Maps an object to its own key."""
    return (key_of(obj),)


def owner_keys(owner_kind: Kind[Object]) -> Callable[[Object], list[Key]]:
    """A mapping from an object to the key of its controlling owner, when that is of owner_kind (of any version)."""

    def keys(obj: Object) -> list[Key]:
        namespace = obj.metadata.namespace if owner_kind.namespaced else ""
        return [
            Key(ref.name, namespace)
            for ref in obj.metadata.owner_references
            if ref.controller and ref.kind == owner_kind.kind and _group(ref.api_version) == owner_kind.group
        ]

    return keys


def _group(api_version: str) -> str:
    group, slash, _ = api_version.partition("/")
    return group if slash else ""


class Controller:
    """Calls a reconcile function with keys, each key in one worker at a time.

    An exception is retried with backoff, a Conflict quietly so. `deadline` (seconds) cancels a call that hangs. `order`
    ranks keys that are ready at the same time.
    """

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        *,
        workers: int = 4,
        deadline: float = 60.0,
        rng: random.Random | None = None,
        metrics: Metrics | None = None,
        order: Callable[[Key], Any] | None = None,
    ) -> None:
        self.name = name
        self.informers: list[Informer[Object]] = []
        self._mappings: list[Callable[[], None]] = []
        self._ended: list[Callable[[Key], None]] = []
        self.queue: WorkQueue[Key] = WorkQueue(rng=rng, order=order)
        self._reconcile, self._workers, self._deadline = reconcile, workers, deadline
        self._log = _log.bind(controller=name)
        self._metrics = metrics or Metrics(CollectorRegistry())
        self._metrics.add_controller(name, workers, self.queue)
        self._seconds, self._active = self._metrics.seconds.labels(name), self._metrics.active.labels(name)

    def __repr__(self) -> str:
        return f"<Controller {self.name} workers={self._workers} {self.queue!r}>"

    def watches(
        self, informer: Informer[T], map: Mapper[T] | None = None, predicate: Predicate[T] | None = None
    ) -> None:
        """Queue the keys that `map` gives for the old and the new object of each change that `predicate` lets pass.

        Without map it is the object's own key.
        """
        mapper: Mapper[T] = map or own_key

        def keys(old: T | None, new: T | None) -> Iterable[Key]:
            if predicate is not None and not predicate(old, new):
                return ()
            return [key for obj in (old, new) if obj is not None for key in mapper(obj)]

        self.watches_changes(informer, keys)

    def watches_own(self, informer: Informer[T], own: OwnWrites, map: Mapper[T] | None = None) -> None:
        """As `watches`, for the reconciled kind itself, whose status the controller writes: own writes queue nothing.

        A change of the status alone that arrives during the object's own pass may be the write of that pass; it is
        judged when the pass has ended.
        """
        mapper: Mapper[T] = map or own_key
        undecided: dict[Key, list[T]] = {}

        def keys(old: T | None, new: T | None) -> Iterable[Key]:
            if new is None and old is not None:
                own.forget(key_of(old))
            if old is None or new is None or spec_or_metadata_changed(old, new):
                return [key for obj in (old, new) if obj is not None for key in mapper(obj)]
            if own.wrote(new):
                return ()
            if self.queue.is_processing(key_of(new)):
                undecided.setdefault(key_of(new), []).append(new)
                return ()
            return mapper(new)

        def decide(key: Key) -> None:
            for obj in undecided.pop(key, ()):
                if not own.wrote(obj):
                    for found in mapper(obj):
                        self.queue.add(found)

        own.serve(self.queue.add_after)
        self._ended.append(decide)
        self.watches_changes(informer, keys)

    def watches_changes(self, informer: Informer[T], map: ChangeMapper[T]) -> None:
        """Queue the keys that `map` returns for each change, given the old and the new object together."""

        def handle(old: T | None, new: T | None) -> None:
            for key in map(old, new):
                self.queue.add(key)

        def queue_all_objects() -> None:
            for obj in informer.items():
                handle(None, obj)

        informer.add_handler(handle)
        self.informers.append(informer)  # type: ignore[arg-type]  # only waited for, never written to
        self._mappings.append(queue_all_objects)

    async def run(self) -> None:
        """Wait until the watched informers are synced, then work until `stop`. Cancelling cuts running calls off."""
        for informer in self.informers:
            await informer.synced.wait()
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"{self.name}-{number}")

    def stop(self) -> None:
        """Take no more keys; `run` returns when the calls in progress have ended."""
        self.queue.shut_down()

    def reopen(self) -> None:
        """Make `run` possible again after `stop`: every object that is there counts as new."""
        self.queue.reopen()
        for queue_all in self._mappings:
            queue_all()

    async def _work(self) -> None:
        while True:
            try:
                key = await self.queue.get()
            except QueueShutDown:
                return
            try:
                await self._handle(key)
            finally:
                for ended in self._ended:
                    ended(key)
                self.queue.done(key)

    async def _handle(self, key: Key) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        with self._active.track_inprogress(), structlog.contextvars.bound_contextvars(controller=self.name):
            result = await self._outcome(key)
        self._seconds.observe(loop.time() - started)
        self._metrics.reconciles.labels(self.name, result).inc()

    async def _outcome(self, key: Key) -> str:
        limit = asyncio.timeout(self._deadline)
        try:
            async with limit:
                result = await self._reconcile(key)
        except Conflict as exc:
            delay = self.queue.add_rate_limited(key)
            self._log.debug("conflict, trying again", key=str(key), error=exc.message, delay=delay)
            return "requeue"
        except (Exception, asyncio.CancelledError) as exc:  # a reconciler may raise anything; it is logged and retried
            if isinstance(exc, asyncio.CancelledError) and _being_cancelled():
                raise
            self._failed(key, exc, limit.expired())
            return "error"
        return self._succeeded(key, result)

    def _succeeded(self, key: Key, result: Result) -> str:
        self.queue.forget(key)
        if isinstance(result, Requeue):
            self.queue.add_after(key, result.after)
            return "requeue_after"
        return "success"

    def _failed(self, key: Key, exc: BaseException, hung: bool) -> None:
        wait = exc.retry_after if isinstance(exc, ApiError) else None
        longest = _LONGEST_AFTER_API if isinstance(exc, _TRANSIENT) else math.inf
        delay = self.queue.add_rate_limited(key, at_least=min(wait or 0.0, 60.0), at_most=longest)
        failures = self.queue.failures(key)
        self._metrics.errors.labels(self.name).inc()
        if hung:
            self._metrics.timeouts.labels(self.name).inc()
            self._log.error("reconcile cancelled at its deadline", key=str(key), deadline=self._deadline, retry=delay)
        elif isinstance(exc, ApiError):
            self._log.warning("reconcile failed", key=str(key), error=str(exc), failures=failures, retry=delay)
        else:
            self._log.error("reconcile failed", key=str(key), failures=failures, retry=delay, exc_info=exc)


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
