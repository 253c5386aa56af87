"""Ends a process whose event loop is blocked: it can neither renew its Lease nor answer probes."""

import asyncio
import faulthandler
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

HANGS = 60.0
"""Seconds without an iteration of the event loop after which the process ends."""


@asynccontextmanager
async def watched(seconds: float = HANGS) -> AsyncIterator[None]:
    """End the process with code 1, and print all stacks, when its event loop is blocked for `seconds`."""
    _arm(seconds)
    beating = asyncio.create_task(_beat(seconds), name="watchdog")
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)
        faulthandler.cancel_dump_traceback_later()


def _arm(seconds: float) -> None:
    # sys.stderr may have been replaced by an object without a descriptor.
    faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__ or sys.stderr)


async def _beat(seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds / 10)
        _arm(seconds)
