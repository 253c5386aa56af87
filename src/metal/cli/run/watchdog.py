"""Ends a process whose event loop hangs: it could neither renew a Lease nor answer a probe, and only looks alive."""

import asyncio
import faulthandler
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

HANGS = 60.0
"""Seconds without a turn of the event loop after which nothing is hoped for any more."""


@asynccontextmanager
async def watched(seconds: float = HANGS) -> AsyncIterator[None]:
    """While inside, a loop that hangs for so long has every stack printed to stderr and the process ended (code 1)."""
    faulthandler.dump_traceback_later(seconds, exit=True)
    beating = asyncio.create_task(_beat(seconds), name="watchdog")
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)
        faulthandler.cancel_dump_traceback_later()


async def _beat(seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds / 10)
        faulthandler.dump_traceback_later(seconds, exit=True)
