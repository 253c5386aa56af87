"""A client whose API fails as asked: away, refusing, losing answers, slow, forgetful. For virtual time."""

import asyncio
import math
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeVar

from metal.kube.client.errors import Expired, Forbidden, ServerError, TooManyRequests, Unavailable
from metal.kube.client.protocol import Client, Page, WatchEvent
from metal.kube.client.resources import Resource
from metal.kube.meta.objects import Kind, Object
from tests.chain.proxy import Trouble

T = TypeVar("T", bound=Object)
R = TypeVar("R")
_INSTANT = 0.001
"""Seconds that are none: virtual time has a resolution, and sums of floats miss it."""


class Shaky(Client):
    """Passes everything on, as far as `trouble` and `away` let it. `requests` counts by verb and kind."""

    def __init__(self, inner: Client, rng: random.Random) -> None:
        self.inner, self._rng = inner, rng
        self._trouble = Trouble()
        self._stirred = asyncio.Event()
        self.requests: Counter[str] = Counter()
        self.expired = self.cut = 0
        self.quota = ""
        """Plural of a kind whose objects a quota refuses."""
        self._up = asyncio.Event()
        self._up.set()
        self._down = asyncio.Event()
        self._forgotten: set[str] = set()

    @property
    def trouble(self) -> Trouble:
        """What is wrong from now on; watches that are open learn of a new one at once."""
        return self._trouble

    @trouble.setter
    def trouble(self, trouble: Trouble) -> None:
        self._trouble = trouble
        self._stirred.set()
        self._stirred = asyncio.Event()

    async def crash(self, seconds: float) -> None:
        """Nobody answers for so long, watches are cut, and afterwards no version is remembered that they were at."""
        self._up.clear()
        self._down.set()
        await asyncio.sleep(seconds)
        self._down = asyncio.Event()
        self._up.set()

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        return await self._call("get", kind, lambda: self.inner.get(kind, name, namespace))

    async def list(self, kind: Kind[T], namespace: str = "", **options: Any) -> Page[T]:
        page = await self._call("list", kind, lambda: self.inner.list(kind, namespace, **options))
        self._forgotten.discard(kind.plural)
        return page

    async def watch(self, kind: Kind[T], namespace: str = "", **options: Any) -> AsyncIterator[WatchEvent[T]]:
        await self._call("watch", kind, _nothing)
        if kind.plural in self._forgotten:
            self.expired += 1
            raise Expired("too old resource version")
        stream = aiter(self.inner.watch(kind, namespace, **options))
        started = asyncio.get_running_loop().time()
        down = asyncio.ensure_future(self._down.wait())
        stirred = asyncio.ensure_future(self._stirred.wait())
        following = asyncio.ensure_future(anext(stream))
        try:
            while (left := self._left(started)) > _INSTANT:
                waits = {following, down, stirred}
                timeout = None if left == math.inf else left
                await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
                if stirred.done():
                    stirred = asyncio.ensure_future(self._stirred.wait())
                if down.done():
                    self._forgotten.add(kind.plural)
                    raise Unavailable("the connection was cut")
                if following.done():
                    yield following.result()
                    following = asyncio.ensure_future(anext(stream))
            self.cut += 1
        except StopAsyncIteration:
            return
        finally:
            for task in (down, stirred, following):
                task.cancel()
            await asyncio.gather(down, stirred, following, return_exceptions=True)
            await stream.aclose()  # type: ignore[attr-defined]  # it is a generator

    def _left(self, started: float) -> float:
        """Seconds until a watch is cut."""
        life = self.trouble.watch_life or math.inf
        return life - (asyncio.get_running_loop().time() - started)

    async def create(self, kind: Kind[T], obj: Mapping[str, Any]) -> T:
        return await self._call("create", kind, lambda: self.inner.create(kind, obj))

    async def patch(self, kind: Kind[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        return await self._call("patch", kind, lambda: self.inner.patch(kind, name, patch, namespace))

    async def patch_status(self, kind: Kind[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        return await self._call("status", kind, lambda: self.inner.patch_status(kind, name, patch, namespace))

    async def apply(self, kind: Kind[T], obj: Mapping[str, Any], *, manager: str, force: bool = True) -> T:
        return await self._call("apply", kind, lambda: self.inner.apply(kind, obj, manager=manager, force=force))

    async def delete(self, kind: Kind[Any], name: str, namespace: str = "", **options: Any) -> None:
        await self._call("delete", kind, lambda: self.inner.delete(kind, name, namespace, **options))

    async def resources(self, api_version: str) -> tuple[Resource, ...]:
        return await self.inner.resources(api_version)

    async def aclose(self) -> None:
        await self.inner.aclose()

    async def _call(self, verb: str, kind: Kind[Any], act: Callable[[], Awaitable[R]]) -> R:
        self.requests[f"{verb} {kind.plural}"] += 1
        if self.trouble.delay:
            await asyncio.sleep(self.trouble.delay)
        if not self._up.is_set():
            raise Unavailable("connection refused")
        if kind.plural == self.quota and verb in ("create", "apply"):
            raise Forbidden(f"{kind.plural} is forbidden: exceeded quota: {kind.plural}=10")
        if self._rng.random() >= self.trouble.share:
            return await act()
        if self._rng.random() < 0.5:
            raise self._rng.choice((TooManyRequests("slow down", retry_after=1.0), ServerError("something broke")))
        await act()
        raise self._rng.choice((Unavailable("the answer is lost"), ServerError("the answer is lost")))


async def _nothing() -> None:
    return
