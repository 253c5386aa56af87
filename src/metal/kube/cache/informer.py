"""Keeps a cache equal to the API by list and watch, and calls handlers with what changed.

In come a list (every object, and the resourceVersion at which it was true) and then a watch from that version (each
change in order). Out go calls (old, new) to the handlers, after the cache and its indexes hold the new object.

The informer remembers its position in the stream, `_version`, and whether a watch from there misses nothing,
`_complete`. A watch that ends, breaks or is silent for too long continues from the position. 410 Expired, and any
answer that cannot be read, make the position worthless: the next attempt lists again and compares, so that deletions
that no watch reported become calls (old, None) too. Attempts are separated by a backoff that a healthy watch resets.

A reconciler puts the answer to its own write into the cache with `observe`, so that its next pass does not act on the
state before that write. The watch brings the same version again later, or has brought a newer one already: objects
never go back to an older resourceVersion. Only a new list may do that, and an object that was observed while the list
was on its way keeps its newer version.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

import structlog

from metal.kube.cache.cache import Cache, IndexFn, same
from metal.kube.client.backoff import Backoff
from metal.kube.client.errors import ApiError, Expired, TooManyRequests, Unavailable
from metal.kube.client.protocol import Client, EventType, Page, WatchEvent
from metal.kube.meta.objects import Key, Kind, Object, key_of

T = TypeVar("T", bound=Object)
Handler = Callable[[T | None, T | None], None]

_log = structlog.get_logger(__name__)
_HEALTHY = 2.0
"""Seconds after which a watch without events counts as healthy and resets the backoff. Behind a proxy that cuts idle
connections every few seconds the cache then follows at once, instead of half a minute late."""


class Informer(Generic[T]):
    """A local copy of all objects of a kind (of one namespace, or of a selector, when given).

    Handlers are called as (old, new) with None for "is not there", after cache and indexes changed; they must not
    block. An object never goes back to an older resourceVersion, except when a new list says so.
    """

    def __init__(
        self,
        client: Client,
        kind: Kind[T],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        rng: random.Random | None = None,
    ) -> None:
        self.kind = kind
        self.synced = asyncio.Event()
        self._client = client
        self._namespace, self._labels, self._fields = namespace, labels, fields
        self._cache: Cache[T] = Cache()
        self._handlers: list[Handler[T]] = []
        self._version = ""
        self._complete = False  # whether a watch from _version would miss nothing
        self._observed: dict[Key, T] = {}
        self._backoff = Backoff(rng or random.Random(), base=0.2, cap=30.0)
        self.failure: Exception | None = None
        """Why the API cannot be followed now."""
        self._failing_since: float | None = None
        self._failure_type = ""
        self._again = asyncio.Event()
        self._log = _log.bind(kind=kind.kind, namespace=namespace or None)

    def __repr__(self) -> str:
        state = "synced" if self.synced.is_set() else "not synced"
        return f"<Informer {self.kind.kind} {state} objects={len(self._cache)} version={self._version or '-'}>"

    def __len__(self) -> int:
        return len(self._cache)

    def get(self, key: Key) -> T | None:
        """The object with this key, or None."""
        return self._cache.get(key)

    def items(self) -> list[T]:
        """All objects."""
        return self._cache.items()

    def by_index(self, name: str, value: str) -> list[T]:
        """Objects for which the index function `name` yielded `value`. Raises KeyError for an unknown index."""
        return self._cache.by_index(name, value)

    @property
    def behind(self) -> float:
        """Seconds for which the API cannot be followed; 0 while it is."""
        since = self._failing_since
        return 0.0 if since is None else asyncio.get_running_loop().time() - since

    def add_index(self, name: str, function: IndexFn[T]) -> None:
        """Index all objects by a pure function; the same name twice needs the same function (else ValueError)."""
        self._cache.add_index(name, function)

    def add_handler(self, handler: Handler[T]) -> None:
        """Call `handler` for every change; first for each object that is already here."""
        self._handlers.append(handler)
        for obj in self._cache.items():
            self._call(handler, None, obj)

    def observe(self, obj: T) -> None:
        """Put the answer to a write of this process into the cache at once, before the watch brings it.

        Ignored when the watch has already passed the write's resourceVersion, or versions are not numbers.
        """
        version, seen = _number(obj), _parse(self._version)
        if version is None or (seen is None and self._version) or (seen is not None and version <= seen):
            return
        if self._store(obj):
            self._observed[key_of(obj)] = obj

    async def run(self) -> None:
        """List and watch until cancelled. No error ends it; the cache keeps what was last known meanwhile."""
        while True:
            self._again.clear()
            failure = await self._attempt()
            if failure is not None:
                self._report(failure)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._backoff.next(getattr(failure, "retry_after", None))):
                    await self._again.wait()

    def retry(self) -> None:
        """Connect now instead of after the backoff: another client has just reached the API."""
        if isinstance(self.failure, Unavailable):
            self._backoff.reset()
            self._again.set()

    async def _attempt(self) -> Exception | None:
        try:
            if not self._complete:
                await self._relist()
            await self._follow()
        except Expired as exc:
            self._log.debug("resource version expired, listing again", reason=exc.message)
            self._complete = False
        except (Unavailable, TooManyRequests) as exc:
            return exc  # the position in the stream is still good
        except Exception as exc:  # no answer of an API may end the informer; reported by run()
            self._complete = False
            return exc
        return None

    async def _relist(self) -> None:
        self._observed.clear()
        page = await self._client.list(self.kind, self._namespace, labels=self._labels, fields=self._fields)
        self._replace(page)
        self.synced.set()
        self._recovered()

    def _replace(self, page: Page[T]) -> None:
        fresh = {key_of(obj): obj for obj in page.items}
        listed = _parse(page.resource_version)
        for key, obj in self._observed.items():
            version = _number(obj)
            if listed is not None and version is not None and version > listed:
                fresh[key] = obj  # written while the list was on its way
        self._observed.clear()
        self._version, self._complete = page.resource_version, True
        for old, new in self._cache.replace(fresh):
            self._dispatch(old, new)

    async def _follow(self) -> None:
        started = asyncio.get_running_loop().time()
        stream = self._client.watch(
            self.kind,
            self._namespace,
            resource_version=self._version,
            labels=self._labels,
            fields=self._fields,
        )
        try:
            async for event in stream:
                self._backoff.reset()
                self._recovered()
                self._take(event)
        finally:
            await _close(stream)
            if asyncio.get_running_loop().time() - started >= _HEALTHY:
                self._backoff.reset()
        self._recovered()

    def _take(self, event: WatchEvent[T]) -> None:
        if event.resource_version:
            self._version = event.resource_version
        if event.object is None:
            return
        if event.type is EventType.DELETED:
            self._drop(event.object, event.resource_version)
        else:
            self._store(event.object)

    def _store(self, obj: T) -> bool:
        old = self._cache.get(key_of(obj))
        if old is not None and (same(old, obj) or _older(_number(obj), old)):
            return False
        self._cache.put(obj)
        self._dispatch(old, obj)
        return True

    def _drop(self, obj: T, version: str) -> None:
        key = key_of(obj)
        old = self._cache.get(key)
        if old is None or _older(_parse(version), old):
            return
        self._cache.remove(key)
        self._dispatch(old, None)

    def _dispatch(self, old: T | None, new: T | None) -> None:
        for handler in self._handlers:
            self._call(handler, old, new)

    def _call(self, handler: Handler[T], old: T | None, new: T | None) -> None:
        try:
            handler(old, new)
        except Exception:  # one broken handler must not stop the others
            subject = new if new is not None else old
            key = None if subject is None else str(key_of(subject))
            self._log.exception("informer handler failed", key=key)

    def _report(self, failure: Exception) -> None:
        self.failure, name = failure, type(failure).__name__
        if self._failing_since is None:
            self._failing_since = asyncio.get_running_loop().time()
        if name == self._failure_type:
            return
        self._failure_type = name
        self._log.warning(
            "cannot follow the API, retrying", error=str(failure), exc_info=None if _expected(failure) else failure
        )

    def _recovered(self) -> None:
        self.failure = self._failing_since = None
        if self._failure_type:
            self._log.info("following the API again", after=self._failure_type)
            self._failure_type = ""


def _expected(failure: Exception) -> bool:
    return isinstance(failure, ApiError)


def _parse(version: str) -> int | None:
    return int(version) if version.isascii() and version.isdigit() else None


def _number(obj: Object) -> int | None:
    return _parse(obj.metadata.resource_version)


def _older(version: int | None, cached: Object) -> bool:
    known = _number(cached)
    return version is not None and known is not None and version < known


async def _close(stream: AsyncIterator[WatchEvent[T]]) -> None:
    close = getattr(stream, "aclose", None)
    if close is not None:
        await close()
