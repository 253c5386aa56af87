"""Runs a coroutine on a loop of its own in virtual time: for property tests, which need a new loop per example."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import looptime

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result; sleeping costs no time."""
    loop = looptime.new_event_loop(start=0)  # no asyncio.Runner: it would take pytest-asyncio's loop away
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.run_until_complete(_cancel_all())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def _cancel_all() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


async def settle(turns: int = 20) -> None:
    """Let everything that is ready now run, without time passing."""
    for _ in range(turns):
        await asyncio.sleep(0)
