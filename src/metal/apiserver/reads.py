"""Get, list and watch."""

import asyncio
import base64
import json
import random
from collections import OrderedDict
from collections.abc import AsyncGenerator
from typing import NamedTuple

from metal.apiserver import status
from metal.apiserver.hub import Cursor
from metal.apiserver.matching import Filter, parse_filter
from metal.apiserver.records import Change, Event, Record
from metal.apiserver.requests import ItemType, Listing, ListOptions, RequestContext, WatchItem, WatchOptions
from metal.apiserver.store import Store

BOOKMARK_SECONDS = 45.0
SNAPSHOTS = 64
"""Paged lists that can be under way at once; older ones answer 410 and are begun anew."""


class _Token(NamedTuple):
    version: int
    offset: int
    asked: str


class Reader:
    """Answers reads from what is committed."""

    def __init__(self, store: Store, rng: random.Random) -> None:
        self._store = store
        self._rng = rng
        self._snapshots: OrderedDict[tuple[int, str], list[Record]] = OrderedDict()

    def get(self, ctx: RequestContext) -> Record:
        """One object. Raises StatusError 404."""
        record = self._store.get(ctx.key)
        if record is None:
            raise status.not_found(ctx.who)
        return record

    def page(self, ctx: RequestContext, options: ListOptions) -> Listing:
        """A page of the collection, consistent with the pages before it. Raises StatusError 400, 410 or 504."""
        accepted = parse_filter(ctx, options.labels, options.fields)
        if options.continue_:
            return self._further(ctx, options)
        self._check_version(options)
        records = [r for r in self._store.collection(ctx.resource.key, ctx.namespace) if accepted(r)]
        version = self._store.version
        if not options.limit or len(records) <= options.limit:
            return Listing(records, version)
        self._keep((version, _question(ctx, options)), records)
        return self._page(ctx, options, records, version, 0)

    def _check_version(self, options: ListOptions) -> None:
        asked = _number(options.resource_version)
        if asked > self._store.version:
            raise status.future_version(asked, self._store.version)
        if options.match == "Exact" and asked != self._store.version:
            raise status.expired(f"The resourceVersion for the provided list is too old: {asked}")

    def _further(self, ctx: RequestContext, options: ListOptions) -> Listing:
        token = _read_token(options.continue_)
        question = _question(ctx, options)
        if token.asked != question:
            raise status.bad_request("continue key is not valid: the list was begun with other selectors")
        records = self._snapshots.get((token.version, question))
        if records is None:
            raise status.expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new "
                "list without the continue parameter."
            )
        return self._page(ctx, options, records, token.version, token.offset)

    def _page(
        self, ctx: RequestContext, options: ListOptions, records: list[Record], version: int, start: int
    ) -> Listing:
        end = min(len(records), start + options.limit) if options.limit else len(records)
        if end == len(records):
            return Listing(records[start:end], version)
        token = _write_token(_Token(version, end, _question(ctx, options)))
        counted = None if options.labels or options.fields else len(records) - end
        return Listing(records[start:end], version, token, counted)

    def _keep(self, key: tuple[int, str], records: list[Record]) -> None:
        self._snapshots[key] = records
        self._snapshots.move_to_end(key)
        while len(self._snapshots) > SNAPSHOTS:
            self._snapshots.popitem(last=False)

    def watch(self, ctx: RequestContext, options: WatchOptions) -> AsyncGenerator[WatchItem, None]:
        """Changes of the collection as they are committed, until the timeout.

        Raises StatusError 400 at once, 410 and 504 from the iterator.
        """
        accepted = parse_filter(ctx, options.labels, options.fields)
        return self._watch(ctx, options, accepted, _number(options.resource_version))

    async def _watch(
        self, ctx: RequestContext, options: WatchOptions, accepted: Filter, asked: int
    ) -> AsyncGenerator[WatchItem, None]:
        if asked > self._store.version:
            raise status.future_version(asked, self._store.version)
        initial = options.initial_events or asked == 0
        start = self._store.version if initial else asked
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
        while True:
            cursor.changed.clear()
            if events := cursor.take():
                for event in events:
                    if item := _seen(event, accepted):
                        yield item
                continue
            remaining = deadline - loop.time()
            if cursor.ended or remaining <= 0:
                return
            version = self._store.version
            if await _idle(cursor.changed, min(remaining, BOOKMARK_SECONDS)) and options.bookmarks:
                yield WatchItem(ItemType.BOOKMARK, None, version)


async def _idle(changed: asyncio.Event, seconds: float) -> bool:
    """Wait for a change; True when none came in time."""
    try:
        async with asyncio.timeout(seconds):
            await changed.wait()
    except TimeoutError:
        return True
    return False


def _seen(event: Event, accepted: Filter) -> WatchItem | None:
    """How an event looks through a filter: what stops matching is DELETED, what starts matching is ADDED."""
    version = event.resource_version
    before = event.previous if event.previous is not None and accepted(event.previous) else None
    if event.type is Change.DELETED:
        return WatchItem(ItemType.DELETED, event.record, version) if before else None
    if accepted(event.record):
        return WatchItem(ItemType.MODIFIED if before else ItemType.ADDED, event.record, version)
    return WatchItem(ItemType.DELETED, before.at_version(version), version) if before else None


def _number(version: str) -> int:
    if not version:
        return 0
    if not version.isascii() or not version.isdigit():
        raise status.bad_request(f'Invalid value: "{version}": resourceVersion must be a number')
    return int(version)


def _question(ctx: RequestContext, options: ListOptions) -> str:
    return json.dumps([ctx.resource.key, ctx.namespace, options.labels, options.fields])


def _write_token(token: _Token) -> str:
    return base64.urlsafe_b64encode(json.dumps(token).encode()).decode()


def _read_token(text: str) -> _Token:
    try:
        version, offset, asked = json.loads(base64.urlsafe_b64decode(text))
        token = _Token(int(version), max(0, int(offset)), str(asked))
    except (ValueError, TypeError) as garbled:
        raise status.bad_request(f"continue key is not valid: {garbled}") from garbled
    return token
