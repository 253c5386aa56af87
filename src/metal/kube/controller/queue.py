"""A queue of keys with de-duplication, delays and per-key backoff; behaves like client-go's, on one event loop."""

import asyncio
import math
import random
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class QueueShutDown(Exception):
    """The queue hands out no more keys."""


class WorkQueue(Generic[K]):
    """Hands each key to at most one worker at a time; a key added while it is worked on comes back after `done`.

    base and cap bound the backoff of `add_rate_limited`, in seconds; the wait is drawn from the upper half.
    """

    def __init__(self, *, rng: random.Random | None = None, base: float = 0.1, cap: float = 60.0) -> None:
        self._rng = rng or random.Random()
        self._base, self._cap = base, cap
        self._ready: deque[K] = deque()
        self._dirty: set[K] = set()
        self._processing: set[K] = set()
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._closed = False

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

    @property
    def idle(self) -> bool:
        """Whether nothing is ready or held; delayed keys may still come."""
        return not self._ready and not self._processing

    def add(self, key: K) -> None:
        """Have the key handled soon; once, however often it is added before a worker takes it."""
        if self._closed or key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._push(key)

    def add_after(self, key: K, delay: float) -> None:
        """Add the key after `delay` seconds. Of several delays of one key the earliest counts."""
        if self._closed:
            return
        if delay <= 0:
            self.add(key)
            return
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
        """The next key, which the caller must give back with `done`. Raises QueueShutDown after `shut_down`."""
        while True:
            if self._closed:
                raise QueueShutDown
            if self._ready:
                break
            await self._wait()
        key = self._ready.popleft()
        self._dirty.discard(key)
        self._processing.add(key)
        return key

    def done(self, key: K) -> None:
        """Give a key back; if it was added meanwhile, it is handed out again."""
        self._processing.discard(key)
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
        self._ready.append(key)
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
                self._wake()  # this wake-up was meant for whoever can still take the key
            elif waiter in self._waiters:
                self._waiters.remove(waiter)
            raise
