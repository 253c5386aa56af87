"""Results of reads: pages of lists, and events of watches."""

from dataclasses import dataclass
from enum import StrEnum

from metal.apiserver.machinery.records import Record


@dataclass(frozen=True)
class Listing:
    """A page of a list."""

    records: list[Record]
    resource_version: int
    continue_: str = ""
    remaining: int | None = None


class ItemType(StrEnum):
    """Types of watch events."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True)
class WatchItem:
    """One event of a watch. A BOOKMARK has no record; `initial_end` marks the one that ends the initial events."""

    type: ItemType
    record: Record | None
    resource_version: int
    initial_end: bool = False
