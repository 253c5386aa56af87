"""Get, list and watch: answered from what is committed in the store.

A list is taken from the store at one resourceVersion: the newest, or an older one that the request names. The store
rebuilds an older state from the history of the hub, so nothing is kept between the pages of a list. A page ends with a
continue token: the version of the list and the place where the next page starts. The next request rebuilds the
collection at that version and takes what follows; all pages show the same state. When the history no longer reaches the
version, the answer is 410 with a token that continues at the newest version.

A watch is a cursor into the hub. It starts after a version that the client names, or with the existing objects as ADDED
events, then follows the log of the collection. An object that stops matching the selector is sent as DELETED, one that
starts matching as ADDED. When it has sent nothing for BOOKMARK_SECONDS, although other objects may have changed, it
sends a bookmark if the client asked for them. It ends after the timeout, when the server stops, or with 410 when it
falls behind the log.
"""

import asyncio
import contextlib
import random
from bisect import bisect_left
from collections.abc import AsyncGenerator
from functools import partial
from itertools import islice

from metal.apiserver.machinery import status
from metal.apiserver.machinery.options import ListOptions, WatchOptions
from metal.apiserver.machinery.records import Change, Event, Record, order
from metal.apiserver.machinery.resources import RequestContext
from metal.apiserver.machinery.results import ItemType, Listing, WatchItem
from metal.apiserver.storage.continue_tokens import ContinueToken, parse_token
from metal.apiserver.storage.hub import Cursor
from metal.apiserver.storage.store import Store
from metal.apiserver.verbs.matching import Filter, parse_filter

BOOKMARK_SECONDS = 45.0


class Reader:
    """Answers reads from committed objects."""

    def __init__(self, store: Store, rng: random.Random) -> None:
        self._store = store
        self._rng = rng

    def get(self, ctx: RequestContext, resource_version: str = "") -> Record:
        """One object, not older than the given version. Raises StatusError 404, 500 or 504."""
        if _watched(resource_version) > self._store.version:
            raise status.future_version(int(resource_version), self._store.version)
        record = self._store.get(ctx.key)
        if record is None:
            raise status.not_found(ctx.who)
        return record

    def page(self, ctx: RequestContext, options: ListOptions) -> Listing:
        """A page of the collection, consistent with the pages before it. Raises StatusError 400, 410 or 504."""
        accepted = parse_filter(ctx, options.labels, options.fields)
        if options.continue_:
            return self._further(ctx, options, accepted)
        asked = _number(options.resource_version)
        exact = options.match == "Exact" or bool(options.limit and asked and not options.match)
        version = asked if exact else max(asked, self._store.version)
        return self._page(ctx, options, accepted, ContinueToken(version, ""))

    def _further(self, ctx: RequestContext, options: ListOptions, accepted: Filter) -> Listing:
        token = parse_token(options.continue_)
        if _number(options.resource_version):
            raise status.bad_request("specifying resource version is not allowed when using continue")
        version = self._store.version if token.version < 0 else token.version
        try:
            return self._page(ctx, options, accepted, ContinueToken(version, token.start))
        except status.StatusError as refused:
            if refused.code != 410:
                raise
            raise status.expired_page(str(ContinueToken(-1, token.start))) from refused

    def _page(self, ctx: RequestContext, options: ListOptions, accepted: Filter, token: ContinueToken) -> Listing:
        """Accepted records from the token on. Raises StatusError 410 when history ends later, 504 for the future."""
        version = token.version
        if version > self._store.version:
            raise status.future_version(version, self._store.version)
        place = partial(_place, ctx)
        held = self._store.collection_at(ctx.resource.key, ctx.namespace, version)
        following = held[bisect_left(held, token.start, key=place) :]
        # "0" asks for any version that is at hand; as on kube-apiserver, whose cache holds it whole, limit is ignored.
        limit = 0 if options.resource_version == "0" else options.limit
        found = list(islice(filter(accepted, following), limit + 1 if limit else None))
        if not limit or len(found) <= limit:
            return Listing(found, version)
        page = found[:limit]
        counted = None if options.labels or options.fields else len(following) - limit
        return Listing(page, version, str(ContinueToken(version, place(page[-1]) + "\0")), counted)

    def watch(self, ctx: RequestContext, options: WatchOptions) -> AsyncGenerator[WatchItem, None]:
        """Changes of the collection as they are committed, until the timeout.

        Raises StatusError 400 and 500 at once, 410 and 504 from the iterator.
        """
        accepted = parse_filter(ctx, options.labels, options.fields)
        return self._watch(ctx, options, accepted, _watched(options.resource_version))

    async def _watch(
        self, ctx: RequestContext, options: WatchOptions, accepted: Filter, asked: int
    ) -> AsyncGenerator[WatchItem, None]:
        if asked > self._store.version:
            raise status.future_version(asked, self._store.version)
        initial = asked == 0 if options.initial_events is None else options.initial_events
        start = asked if asked and not initial else self._store.version
        cursor = self._store.hub.open(ctx.resource.key, start)
        try:
            if initial:
                for item in self._present(ctx, options, accepted, start):
                    yield item
            async for item in self._follow(cursor, options, accepted):
                yield item
        finally:
            cursor.release()

    def _present(self, ctx: RequestContext, options: WatchOptions, accepted: Filter, version: int) -> list[WatchItem]:
        records = self._store.collection(ctx.resource.key, ctx.namespace)
        items = [WatchItem(ItemType.ADDED, r, r.resource_version) for r in records if accepted(r)]
        if options.initial_events and options.bookmarks:
            items.append(WatchItem(ItemType.BOOKMARK, None, version, initial_end=True))
        return items

    async def _follow(self, cursor: Cursor, options: WatchOptions, accepted: Filter) -> AsyncGenerator[WatchItem, None]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (options.timeout or self._rng.uniform(1800, 3600))
        bookmark = loop.time() + BOOKMARK_SECONDS
        while loop.time() < deadline:
            cursor.changed.clear()
            events = cursor.take()
            reached = events[-1].resource_version if events else self._store.version
            for event in events:
                if item := _seen(event, accepted):
                    yield item
                    bookmark = loop.time() + BOOKMARK_SECONDS
            if cursor.ended and not events:
                return
            if loop.time() >= bookmark:
                bookmark = loop.time() + BOOKMARK_SECONDS
                if options.bookmarks:
                    yield WatchItem(ItemType.BOOKMARK, None, reached)
            # A collection that changes all the time must not keep the loop from other tasks.
            await (asyncio.sleep(0) if events else _changed(cursor.changed, min(bookmark, deadline)))


