"""Tenants that come and go, and leaders that are killed, stopped and cut off meanwhile."""

import asyncio
import random
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from metal.kube.client.errors import ApiError
from tests.chain.replicas import Replica, Site

_MOST = 12
"""Claims at the same time."""


@dataclass
class Tenants:
    """Claims come and go as long as `busy` is open; each goes only after its system has run."""

    site: Site
    rng: random.Random
    made: int = 0
    active: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def busy(self) -> AsyncIterator[None]:
        task = asyncio.ensure_future(self._come_and_go())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _come_and_go(self) -> None:
        while True:
            await asyncio.sleep(self.rng.uniform(0.2, 1.0))
            running = await self.site.running_claims()
            ready = [name for name in self.active if name in running]
            if len(self.active) < _MOST and (not ready or self.rng.random() < 0.6):
                self.made += 1
                name = f"c{self.made}"
                await self.site.add_claim(name)
                self.active.append(name)
            elif ready:
                name = self.rng.choice(ready)
                await self.site.drop_claim(name)
                self.active.remove(name)

    async def settle(self) -> None:
        """Every claim that is there has its system; then all go, and every server is Available."""

        async def all_running() -> bool:
            return set(self.active) <= await self.site.running_claims()

        await self.site.until(all_running, 150)
        for name in self.active:
            await self.site.drop_claim(name)
        self.active.clear()
        await self.site.until_available(150)


class Handovers:
    """Two managers, of which one leads; each method takes the lead from it and returns what that took."""

    def __init__(self, site: Site) -> None:
        self.site, self._markers = site, 0
        self.leader: Replica | None = None
        self.standby: Replica | None = None

    async def start(self) -> None:
        """Two managers, one the leader."""
        self.leader = await self.site.add_replica()
        await self._until_role(self.leader, "standby")
        await self._new_standby()
        await self._until_role(self.leader, "leader")

    async def kill(self) -> float:
        """SIGKILL; seconds until the other acts."""
        return await self._end(signal.SIGKILL)

    async def stop(self) -> float:
        """SIGTERM; seconds until the other acts."""
        return await self._end(signal.SIGTERM)

    async def cut(self, *, freeze: bool) -> float:
        """No API any more; seconds until the other acts. The old leader stopped before, and comes back to stand by."""
        old, new = self._both()
        if freeze:
            old.cable.freeze()
        else:
            old.cable.unplug()
        begun = time.monotonic()
        acting = asyncio.ensure_future(self._acts())
        await self._until_role(old, "standby")
        stopped = time.monotonic()
        took = await acting
        assert begun + took > stopped, "two acted at the same time"
        await self._until_role(new, "leader")
        old.cable.mend()
        self.leader, self.standby = new, old
        await asyncio.sleep(1)
        assert await old.role() == "standby"
        return took

    async def _end(self, how: signal.Signals) -> float:
        old, new = self._both()
        old.send(how)
        took = await self._acts()
        code = await old.ended()
        assert code == (-how if how == signal.SIGKILL else 0), old.tail()
        self.site.replicas.remove(old)
        await self._until_role(new, "leader")
        self.leader = new
        await self._new_standby()
        return took

    def _both(self) -> tuple[Replica, Replica]:
        assert self.leader is not None
        assert self.standby is not None
        return self.leader, self.standby

    async def _new_standby(self) -> None:
        self.standby = await self.site.add_replica()
        await self._until_role(self.standby, "standby")

    async def _until_role(self, replica: Replica, role: str) -> None:
        async def has_it() -> bool:
            assert replica.alive, replica.tail()
            return await replica.role() == role

        await self.site.until(has_it, 90)

    async def _acts(self) -> float:
        """Seconds until somebody says that no server fits a claim that was made now."""
        self._markers += 1
        name, begun = f"marker-{self._markers}", time.monotonic()
        kind, client = self.site.kinds.claim, self.site.client
        spec = {"power": "On", "image": "none/none:1", "serverSelector": {"matchLabels": {"marker": name}}}
        await client.create(kind, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})

        async def told() -> bool:
            with suppress(ApiError):
                return bool((await client.get(kind, name, "default")).status.conditions)
            return False

        await self.site.until(told, 90)
        await client.delete(kind, name, "default")
        return time.monotonic() - begun
