"""A Lease in each home, so that one move at a time works on it.

A move creates the Lease, renews it every RENEW_INTERVAL seconds and deletes it at the end. A move that cannot renew for
RENEW_DEADLINE seconds stops by itself. A Lease that is not renewed for LEASE_DURATION seconds belongs to a move that
ended, and the next one takes it over. Without the Lease, two moves would act on the same pause records, and the slower
one would delete objects that managers use already.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from metal.api.core import LEASE
from metal.kube.client.errors import AlreadyExists, ApiError, Conflict, NotFound
from metal.kube.meta.clock import Clock, micro_time
from metal.move.homes import Home, Refused

T = TypeVar("T")

NAME = "metal-operator-move"
"""Lease in the managers' namespace."""
RENEW_INTERVAL = 3.0
"""Seconds between two renewals."""
RENEW_DEADLINE = 10.0
"""Seconds without a successful renewal after which a move stops by itself."""
LEASE_DURATION = 15.0
"""Seconds without a renewal after which another move takes over. Longer than RENEW_DEADLINE."""


class Lock:
    """One home's Lease, held by `identity`."""

    def __init__(self, home: Home, identity: str, clock: Clock) -> None:
        self._home, self._identity, self._clock = home, identity, clock
        self._uid = self._version = ""
        self._renewed = 0.0

    async def take(self) -> None:
        """Acquire the Lease, at once or after it expired. Raises Refused while another move holds it, and ApiError."""
        began = asyncio.get_running_loop().time()
        try:
            lease = await self._home.client.create(LEASE, self._body())
        except AlreadyExists:
            lease = await self._inherit()
            began = asyncio.get_running_loop().time()
        self._uid, self._version = lease.metadata.uid, lease.metadata.resource_version
        self._renewed = began

    def _body(self) -> dict[str, Any]:
        meta = {"name": NAME, "namespace": self._home.namespace}
        return {"metadata": meta, "spec": {**self._spec(), "leaseDurationSeconds": int(LEASE_DURATION)}}

    def _spec(self) -> dict[str, Any]:
        return {"holderIdentity": self._identity, "renewTime": micro_time(self._clock())}

    async def _inherit(self) -> Any:
        client, space = self._home.client, self._home.namespace
        busy = Refused(f"another metalctl move is running at {self._home.name}: wait until it has ended")
        try:
            seen = (await client.get(LEASE, NAME, space)).metadata.resource_version
            for _ in range(int(LEASE_DURATION / RENEW_INTERVAL)):
                await asyncio.sleep(RENEW_INTERVAL)
                if (await client.get(LEASE, NAME, space)).metadata.resource_version != seen:
                    raise busy
            return await client.patch(LEASE, NAME, {"metadata": {"resourceVersion": seen}, "spec": self._spec()}, space)
        except (Conflict, NotFound):
            raise busy from None

    async def keep(self) -> None:
        """Renew the Lease; returns when it is lost or could not be renewed for RENEW_DEADLINE seconds."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(RENEW_INTERVAL)
            sent = loop.time()
            try:
                async with asyncio.timeout_at(self._renewed + RENEW_DEADLINE):
                    await self._renew()
                self._renewed = sent
            except (Conflict, NotFound, TimeoutError):
                return
            except ApiError:
                if loop.time() >= self._renewed + RENEW_DEADLINE:
                    return

    async def _renew(self) -> None:
        body = {"metadata": {"resourceVersion": self._version, "uid": self._uid}, "spec": self._spec()}
        lease = await self._home.client.patch(LEASE, NAME, body, self._home.namespace)
        self._version = lease.metadata.resource_version

    async def release(self) -> None:
        """Delete the Lease, so that the next move can start at once; otherwise the Lease expires."""
        client, space = self._home.client, self._home.namespace
        with contextlib.suppress(ApiError, TimeoutError):
            async with asyncio.timeout(2.0):
                # Read again: a renewal that timed out may have succeeded, or another move may hold the Lease.
                lease = await client.get(LEASE, NAME, space)
                if lease.spec.holder_identity == self._identity:
                    meta = lease.metadata
                    await client.delete(LEASE, NAME, space, uid=meta.uid, resource_version=meta.resource_version)


async def run_locked(
    homes: Sequence[Home], work: Callable[[], Coroutine[Any, Any, T]], *, identity: str, clock: Clock
) -> T:
    """The result of `work`, which runs while this move holds the Leases of these homes.

    Raises Refused when another move holds one, or when a Lease was lost; ApiError.
    """
    locks: list[Lock] = []
    tasks: list[asyncio.Task[Any]] = []
    try:
        for home in homes:
            await home.ensure_namespace()
            lock = Lock(home, identity, clock)
            await lock.take()
            locks.append(lock)
        main = asyncio.create_task(work(), name="move")
        tasks = [main, *(asyncio.create_task(lock.keep(), name="move/lock") for lock in locks)]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not main.done():
            raise Refused("this move lost its Lease, and another one may have started: run it again")
        return main.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for lock in locks:
            await lock.release()
