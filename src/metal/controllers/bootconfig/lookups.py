"""Slow work of passes, in tasks beside the workers: a slow registry, or the conversion of a document, blocks none."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_SHORT_WAIT = 0.2
"""Seconds that a worker waits before it reports that it waits: most lookups end sooner, which saves a write."""


class Lookups(Generic[T]):
    """One lookup per owner at a time; its result is returned once."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[object, asyncio.Task[T]]] = {}

    async def start_or_join(
        self, owner: str, subject: object, work: Callable[[], Coroutine[Any, Any, T]], wake: Callable[[], None]
    ) -> T | None:
        """What `work` returns for this subject, or None while it runs; then `wake` is called. Raises as `work` does."""
        running = self._running.get(owner)
        if running is None or running[0] != subject:
            self.drop(owner)
            task = asyncio.get_running_loop().create_task(work(), name=f"look up {owner}")
            self._running[owner] = (subject, task)
            await asyncio.wait({task}, timeout=_SHORT_WAIT)
            if not task.done():
                task.add_done_callback(lambda _: wake())
        else:
            task = running[1]
        if not task.done():
            return None
        self._running.pop(owner, None)
        if task.cancelled():
            wake()
            return None
        return task.result()

    def drop(self, owner: str) -> None:
        """Cancel a lookup whose result is no longer needed."""
        running = self._running.pop(owner, None)
        if running is not None and not running[1].cancel() and not running[1].cancelled():
            running[1].exception()  # retrieved, so that asyncio does not log it
