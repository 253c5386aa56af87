"""What this package knows of an object: its metadata and its kind. Structural, so that any struct type fits."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol, TypeVar


class OwnerReference(Protocol):
    """One entry of metadata.ownerReferences."""

    @property
    def api_version(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def controller(self) -> bool: ...


class Metadata(Protocol):
    """metadata of an object."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def annotations(self) -> Mapping[str, str]: ...
    @property
    def finalizers(self) -> Sequence[str]: ...
    @property
    def owner_references(self) -> Sequence[OwnerReference]: ...
    @property
    def deletion_timestamp(self) -> datetime | None: ...


class Object(Protocol):
    """Anything with metadata."""

    @property
    def metadata(self) -> Metadata: ...


T_co = TypeVar("T_co", bound=Object, covariant=True)


class Kind(Protocol[T_co]):
    """Describes a resource: where it lives and which struct decodes it."""

    @property
    def group(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def plural(self) -> str: ...
    @property
    def namespaced(self) -> bool: ...
    @property
    def struct(self) -> type[T_co]: ...
    @property
    def api_version(self) -> str: ...


class Key(NamedTuple):
    """Identifies one object of a kind. Cluster-scoped objects have an empty namespace."""

    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(obj: Object) -> Key:
    """The key of an object."""
    return Key(obj.metadata.name, obj.metadata.namespace)
