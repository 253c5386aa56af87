"""Runs the workers of all controllers while no hold exists: a standby and a pause are both holds.

A set of named holds is remembered. The first hold stops all queues, lets calls in progress end for its grace period and
then cancels them; the release of the last one reopens the queues with every object, as at the start, because changes
during the hold were not recorded. Workers never start before the last of the earlier ones has ended, also when a hold
and a release follow each other closely.
"""

import asyncio
from collections.abc import Callable

import structlog

from metal.kube.controller.controller import Controller
from metal.kube.controller.tasks import Crashed, Tasks

_log = structlog.get_logger(__name__)
_END_WITHIN = 2.0
"""Seconds in which a cancelled worker must end; one that takes longer ignores its cancellation."""


class Workers:
    """Workers run while `start` was called and no reason holds them.

    A hold is named by its reason, and released by the same reason. A key is never in an old worker and a new one at the
    same time: after a hold, workers begin only when the last of the earlier ones has ended.
    """

    def __init__(self) -> None:
        self._controllers: list[Controller] = []
        self._resumed: list[Callable[[], None]] = []
        self._holds: set[str] = set()
        self._tasks = Tasks("controller", ended=self._check)
        self._cuts: list[asyncio.TimerHandle] = []
        self._started = False
        self._closed = False

    def __repr__(self) -> str:
        return f"<Workers {'working' if self.working else 'idle'} holds={sorted(self._holds)}>"

    @property
    def holds(self) -> frozenset[str]:
        """Reasons for which no worker may run."""
        return frozenset(self._holds)

    @property
    def working(self) -> bool:
        """Whether workers take keys now."""
        return self._tasks.running and not self._holds

    def add(self, controller: Controller) -> None:
        """Run this controller's workers with the others, from the next start on."""
        self._controllers.append(controller)

    def on_resume(self, forget: Callable[[], None]) -> None:
        """Call this before workers begin again after a hold: what this process remembered may have changed."""
        self._resumed.append(forget)

    def start(self) -> None:
        """Let workers run, unless held: once, when the caches are filled."""
        self._started = True
        self._check()

    async def hold(self, reason: str, *, grace: float = 10.0) -> None:
        """Let no worker run for this reason until `release`; returns when none runs.

        Calls in progress may end for up to `grace` seconds and are cancelled then, also when this wait is cancelled;
        0 cancels before this returns control for the first time. The shortest grace of several holds counts.
        Raises Crashed when a worker does not end although it was cancelled.
        """
        self._holds.add(reason)
        self._closed = True
        self._tasks.expect_end()
        for controller in self._controllers:
            controller.stop()
        if grace > 0:
            self._cuts.append(asyncio.get_running_loop().call_later(grace, self._tasks.cancel))
        else:
            self._tasks.cancel()
        try:
            async with asyncio.timeout(max(grace, 0.0) + _END_WITHIN):
                await self._tasks.ended()
        except TimeoutError:
            raise Crashed(f"workers did not end within {_END_WITHIN:g} s after they were cancelled") from None

    def release(self, reason: str) -> None:
        """End a hold. When it was the last, workers begin with every object, as at the start."""
        self._holds.discard(reason)
        self._check()

    @property
    def failure(self) -> str:
        """Which controller has crashed and why; empty when none has."""
        return self._tasks.failure

    async def crash(self) -> None:
        """Wait for the first worker that ends with an error, and raise Crashed."""
        await self._tasks.crash()

    def _check(self) -> None:
        if self._tasks.running:
            return
        for cut in self._cuts:
            cut.cancel()
        self._cuts.clear()
        if self._started and not self._holds and not self._tasks.crashed:
            self._begin()

    def _begin(self) -> None:
        if self._closed:
            for forget in self._resumed:
                forget()
            for controller in self._controllers:
                controller.reopen()
        self._closed = False
        self._tasks.expect_life()
        for controller in self._controllers:
            self._tasks.spawn(controller.name, controller.run)
        _log.debug("workers begin", controllers=len(self._controllers))
