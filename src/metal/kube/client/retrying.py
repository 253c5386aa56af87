"""A client that retries for some seconds, for requests on behalf of a machine that waits for the answer.

In comes any request of the client contract, out goes its answer or the last error. Which errors are retried depends on
whether the request may have been carried out: 429 is retried for every request, because the API has not acted on it;
no answer and 5xx only for reads and applies, because a second one changes nothing. A create, patch or delete whose
answer was lost is never repeated here: the caller has to read the object first. Between attempts the client waits with
a backoff, at least for the Retry-After of the answer, and it gives up when the next attempt would begin after `within`.
Watches are not retried; informers resume them. Nothing is remembered between requests.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeVar

from metal.kube.client.backoff import Backoff
from metal.kube.client.errors import ApiError, ServerError, TooManyRequests, Unavailable
from metal.kube.client.protocol import Client, Page, WatchEvent
from metal.kube.client.resources import Resource
from metal.kube.meta.objects import Kind, Object

T = TypeVar("T", bound=Object)
R = TypeVar("R")

UNCERTAIN = (Unavailable, ServerError)
"""Errors after which a write may have happened or not."""


class RetryingClient(Client):
    """Retries reads and applies for up to `within` seconds; other writes only after 429.

    Controllers use the plain client: their queue retries. A machine that boots has no such queue.
    """

    def __init__(self, inner: Client, *, within: float = 8.0, rng: random.Random | None = None) -> None:
        self._inner, self._within, self._rng = inner, within, rng or random.Random()

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        """See `client.Client.get`."""
        return await self._retry_all(lambda: self._inner.get(kind, name, namespace))

    async def list(self, kind: Kind[T], namespace: str = "", **options: Any) -> Page[T]:
        """See `client.Client.list`."""
        return await self._retry_all(lambda: self._inner.list(kind, namespace, **options))

    def watch(self, kind: Kind[T], namespace: str = "", **options: Any) -> AsyncIterator[WatchEvent[T]]:
        """See `client.Client.watch`."""
        return self._inner.watch(kind, namespace, **options)

    async def create(self, kind: Kind[T], obj: Mapping[str, Any]) -> T:
        """See `client.Client.create`."""
        return await self._retry_refused(lambda: self._inner.create(kind, obj))

    async def patch(self, kind: Kind[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        """See `client.Client.patch`."""
        return await self._retry_refused(lambda: self._inner.patch(kind, name, patch, namespace))

    async def patch_status(self, kind: Kind[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        """See `client.Client.patch_status`."""
        return await self._retry_refused(lambda: self._inner.patch_status(kind, name, patch, namespace))

    async def apply(self, kind: Kind[T], obj: Mapping[str, Any], *, manager: str, force: bool = True) -> T:
        """See `client.Client.apply`. Applied twice it is as applied once."""
        return await self._retry_all(lambda: self._inner.apply(kind, obj, manager=manager, force=force))

    async def delete(self, kind: Kind[Any], name: str, namespace: str = "", **options: Any) -> None:
        """See `client.Client.delete`."""
        await self._retry_refused(lambda: self._inner.delete(kind, name, namespace, **options))

    async def resources(self, api_version: str) -> tuple[Resource, ...]:
        """See `client.Client.resources`."""
        return await self._retry_all(lambda: self._inner.resources(api_version))

    async def aclose(self) -> None:
        """See `client.Client.aclose`."""
        await self._inner.aclose()

    async def _retry_all(self, call: Callable[[], Awaitable[R]]) -> R:
        return await self._retry(call, (TooManyRequests, *UNCERTAIN))

    async def _retry_refused(self, call: Callable[[], Awaitable[R]]) -> R:
        return await self._retry(call, (TooManyRequests,))

    async def _retry(self, call: Callable[[], Awaitable[R]], transient: tuple[type[ApiError], ...]) -> R:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._within
        backoff = Backoff(self._rng, base=0.2, cap=2.0)
        while True:
            try:
                return await call()
            except transient as exc:
                pause = backoff.next(exc.retry_after)
                if loop.time() + pause > end:
                    raise
                await asyncio.sleep(pause)
