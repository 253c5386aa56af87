"""Tasks: what runs together stops together."""

import asyncio

import pytest
import structlog

from metal.kube.controller.tasks import Crashed, Tasks

pytestmark = pytest.mark.looptime


async def test_a_task_that_ignores_its_cancellation_is_named() -> None:
    """Stopping does not hang on it; the log says which one it is."""
    tasks = Tasks("test")
    release = asyncio.Event()

    async def stubborn() -> None:
        while not release.is_set():
            try:
                await asyncio.wait_for(release.wait(), None)
            except asyncio.CancelledError:
                continue

    task = tasks.spawn("stubborn", stubborn)
    await asyncio.sleep(1)
    with structlog.testing.capture_logs() as logs:
        await tasks.stop(grace=2)
    release.set()
    await task

    assert [entry["task"] for entry in logs] == ["test/stubborn"]


async def test_only_the_first_crash_counts() -> None:
    """The cause is the earliest one; later ones are only logged."""
    tasks = Tasks("test")

    async def die(after: float, cause: Exception) -> None:
        await asyncio.sleep(after)
        raise cause

    tasks.spawn("late", lambda: die(2, ValueError("late")))
    tasks.spawn("early", lambda: die(1, KeyError("early")))
    with pytest.raises(Crashed, match="test/early"):
        await tasks.crash()
    await asyncio.sleep(5)
    with pytest.raises(Crashed, match="test/early"):
        await tasks.crash()


async def test_stopping_an_empty_set_is_immediate() -> None:
    """Nothing to wait for, nothing to ask."""
    asked: list[str] = []

    await Tasks("test").stop(grace=100, ask=lambda: asked.append("yes"))

    assert asyncio.get_running_loop().time() == 0
    assert asked == ["yes"]
