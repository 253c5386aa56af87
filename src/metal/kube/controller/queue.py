"""A queue of keys with de-duplication, delays and per-key backoff; behaves like client-go's, on one event loop.

In come keys: informers add what has changed (`add`), reconcilers what has to be looked at later (`add_after`), and
controllers what has failed (`add_rate_limited`). Out go keys, in the order in which they became ready (or that of
`order`, when given), to the workers that wait in `get`; each worker returns its key with `done`.

The queue remembers three things about a key. *Dirty*: it was added and no worker has taken it since; adding it again
changes nothing. *Processing*: a worker holds it; a key added meanwhile is dirty, but becomes ready only at `done`, so
that two workers never hold one key. *Delayed*: a timer adds it later; of two timers the earlier one stays. Besides,
the number of failures since `forget`, from which the backoff follows.

A change that arrives during a reconcile is therefore never lost, and any number of changes before one cost one
reconcile. Nothing is persisted: `shut_down` drops everything, and after `reopen` the owner adds every key again.
"""

import asyncio
import heapq
import itertools
import math
import random
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, Generic, Protocol, TypeVar

K = TypeVar("K", bound=Hashable)


class QueueShutDown(Exception):
    """The queue hands out no more keys."""


class Observer(Protocol):
    """Is called at each step of a key; durations are in seconds."""

    def added(self) -> None:
        """A key became dirty."""

    def delayed(self) -> None:
        """A key is added later."""

    def taken(self, waited: float) -> None:
        """A worker took a key that was dirty for so long."""

    def done(self, worked: float) -> None:
        """A worker returned a key that it held for so long."""


class _Unobserved:
    """Ignores everything."""

    def added(self) -> None: ...
    def delayed(self) -> None: ...
    def taken(self, waited: float) -> None: ...
    def done(self, worked: float) -> None: ...


class WorkQueue(Generic[K]):
    """Hands each key to at most one worker at a time; a key added while it is worked on comes back after `done`.

    base and cap bound the backoff of `add_rate_limited`, in seconds; the wait is drawn from the upper half.
    The attribute observer is called at each step. order, when given, maps a key to its rank: of the keys that are ready
    the smallest rank goes first.
    """

    def __init__(
        self,
        *,
        rng: random.Random | None = None,
        base: float = 0.1,
        cap: float = 60.0,
        order: Callable[[K], Any] | None = None,
    ) -> None:
        self._rng = rng or random.Random()
        self._base, self._cap = base, cap
        self._ready: list[tuple[Any, int, K]] = []
        self._order = order or (lambda _: 0)
        self._pushed = itertools.count()
        self._dirty: dict[K, float] = {}
        self._processing: dict[K, float] = {}
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._closed = False
        self.observer: Observer = _Unobserved()

    def __len__(self) -> int:
        return len(self._ready)

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        ready, processing, delayed = len(self._ready), len(self._processing), len(self._timers)
        return f"<WorkQueue {state} ready={ready} processing={processing} delayed={delayed}>"

    @property
    def processing(self) -> frozenset[K]:
        """Keys that workers hold right now."""
        return frozenset(self._processing)

    def is_processing(self, key: K) -> bool:
        """Whether a worker holds this key right now."""
        return key in self._processing

    @property
    def idle(self) -> bool:
        """Whether nothing is ready or held; delayed keys may still come."""
        return not self._ready and not self._processing

    def working_for(self) -> list[float]:
        """For how many seconds each key in `processing` has been held."""
        now = _now()
        return [now - since for since in self._processing.values()]

    def add(self, key: K) -> None:
        """Have the key handled soon; once, however often it is added before a worker takes it."""
        if self._closed or key in self._dirty:
            return
        self._dirty[key] = _now()
        self.observer.added()
        if key not in self._processing:
            self._push(key)

    def add_after(self, key: K, delay: float) -> None:
        """Add the key after `delay` seconds. Of several delays of one key the earliest counts."""
        if self._closed:
            return
        if delay <= 0:
            self.add(key)
            return
        self.observer.delayed()
        loop = asyncio.get_running_loop()
        pending = self._timers.get(key)
        if pending is not None:
            if pending.when() <= loop.time() + delay:
                return
            pending.cancel()
        self._timers[key] = loop.call_later(delay, self._fire, key)

    def add_rate_limited(self, key: K, *, at_least: float = 0.0, at_most: float = math.inf) -> float:
        """Add the key after its backoff, which doubles each time until `forget`; returns the delay in seconds.

        at_most bounds this one backoff, at_least the delay itself; both in seconds.
        """
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        ceiling = min(self._cap, at_most, self._base * 2.0 ** min(failures, 64))
        delay = max(at_least, ceiling * self._rng.uniform(0.5, 1.0))
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """Start the key's backoff from the beginning again."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """How often the key was rate limited since it was last forgotten."""
        return self._failures.get(key, 0)

    async def get(self) -> K:
        """The next key, which the caller must return with `done`. Raises QueueShutDown after `shut_down`."""
        while True:
            if self._closed:
                raise QueueShutDown
            if self._ready:
                break
            await self._wait()
        _, _, key = heapq.heappop(self._ready)
        now = _now()
        self.observer.taken(now - self._dirty.pop(key))
        self._processing[key] = now
        return key

    def done(self, key: K) -> None:
        """Return a key; if it was added meanwhile, it is handed out again."""
        since = self._processing.pop(key, None)
        if since is not None:
            self.observer.done(_now() - since)
        if key in self._dirty and not self._closed:
            self._push(key)

    def shut_down(self) -> None:
        """Hand out nothing more. What was waiting is dropped: after a restart every key is queued again."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._ready.clear()
        self._dirty.clear()
        while self._waiters:
            self._wake()

    def reopen(self) -> None:
        """Hand out keys again, as a new queue would: without memory of delays and failures."""
        self._closed = False
        self._failures.clear()

    def _fire(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)

    def _push(self, key: K) -> None:
        heapq.heappush(self._ready, (self._order(key), next(self._pushed), key))
        self._wake()

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    async def _wait(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._wake()  # another waiter can still take the key
            elif waiter in self._waiters:
                self._waiters.remove(waiter)
            raise


def _now() -> float:
    return asyncio.get_running_loop().time()
