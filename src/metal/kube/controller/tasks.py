"""A set of long-lived tasks that start and stop together; the first crash surfaces.

In come coroutine functions that run until they are cancelled (`spawn`). The set holds a reference to each task, so that
none is collected while it runs, and remembers the first that ended without `stop`, `cancel` or `expect_end`: with an
exception or by returning. `crash` waits for that and raises it as Crashed, so that the process ends instead of running
on without an informer or a controller. `stop` asks, waits for the grace period, cancels, and waits for the end; a task
that does not end after it was cancelled is logged and left.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import structlog

T = TypeVar("T")

_log = structlog.get_logger(__name__)


class Crashed(Exception):
    """A task that must run for ever has ended; the cause is chained."""


class Tasks:
    """Runs long-lived coroutines. One that ends before it is stopped, with or without an exception, is a crash."""

    def __init__(self, name: str, *, ended: Callable[[], None] = lambda: None) -> None:
        self._name = name
        self._running: set[asyncio.Task[None]] = set()
        self._on_end = ended
        self._stopping = False
        self._crash: Crashed | None = None
        self._crashed = asyncio.Event()

    def spawn(self, name: str, run: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
        """Start a coroutine function as a task of this set."""
        task = asyncio.get_running_loop().create_task(run(), name=f"{self._name}/{name}")
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    @property
    def running(self) -> bool:
        """Whether any task has not ended yet."""
        return bool(self._running)

    @property
    def crashed(self) -> bool:
        """Whether a task has crashed."""
        return self._crash is not None

    @property
    def failure(self) -> str:
        """Which task has crashed and why; empty when none has."""
        return "" if self._crash is None else str(self._crash)

    def expect_end(self) -> None:
        """From now on a task that ends is no crash."""
        self._stopping = True

    def expect_life(self) -> None:
        """From now on a task that ends is a crash again."""
        self._stopping = False

    def cancel(self) -> None:
        """Cancel every task; none of them counts as crashed for it."""
        self._stopping = True
        for task in self._running:
            task.cancel()

    async def ended(self) -> None:
        """Wait until every task that runs now has ended."""
        if running := set(self._running):
            await asyncio.wait(running)

    async def crash(self) -> None:
        """Wait for the first crash and raise it as Crashed."""
        await self._crashed.wait()
        if self._crash is not None:
            raise self._crash

    async def stop(self, *, grace: float, ask: Callable[[], Awaitable[None] | None] | None = None) -> None:
        """Stop: call `ask` when given, wait up to `grace` seconds, then cancel, and wait for the end."""
        self._stopping = True
        if ask is not None:
            asked = ask()
            if asked is not None:
                await asked
            if self._running:
                await asyncio.wait(set(self._running), timeout=grace)
        remaining = set(self._running)
        for task in remaining:
            task.cancel()
        if remaining:
            _, stuck = await asyncio.wait(remaining, timeout=max(grace, 1.0))
            for task in stuck:
                _log.error("task does not end after being cancelled", task=task.get_name())

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._check_crash(task)
        self._on_end()

    def _check_crash(self, task: asyncio.Task[None]) -> None:
        cause = None if task.cancelled() else task.exception()
        if cause is not None:
            _log.error("task crashed", task=task.get_name(), exc_info=cause)
        elif self._stopping:
            return
        else:
            _log.error("task ended without being stopped", task=task.get_name())
        if self._crash is None:
            why = "ended without being stopped" if cause is None else repr(cause)
            self._crash = Crashed(f"{task.get_name()}: {why}")
            self._crash.__cause__ = cause
            self._crashed.set()


async def completed(run: Coroutine[Any, Any, T]) -> T:
    """Run to the end although this wait is cancelled, and raise the cancellation then.

    For short steps that would lose what they open: a cancelled `create_server` leaves its sockets open.
    """
    task = asyncio.ensure_future(run)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.gather(task, return_exceptions=True)
        raise


async def first(*runs: Coroutine[Any, Any, object]) -> None:
    """Run all until one ends, then cancel the others. Raises what that one raised."""
    tasks = [asyncio.ensure_future(run) for run in runs]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
