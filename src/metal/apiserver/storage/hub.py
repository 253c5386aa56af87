"""Recent events of every collection, and the watchers that read them at their own pace.

Each collection has a log: the last events, up to a number (`history` of the store) and a size in bytes. `floor` is the
version up to which events are gone. The store publishes an event once for all watchers and wakes them.

A watcher is a cursor, a position in the log, not a queue: a slow watcher costs no memory. It reads up to STEP events at
a time, and lets other tasks run in between. When the log has dropped events that a watcher has not read, its next read
raises 410, and the client lists again. The same holds for a watch that starts at a version below `floor`.

The log is the history for reads, too: the store rebuilds an older state of a collection by undoing the events since
that version, each of which holds the object before and after it.
"""

import asyncio
from bisect import bisect_right
from collections import defaultdict

from metal.apiserver.machinery.records import Event, ResourceKey
from metal.apiserver.machinery.status import expired

LOG_BYTES = 32 * 1024 * 1024
"""Maximum of bytes of the events of one collection; it limits the history of large objects."""
FEWEST = 500
"""Minimum of events that are kept, independent of size, so that watches of large objects work too."""


STEP = 100
"""Events that a watcher reads before other tasks run: each is filtered, decoded and encoded."""


class Log:
    """The last events of one collection; it contains every event after `floor`."""

    def __init__(self, limit: int, floor: int, max_bytes: int = LOG_BYTES) -> None:
        self._limit, self._max_bytes = limit, max_bytes
        self._bytes = 0
        self._events: list[Event] = []
        self._dropped = 0
        self._watchers: set[Cursor] = set()
        self.floor = floor
        self.closed = False

    def publish(self, event: Event) -> None:
        """Append an event and wake the watchers."""
        self._events.append(event)
        self._bytes += len(event.record.body)
        # In chunks: dropping one event at a time would move the whole list on every write.
        if len(self._events) > self._limit + self._limit // 4:
            self._trim(len(self._events) - self._limit)
        elif self._bytes > self._max_bytes and len(self._events) >= FEWEST + FEWEST // 4:
            self._trim(self._surplus_by_size())
        self._wake()

    def _surplus_by_size(self) -> int:
        """How many of the oldest events to drop until a fifth of the space is free, or FEWEST are left."""
        held, surplus = self._bytes, 0
        while held > self._max_bytes * 4 // 5 and len(self._events) - surplus > FEWEST:
            held -= len(self._events[surplus].record.body)
            surplus += 1
        return surplus

    def _trim(self, surplus: int) -> None:
        self._bytes -= sum(len(event.record.body) for event in self._events[:surplus])
        self.floor = self._events[surplus - 1].resource_version
        self._dropped += surplus
        del self._events[:surplus]

    def expire(self, version: int) -> list[Event]:
        """Take every event out: the history begins at `version`, and the next read of every watcher raises 410."""
        taken, self._events = self._events, []
        self._dropped += len(taken) + 1
        self._bytes, self.floor = 0, version
        self._wake()
        return taken

    def close(self) -> None:
        """End every watcher after it has read the remaining events."""
        self.closed = True
        self._wake()

    def _wake(self) -> None:
        for watcher in self._watchers:
            watcher.changed.set()

    def open(self, after: int) -> "Cursor":
        """A cursor at the first event newer than `after`. Raises StatusError 410."""
        if after < self.floor:
            raise expired(f"too old resource version: {after} ({self.floor})")
        position = bisect_right(self._events, after, key=lambda event: event.resource_version)
        cursor = Cursor(self, self._dropped + position)
        self._watchers.add(cursor)
        return cursor

    def since(self, version: int) -> list[Event]:
        """Every event after a version. Raises StatusError 410 when some of them were dropped."""
        if version < self.floor:
            raise expired("The resourceVersion for the provided list is too old.")
        return self._events[bisect_right(self._events, version, key=lambda event: event.resource_version) :]

    def release(self, cursor: "Cursor") -> None:
        """Remove a cursor."""
        self._watchers.discard(cursor)

    def read(self, position: int) -> list[Event]:
        """Events from an absolute position on. Raises StatusError 410 when they were dropped."""
        start = position - self._dropped
        if start < 0:
            raise expired("too old resource version: the watcher was slower than the changes")
        return self._events[start : start + STEP]

    def __repr__(self) -> str:
        return f"<Log events={len(self._events)} floor={self.floor} watchers={len(self._watchers)}>"


class Cursor:
    """The position of one watcher in a log."""

    def __init__(self, log: Log, position: int) -> None:
        self._log = log
        self._position = position
        self.changed = asyncio.Event()

    def take(self) -> list[Event]:
        """Unread events, at most STEP at a time; empty when there are none."""
        events = self._log.read(self._position)
        self._position += len(events)
        return events

    @property
    def ended(self) -> bool:
        """True when the log is closed and no more events will follow."""
        return self._log.closed

    def release(self) -> None:
        """Stop watching."""
        self._log.release(self)


class Hub:
    """A log for every collection."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._floor = 0
        self._closed = False
        self._logs: defaultdict[ResourceKey, Log] = defaultdict(lambda: Log(self._limit, self._floor))

    def start(self, version: int) -> None:
        """Start the history at `version`: watches from older versions get 410."""
        self._floor = version

    def restart(self, version: int) -> list[Event]:
        """Begin the history of every collection at `version`; every watch gets 410. Returns the events before it."""
        self._floor = version
        return [event for log in self._logs.values() for event in log.expire(version)]

    def publish(self, resource: ResourceKey, event: Event) -> None:
        """Append an event to its collection's log."""
        self._logs[resource].publish(event)

    def log(self, resource: ResourceKey) -> Log:
        """The log of a collection."""
        return self._logs[resource]

    def open(self, resource: ResourceKey, after: int) -> Cursor:
        """A cursor at the first event newer than `after`. Raises StatusError 410."""
        log = self._logs[resource]
        log.closed = log.closed or self._closed
        return log.open(after)

    def drop(self, resource: ResourceKey, version: int) -> None:
        """Remove the log of a collection whose CRD was deleted at `version`, and end its watches."""
        self._logs[resource].close()
        self._logs[resource] = Log(self._limit, version)

    def close(self) -> None:
        """End every watch."""
        self._closed = True
        for log in self._logs.values():
            log.close()
