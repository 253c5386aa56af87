"""What `up` and `manager` share as processes: signals, the start that a signal ends, and the candidate for the Lease.

Both run the same `Manager` under the same election and supervision: the first background task that ends without being
stopped is logged with its name and ends the process with code 1, and a watchdog ends it when its event loop is blocked.
"""

import asyncio
import random
import signal
import socket
import uuid
from collections.abc import Coroutine
from typing import Any, cast

from metal.api.core import LEASE
from metal.config import Config, shared_options
from metal.kube.client.protocol import Client
from metal.kube.controller.election import ElectionSettings, Elector, Lease
from metal.kube.meta.clock import system_clock
from metal.kube.meta.objects import Kind


def stop_signals() -> asyncio.Event:
    """An event that SIGINT and SIGTERM set from now on."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


async def started(start: Coroutine[Any, Any, None], stop: asyncio.Event) -> bool:
    """Run a start to its end, or cancel it as soon as `stop` is set; whether it ended. Raises what it raises."""
    starting = asyncio.ensure_future(start)
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({starting, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
        return starting.done()
    finally:
        for task in (starting, stopped):
            task.cancel()
        await asyncio.gather(starting, stopped, return_exceptions=True)


def candidate(config: Config, client: Client, *, prefix: str = "") -> Elector:
    """This process as a candidate for the Lease, with an identity of its own."""
    options = config.election
    settings = ElectionSettings(
        name=options.lease, namespace=config.namespace, identity=f"{prefix}{socket.gethostname()}_{uuid.uuid4()}",
        lease_duration=options.lease_duration, renew_deadline=options.renew_deadline,
        retry_period=options.retry_period, annotations=shared_options.annotations(config),
    )  # fmt: skip
    return Elector(client, cast("Kind[Lease]", LEASE), settings, clock=system_clock, rng=random.Random())
