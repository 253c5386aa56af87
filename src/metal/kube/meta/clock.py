"""Wall-clock time, injected so that a fleet can run in virtual time. Delays use the event loop's own time."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]
"""Returns the present moment as an aware UTC datetime."""


def system_clock() -> datetime:
    """The machine's wall clock."""
    return datetime.now(UTC)


def timestamp(moment: datetime) -> str:
    """A moment as Time (metav1): UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_time(moment: datetime) -> str:
    """A moment as MicroTime (metav1), whose fraction always has six digits."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class LoopClock:
    """A wall clock that follows the running event loop, so that it advances with virtual time."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._origin: float | None = None
        self._set = timedelta()

    def __call__(self) -> datetime:
        return self.steady() + self._set

    def steady(self) -> datetime:
        """What the clock would show if it had never been set."""
        now = asyncio.get_running_loop().time()
        if self._origin is None:
            self._origin = now
        return self._start + timedelta(seconds=now - self._origin)

    def adjust(self, seconds: float) -> None:
        """Set the clock forward, or back with a negative number, as an administrator or NTP does."""
        self._set += timedelta(seconds=seconds)
