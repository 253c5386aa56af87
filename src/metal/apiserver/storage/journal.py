"""The contract of a journal, which makes writes durable, and a journal in memory."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class JournalError(Exception):
    """The journal cannot be used; the message names the cause and the way out."""


@dataclass(frozen=True)
class Change:
    """One write: the whole new body of an object, or None for its removal."""

    group: str
    plural: str
    namespace: str
    name: str
    resource_version: int
    body: bytes | None


@dataclass(frozen=True)
class Loaded:
    """The content of a journal: the newest resourceVersion and every existing object."""

    resource_version: int = 0
    objects: Sequence[Change] = ()


Done = Callable[[BaseException | None], Coroutine[Any, Any, None] | None]
"""Called when the changes are durable (None) or lost (the error), in the loop's thread, in the order of append.

It may return work that must end before the next one is called."""


class Journal(Protocol):
    """An ordered log of changes. When an append fails, all pending appends fail with it."""

    async def open(self) -> Loaded:
        """Read everything back. Raises JournalError."""
        ...

    def append(self, done: Done, *changes: Change) -> None:
        """Make the changes durable, all of them or none, then call done."""
        ...

    async def check(self) -> None:
        """Make sure that changes can be made durable now. Raises JournalError."""
        ...

    async def close(self) -> None:
        """Finish what was appended and release the file."""
        ...


class MemoryJournal:
    """Stores nothing: every change is done at once. It has no thread, so tests can run in virtual time."""

    async def open(self) -> Loaded:
        """Return an empty journal: nothing is kept between processes."""
        return Loaded()

    def append(self, done: Done, *changes: Change) -> None:
        """Call `done` at once; nothing is stored."""
        if (work := done(None)) is not None:
            _finish(work)

    async def check(self) -> None:
        """Always possible."""

    async def close(self) -> None:
        """Nothing to release."""


def _finish(work: Coroutine[Any, Any, None]) -> None:
    """Run work to its end without letting other tasks run: it waits for nothing but its turn."""
    try:
        while True:
            work.send(None)
    except StopIteration:
        pass
