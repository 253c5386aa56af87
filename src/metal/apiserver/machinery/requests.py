"""What a request says, free of any transport."""

from dataclasses import dataclass, field
from enum import StrEnum

from metal.apiserver.machinery.records import ObjectKey, Record
from metal.apiserver.machinery.resources import Resource
from metal.apiserver.machinery.status import Who


@dataclass(frozen=True)
class User:
    """Who asks. extra: what else was learnt while the user was authenticated."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


SYSTEM = User("system:apiserver", groups=("system:masters",))
"""The API server itself: garbage collection, namespaces, start-up."""


class PatchType(StrEnum):
    """How the body of a PATCH is meant; the values are its media types."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class FieldValidation(StrEnum):
    """What happens to fields that the schema does not know."""

    IGNORE = "Ignore"
    WARN = "Warn"
    STRICT = "Strict"


@dataclass(frozen=True)
class WriteOptions:
    """Options of create, update, patch and apply.

    agent stands in for a manager that was not named; force belongs to an apply.
    """

    dry_run: bool = False
    manager: str = ""
    agent: str = ""
    field_validation: FieldValidation = FieldValidation.WARN
    force: bool | None = None


@dataclass(frozen=True)
class ListOptions:
    """Options of list. resource_version and match as in the API concepts page of Kubernetes; limit 0 is no limit."""

    labels: str = ""
    fields: str = ""
    limit: int = 0
    continue_: str = ""
    resource_version: str = ""
    match: str = ""


@dataclass(frozen=True)
class WatchOptions:
    """Options of watch. timeout in seconds, None for the server's choice.

    initial_events: whether it begins with what is; None for what resource_version says.
    """

    labels: str = ""
    fields: str = ""
    resource_version: str = ""
    bookmarks: bool = False
    initial_events: bool | None = None
    timeout: float | None = None


class Propagation(StrEnum):
    """What becomes of the dependents of a deleted object."""

    ORPHAN = "Orphan"
    BACKGROUND = "Background"
    FOREGROUND = "Foreground"


@dataclass(frozen=True)
class DeleteOptions:
    """Options of delete; uid and resource_version are preconditions when given."""

    dry_run: bool = False
    propagation: Propagation | None = None
    uid: str = ""
    resource_version: str = ""


@dataclass(frozen=True)
class RequestContext:
    """One request: who wants what of which resource. `warnings` collects what the answer should carry.

    duplicates: fields that the body gave more than once, each as a sentence.
    """

    user: User
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    options: WriteOptions = WriteOptions()
    warnings: list[str] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)

    @property
    def key(self) -> ObjectKey:
        """Where the object lives."""
        return ObjectKey(self.resource.key, self.namespace, self.name)

    @property
    def who(self) -> Who:
        """How a Status names the object."""
        return self.resource.who(self.name)


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
