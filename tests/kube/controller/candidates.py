"""Candidates for one Lease over an API that is slow, cut off or loses answers, each behind a wire of its own."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, cast

from metal.api.core import LEASE
from metal.kube.client.errors import Unavailable
from metal.kube.client.protocol import Page, WatchEvent
from metal.kube.client.resources import Resource
from metal.kube.controller.election import ElectionSettings, Elector, Lease
from metal.kube.meta.clock import Clock
from metal.kube.meta.objects import Kind, Object
from tests.kube.client.fakeapi import FakeAPI

T = TypeVar("T", bound=Object)
R = TypeVar("R")
KIND = cast("Kind[Lease]", LEASE)
START = datetime(2026, 1, 1, tzinfo=UTC)


class Wire:
    """A client whose requests take their time, and arrive even when nobody waits for them any more."""

    def __init__(self, api: FakeAPI, delay: Callable[[], float] = lambda: 0.0) -> None:
        self.api, self.delay = api, delay
        self.cut = False
        """Requests go out and nothing comes back."""
        self.refused = False
        """Nobody answers at once, and nothing arrives."""
        self.asked = 0
        self._on_the_way: set[asyncio.Task[Any]] = set()

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        return await self._send(lambda: self.api.get(kind, name, namespace))

    async def list(
        self, kind: Kind[T], namespace: str = "", *, labels: str = "", fields: str = "", resource_version: str = ""
    ) -> Page[T]:
        return await self._send(lambda: self.api.list(kind, namespace))

    async def watch(
        self, kind: Kind[T], namespace: str = "", *, resource_version: str, labels: str = "", fields: str = ""
    ) -> AsyncIterator[WatchEvent[T]]:
        async for event in self.api.watch(kind, namespace, resource_version=resource_version):
            await asyncio.sleep(self.delay())
            await self._get_through(watching=True)
            yield event

    async def create(self, kind: Kind[T], obj: Mapping[str, Any]) -> T:
        return await self._send(lambda: self.api.create(kind, obj))

    async def patch(self, kind: Kind[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        return await self._send(lambda: self.api.patch(kind, name, patch, namespace))

    async def patch_status(self, kind: Kind[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        raise NotImplementedError

    async def apply(self, kind: Kind[T], obj: Mapping[str, Any], *, manager: str, force: bool = True) -> T:
        raise NotImplementedError

    async def delete(
        self, kind: Kind[T], name: str, namespace: str = "", *, uid: str = "", resource_version: str = ""
    ) -> None:
        raise NotImplementedError

    async def resources(self, api_version: str) -> tuple[Resource, ...]:
        raise NotImplementedError

    async def aclose(self) -> None:
        """Nothing to close."""

    async def _send(self, call: Callable[[], Coroutine[Any, Any, R]]) -> R:
        self.asked += 1
        if self.refused:
            raise Unavailable("connection refused")
        task = asyncio.ensure_future(self._travel(call))
        self._on_the_way.add(task)
        task.add_done_callback(self._arrived)
        return await asyncio.shield(task)

    def _arrived(self, task: asyncio.Task[Any]) -> None:
        self._on_the_way.discard(task)
        if not task.cancelled():
            task.exception()  # whoever asked may have gone

    async def _travel(self, call: Callable[[], Coroutine[Any, Any, R]]) -> R:
        await asyncio.sleep(self.delay())
        answer = await call()
        await asyncio.sleep(self.delay())
        await self._get_through()
        return answer

    async def _get_through(self, *, watching: bool = False) -> None:
        while True:
            if not self.cut and not (watching and self.refused):
                return
            await asyncio.sleep(0.5)


class Candidate:
    """A process that wants to lead, and what became of it."""

    def __init__(self, name: str, wire: Wire, site: "Election", clock: Clock) -> None:
        self.name, self.wire, self.site = name, wire, site
        self.led: list[float] = []
        self.lost: list[float] = []
        self.suspended = 0.0
        """Seconds that its machine was suspended."""
        self.elector = Elector(
            wire, KIND, ElectionSettings("lease", "ns", name), clock=clock, rng=random.Random(name),
            on_lead=self._lead, on_lose=self._lose, suspended=lambda: self.suspended,
        )  # fmt: skip
        self.task = asyncio.ensure_future(self.elector.run())

    def _lead(self) -> None:
        self.led.append(now())
        self.site.check()

    async def _lose(self) -> None:
        self.lost.append(now())

    async def kill(self) -> None:
        """As SIGKILL would: nothing is said to anybody."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def stop(self) -> None:
        """As SIGTERM does."""
        await self.kill()
        await self.elector.release()


class Election:
    """One API and its candidates. `check` raises when two lead."""

    def __init__(self) -> None:
        self.api = FakeAPI()
        self.candidates: list[Candidate] = []

    def candidate(self, name: str, *, delay: Callable[[], float] = lambda: 0.0, skew: float = 0.0) -> Candidate:
        """One more; skew is how wrong its wall clock is, in seconds."""
        one = Candidate(name, Wire(self.api, delay), self, lambda: START + timedelta(seconds=now() + skew))
        self.candidates.append(one)
        return one

    @property
    def leaders(self) -> list[str]:
        return [one.name for one in self.candidates if one.elector.leader]

    def check(self) -> None:
        """At most one leads."""
        if len(self.leaders) > 1:
            raise AssertionError(f"{self.leaders} lead at {now()}")

    @property
    def spec(self) -> dict[str, Any]:
        """The Lease as it is stored."""
        spec: dict[str, Any] = self.api.objects["leases", "ns", "lease"]["spec"]
        return spec

    async def end(self) -> None:
        """Stop all, and surface what went wrong in any."""
        for one in self.candidates:
            if one.task.done() and not one.task.cancelled():
                one.task.result()
            await one.kill()


def now() -> float:
    return asyncio.get_running_loop().time()
