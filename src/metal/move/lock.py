"""At most one move at a time works on a home: a Lease in each, given back in the end and taken over from the dead.

Two of them would both believe in the same marks, and the slower one would tidy up where managers act already.
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
BEAT = 3.0
"""Seconds between two signs of life."""
LOST = 10.0
"""Seconds without a sign of life that got through after which a move stops by itself."""
DEAD = 15.0
"""Seconds without a sign of life after which another move takes over. Longer than LOST."""


class Lock:
    """One home's Lease, held by `identity`."""

    def __init__(self, home: Home, identity: str, clock: Clock) -> None:
        self._home, self._identity, self._clock = home, identity, clock
        self._uid = self._version = ""
        self._renewed = 0.0

    async def take(self) -> None:
        """Get the Lease, at once or when its holder is dead. Raises Refused while another move lives, and ApiError."""
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
        return {"metadata": meta, "spec": {**self._spec(), "leaseDurationSeconds": int(DEAD)}}

    def _spec(self) -> dict[str, Any]:
        return {"holderIdentity": self._identity, "renewTime": micro_time(self._clock())}

    async def _inherit(self) -> Any:
        client, space = self._home.client, self._home.namespace
        busy = Refused(f"another metalctl move is at work at {self._home.name}: wait until it has ended")
        try:
            seen = (await client.get(LEASE, NAME, space)).metadata.resource_version
            for _ in range(int(DEAD / BEAT)):
                await asyncio.sleep(BEAT)
                if (await client.get(LEASE, NAME, space)).metadata.resource_version != seen:
                    raise busy
            return await client.patch(LEASE, NAME, {"metadata": {"resourceVersion": seen}, "spec": self._spec()}, space)
        except (Conflict, NotFound):
            raise busy from None

    async def keep(self) -> None:
        """Give signs of life; returns when the Lease is lost, or nobody heard one for too long."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(BEAT)
            sent = loop.time()
            try:
                async with asyncio.timeout_at(self._renewed + LOST):
                    await self._renew()
                self._renewed = sent
            except (Conflict, NotFound, TimeoutError):
                return
            except ApiError:
                if loop.time() >= self._renewed + LOST:
                    return

    async def _renew(self) -> None:
        body = {"metadata": {"resourceVersion": self._version, "uid": self._uid}, "spec": self._spec()}
        lease = await self._home.client.patch(LEASE, NAME, body, self._home.namespace)
        self._version = lease.metadata.resource_version

    async def give_back(self) -> None:
        """Let the next move begin at once; a Lease that cannot be given back dies by itself."""
        client, space = self._home.client, self._home.namespace
        with contextlib.suppress(ApiError, TimeoutError):
            async with asyncio.timeout(2.0):
                # Read anew: a sign of life that was cut off may have arrived, and so may another move.
                lease = await client.get(LEASE, NAME, space)
                if lease.spec.holder_identity == self._identity:
                    meta = lease.metadata
                    await client.delete(LEASE, NAME, space, uid=meta.uid, resource_version=meta.resource_version)


async def alone(homes: Sequence[Home], work: Callable[[], Coroutine[Any, Any, T]], *, identity: str, clock: Clock) -> T:
    """The result of `work`, which runs while no other move does anything to these homes.

    Raises Refused when another one does, or takes over because this one was not heard of; ApiError.
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
            raise Refused("this move was not heard of for too long, and another one may begin: run it again")
        return main.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for lock in locks:
            await lock.give_back()
