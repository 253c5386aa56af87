"""What all kinds share: metadata, conditions, references, and `Kind`, the description of a resource."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Generic, TypeVar

import msgspec

from metal.api.markers import Choice, Length, ListMap, Pattern, Required, Text

_QUALIFIED = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)


class Model(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, rename="camel"):
    """Base of all structs that are encoded as JSON: immutable, camelCase, defaults omitted."""


class OwnerReference(Model, frozen=True, kw_only=True):
    """An entry of metadata.ownerReferences."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Model, frozen=True, kw_only=True):
    """The fields of an object's metadata that controllers read."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Condition(Model, frozen=True, kw_only=True):
    """Condition is one aspect of the observed state of the object, as metav1.Condition."""

    type: Annotated[str, Pattern(_QUALIFIED), Length(most=316)]
    """Type of the condition, in CamelCase."""
    status: Annotated[str, Choice("True", "False", "Unknown")]
    """Status of the condition: True, False or Unknown."""
    last_transition_time: Annotated[datetime | None, Required()] = None
    """Time at which the status last changed."""
    reason: Annotated[str, Pattern(r"^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?)?$"), Length(most=1024)] = ""
    """Machine-readable reason for the current status, in CamelCase."""
    message: Text = msgspec.field(default_factory=str)  # so that an empty one is written: metav1.Condition demands it
    """Human-readable details: what is observed, what the controller waits for, and what to do."""
    observed_generation: int = 0
    """The metadata.generation of the object that this condition was computed from."""


Conditions = Annotated[tuple[Condition, ...], ListMap("type")]
"""The conditions of an object, identified by their type."""

T = TypeVar("T")


@dataclass(frozen=True)
class Column:
    """A printer column of `kubectl get` (CustomResourceColumnDefinition)."""

    name: str
    json_path: str
    type: str = "string"
    priority: int = 0
    description: str = ""


@dataclass(frozen=True)
class Kind(Generic[T]):
    """A resource and the struct that decodes it. `metal.kube` uses only these attributes."""

    group: str
    version: str
    kind: str
    plural: str
    struct: type[T]
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = field(default=(), repr=False)

    @property
    def api_version(self) -> str:
        """`group/version`, or the bare version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version
