"""What makes a write durable: the contract, and the journal that forgets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol


class JournalError(Exception):
    """The journal cannot be used; the sentence says why and what to do."""


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
    """What a journal remembered: the newest resourceVersion and every living object."""

    resource_version: int = 0
    objects: Sequence[Change] = ()


Done = Callable[[BaseException | None], None]
"""Told once the change is durable (None) or lost (the error). Called in the loop's thread, in the order of append."""


class Journal(Protocol):
    """An ordered log of changes. After one append failed, all that were appended and not yet done fail with it."""

    async def open(self) -> Loaded:
        """Read everything back. Raises JournalError."""
        ...

    def append(self, done: Done, *changes: Change) -> None:
        """Make the changes durable, all of them or none, then call done."""
        ...

    async def close(self) -> None:
        """Finish what was appended and release the file."""
        ...


class MemoryJournal:
    """Keeps nothing: every change is done at once. No thread, so that virtual time can drive it."""

    async def open(self) -> Loaded:
        """An empty past."""
        return Loaded()

    def append(self, done: Done, *changes: Change) -> None:
        """Done at once."""
        done(None)

    async def close(self) -> None:
        """Nothing to release."""
