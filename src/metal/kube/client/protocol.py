"""The one contract for talking to a Kubernetes API. Implemented over HTTP (`http.py`) and in process (`apiserver`)."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from metal.kube.client.resources import Resource
from metal.kube.meta.objects import Kind, Object

T = TypeVar("T", bound=Object)


@dataclass(frozen=True)
class Page(Generic[T]):
    """A complete list and the resourceVersion from which a watch continues it."""

    items: tuple[T, ...]
    resource_version: str


class EventType(StrEnum):
    """Types of watch events. ERROR never reaches a caller: it is raised."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True)
class WatchEvent(Generic[T]):
    """One change. For a BOOKMARK only resource_version counts and object is None."""

    type: EventType
    object: T | None
    resource_version: str


class Client(Protocol):
    """Typed access to an API. Every method raises a subclass of `errors.ApiError`.

    Objects go in as plain JSON mappings (what is not mentioned is left alone) and come out as the kind's struct.
    `namespace` stays empty for cluster-scoped kinds.
    """

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        """Read one object, always the newest version."""
        ...

    async def list(
        self, kind: Kind[T], namespace: str = "", *, labels: str = "", fields: str = "", resource_version: str = ""
    ) -> Page[T]:
        """Read all objects of a kind (of one namespace when given), following `continue` to the end.

        labels and fields are selectors in kubectl's syntax. resource_version "0" allows a cached answer.
        """
        ...

    def watch(
        self, kind: Kind[T], namespace: str = "", *, resource_version: str, labels: str = "", fields: str = ""
    ) -> AsyncIterator[WatchEvent[T]]:
        """Changes after resource_version, with bookmarks. Ends when the server closes; raises Expired on 410."""
        ...

    async def create(self, kind: Kind[T], obj: Mapping[str, Any]) -> T:
        """Create. apiVersion and kind are filled in; metadata.name or generateName is needed."""
        ...

    async def patch(self, kind: Kind[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        """JSON merge patch (RFC 7396) of everything but status. metadata.resourceVersion makes it conditional."""
        ...

    async def patch_status(self, kind: Kind[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        """JSON merge patch of the status subresource; `patch` is the whole body, e.g. {"status": {...}}."""
        ...

    async def apply(self, kind: Kind[T], obj: Mapping[str, Any], *, manager: str, force: bool = True) -> T:
        """Server-side apply (KEP-555) of the fields in obj, owned by `manager`."""
        ...

    async def delete(
        self, kind: Kind[T], name: str, namespace: str = "", *, uid: str = "", resource_version: str = ""
    ) -> None:
        """Delete in the background; uid and resource_version are preconditions when given."""
        ...

    async def resources(self, api_version: str) -> tuple[Resource, ...]:
        """The kinds of one group and version. Raises NotFound when the API has no such group or version."""
        ...

    async def aclose(self) -> None:
        """Release sockets and tasks."""
        ...
