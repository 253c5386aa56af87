"""Options of requests, independent of the transport."""

from dataclasses import dataclass
from enum import StrEnum


class PatchType(StrEnum):
    """Format of the body of a PATCH; the values are its media types."""

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

    agent: the field manager when none is given, from the user agent. force: for server-side apply only.
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
    """Options of watch. timeout in seconds; with None the server chooses one.

    initial_events: whether it begins with the objects that exist; None derives it from resource_version.
    """

    labels: str = ""
    fields: str = ""
    resource_version: str = ""
    bookmarks: bool = False
    initial_events: bool | None = None
    timeout: float | None = None


class Propagation(StrEnum):
    """What happens to the dependents of a deleted object."""

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
