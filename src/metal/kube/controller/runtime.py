"""Puts informers, controllers and background tasks together: start, wait for sync, run, stop within a deadline."""

import asyncio
import contextlib
import random
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

import structlog
from prometheus_client import CollectorRegistry

from metal.kube.cache.informer import Informer
from metal.kube.client.errors import ApiError
from metal.kube.client.protocol import Client
from metal.kube.controller.controller import Controller, Reconcile
from metal.kube.controller.metrics import Metrics
from metal.kube.controller.tasks import Crashed, Tasks, first
from metal.kube.controller.workers import Workers
from metal.kube.meta.objects import Key, Kind, Object

T = TypeVar("T", bound=Object)
Run = Callable[[], Coroutine[Any, Any, None]]

_log = structlog.get_logger(__name__)
_STOPPING = "stopping"
_CHECK_EVERY = 0.5
"""Seconds between checks whether a first list has failed permanently."""
_FED_WITHIN = 60.0
"""Seconds for which a cache may be behind, as during a restart of the API, before the process is not ready."""
_WARN_EVERY = 10.0
"""Seconds between warnings about informers that do not sync."""


class Runtime:
    """Holds a client, one informer per kind for all to share, and the controllers.

    Use `run(stop)` for a whole process, or `start` and `stop` around a test. `hold` and `release` stop and start the
    controllers alone, while informers go on: a standby holds them, and so does `metalctl move`.
    """

    def __init__(
        self, client: Client, *, rng: random.Random | None = None, registry: CollectorRegistry | None = None
    ) -> None:
        self.client = client
        self.metrics = Metrics(registry or CollectorRegistry())
        self._rng = rng or random.Random()
        self._informers: dict[tuple[str, str, str, str], Informer[Any]] = {}
        self._background: list[tuple[str, Run]] = []
        self._sources = Tasks("informer")
        self._workers = Workers()
        self._helpers = Tasks("background")
        self._started = False

    def informer(self, kind: Kind[T], namespace: str = "", *, labels: str = "") -> Informer[T]:
        """The shared informer of a kind; of one namespace or selector when given. Created at first use, also later."""
        identity = (kind.api_version, kind.plural, namespace, labels)
        informer = self._informers.get(identity)
        if informer is None:
            informer = Informer(self.client, kind, namespace=namespace, labels=labels, rng=self._fork())
            self._informers[identity] = informer
            if self._started:
                self._sources.spawn(kind.plural, informer.run)
        return cast("Informer[T]", informer)

    def controller(
        self,
        name: str,
        reconcile: Reconcile,
        *,
        workers: int = 4,
        deadline: float = 60.0,
        order: Callable[[Key], Any] | None = None,
    ) -> Controller:
        """Add a controller, to be started with the rest. `deadline` bounds one reconcile, in seconds.

        `order` ranks keys that are ready at the same time; without it the one that was ready first is first.
        """
        controller = Controller(
            name, reconcile, workers=workers, deadline=deadline, rng=self._fork(), metrics=self.metrics, order=order
        )
        self._workers.add(controller)
        return controller

    def background(self, name: str, run: Run) -> None:
        """Run a coroutine function beside the controllers; it is cancelled last, and must not end by itself."""
        self._background.append((name, run))

    @property
    def working(self) -> bool:
        """Whether the controllers take keys now."""
        return self._workers.working

    @property
    def holds(self) -> frozenset[str]:
        """Reasons for which the controllers do nothing; see `hold`."""
        return self._workers.holds

    async def hold(self, reason: str, *, grace: float = 10.0) -> None:
        """Stop the controllers until `release(reason)`; returns when the last reconcile has ended.

        Reconciles in progress may go on for up to `grace` seconds, then they are cancelled; 0 cancels them at once.
        Any number of reasons may hold, each under a name of its own ("standby", "move"), also before `start`; workers
        run only when there is none. Informers and background tasks go on. Raises Crashed when a reconcile does not end.
        """
        await self._workers.hold(reason, grace=grace)

    def release(self, reason: str) -> None:
        """End the hold of this reason, if any. After the last one every object is reconciled, as at the start."""
        self._workers.release(reason)

    def retry(self) -> None:
        """Have informers connect now instead of after their backoff: the API has just answered another request."""
        for informer in self._informers.values():
            informer.retry()

    def on_resume(self, forget: Callable[[], None]) -> None:
        """Call this before controllers work again after a hold: another process may have acted meanwhile."""
        self._workers.on_resume(forget)

    async def start(self, *, sync_within: float | None = None, permanent: tuple[type[ApiError], ...] = ()) -> None:
        """Start everything; returns when all informers are synced and the controllers work, unless held.

        Raises TimeoutError when syncing takes longer than `sync_within` seconds, and an error of one of the `permanent`
        types as soon as the API answers a first list with it; others are waited out. Crashes surface in `run`.
        """
        self._started = True
        for name, run in self._background:
            self._helpers.spawn(name, run)
        for informer in self._informers.values():
            self._sources.spawn(informer.kind.plural, informer.run)
        async with asyncio.timeout(sync_within):
            await self._synced(permanent)
        self._workers.start()

    async def run(self, stop: asyncio.Event | None = None, *, grace: float = 10.0) -> None:
        """Start, run until `stop` is set, then stop within about `grace` seconds. Raises Crashed if a task fails."""
        try:
            await first(self._until(stop), self.crash())
        finally:
            await self.stop(grace=grace)

    async def stop(self, *, grace: float = 10.0) -> None:
        """Let reconciles in progress end for up to `grace` seconds, cancel the rest, then stop everything else."""
        try:
            await self._workers.hold(_STOPPING, grace=grace)
        except Crashed as exc:
            _log.error("stopping all the same", error=str(exc))
        await self._sources.stop(grace=1.0)
        await self._helpers.stop(grace=1.0)

    async def _until(self, stop: asyncio.Event | None) -> None:
        await self.start()
        await (stop or asyncio.Event()).wait()

    @property
    def failure(self) -> str:
        """Which task has crashed and why; empty when none has."""
        return self._sources.failure or self._workers.failure or self._helpers.failure

    @property
    def behind(self) -> str:
        """Which caches are not filled, or have not followed the API for a minute; empty when none."""
        late = [i for i in self._informers.values() if not i.synced.is_set() or i.behind > _FED_WITHIN]
        return f"cannot follow {', '.join(sorted({i.kind.plural for i in late}))}" if late else ""

    async def crash(self) -> None:
        """Wait for the first task that ends with an error, and raise Crashed."""
        await first(self._sources.crash(), self._workers.crash(), self._helpers.crash())

    async def _synced(self, permanent: tuple[type[ApiError], ...]) -> None:
        loop = asyncio.get_running_loop()
        warn_at = loop.time() + _WARN_EVERY
        while waiting := [informer for informer in self._informers.values() if not informer.synced.is_set()]:
            for informer in waiting:
                if isinstance(failure := informer.failure, permanent):
                    kind = informer.kind
                    raise type(failure)(f"{kind.plural}.{kind.group or 'core'}: {failure.message}") from failure
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(waiting[0].synced.wait(), _CHECK_EVERY)
            if loop.time() >= warn_at:
                warn_at = loop.time() + _WARN_EVERY
                _log.warning("still waiting for the first list", kinds=[informer.kind.kind for informer in waiting])

    def _fork(self) -> random.Random:
        return random.Random(self._rng.getrandbits(64))
