"""Delays between attempts: exponential, capped, jittered."""

import random


class Backoff:
    """Yields growing delays in seconds, each drawn from the upper half of its step."""

    def __init__(self, rng: random.Random, *, base: float, cap: float) -> None:
        self._rng, self._base, self._cap = rng, base, cap
        self._step = 0

    def next(self, at_least: float | None = None) -> float:
        """The next delay. at_least (a server's Retry-After) raises it, up to the cap."""
        ceiling = min(self._cap, self._base * 2.0 ** min(self._step, 64))
        self._step += 1
        delay = ceiling * self._rng.uniform(0.5, 1.0)
        return max(delay, min(at_least or 0.0, self._cap))

    def reset(self) -> None:
        """Begin with the shortest delay again."""
        self._step = 0