async def _changed(changed: asyncio.Event, until: float) -> None:
    """Wait for a change, at most until a time of the loop."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout_at(until):
            await changed.wait()


def _seen(event: Event, accepted: Filter) -> WatchItem | None:
    """The event for a watcher with a filter: objects that stop matching are DELETED, that start matching ADDED."""
    version = event.resource_version
    before = event.previous if event.previous is not None and accepted(event.previous) else None
    if event.type is Change.DELETED:
        return WatchItem(ItemType.DELETED, event.record, version) if before else None
    if accepted(event.record):
        return WatchItem(ItemType.MODIFIED if before else ItemType.ADDED, event.record, version)
    return WatchItem(ItemType.DELETED, before.at_version(version), version) if before else None


def _number(version: str) -> int:
    """The version of a list. Raises StatusError 400."""
    try:
        return _parsed(version)
    except ValueError as garbled:
        raise status.bad_request(f"invalid resource version: {garbled}") from None


def _watched(version: str) -> int:
    """The version of a watch or a get. Raises StatusError 500, as kube-apiserver does for these."""
    try:
        return _parsed(version)
    except ValueError as garbled:
        raise status.StatusError(500, "", str(garbled)) from None


def _parsed(version: str) -> int:
    if not version:
        return 0
    if not version.isascii() or not version.isdigit() or len(version) > 19:
        message = f'strconv.ParseUint: parsing "{version}": invalid syntax'
        raise ValueError(f'resourceVersion: Invalid value: "{version}": {message}')
    return int(version)


def _place(ctx: RequestContext, record: Record) -> str:
    """Sort key of a record in its list."""
    return record.key.name if ctx.namespace else order(record)
