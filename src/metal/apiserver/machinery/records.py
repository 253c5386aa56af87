"""Objects as the store holds them: JSON bytes, with the metadata fields that lookups need parsed beside them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec


class ResourceKey(NamedTuple):
    """The collection that holds an object, whichever API version reads it."""

    group: str
    plural: str

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


NAMESPACES = ResourceKey("", "namespaces")
SERVICE_ACCOUNTS = ResourceKey("", "serviceaccounts")
CRDS = ResourceKey("apiextensions.k8s.io", "customresourcedefinitions")


class ObjectKey(NamedTuple):
    """The collection, namespace and name of an object."""

    resource: ResourceKey
    namespace: str
    name: str


class Owner(msgspec.Struct, frozen=True, rename="camel"):
    """An entry of metadata.ownerReferences."""

    uid: str
    api_version: str = ""
    kind: str = ""
    name: str = ""
    block_owner_deletion: bool | None = None


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = "0"
    labels: dict[str, str] | None = None
    finalizers: tuple[str, ...] | None = None
    deletion_timestamp: str | None = None
    owner_references: tuple[Owner, ...] | None = None


class _Envelope(msgspec.Struct, frozen=True, rename="camel"):
    metadata: _Meta
    api_version: str = ""


_decoder = msgspec.json.Decoder(_Envelope)
_any = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Record:
    """One version of one object."""

    key: ObjectKey
    resource_version: int
    uid: str
    api_version: str
    labels: Mapping[str, str]
    references: tuple[Owner, ...]
    finalizers: tuple[str, ...]
    deleting: bool
    body: bytes

    @classmethod
    def parse(cls, resource: ResourceKey, body: bytes) -> "Record":
        """A record from stored JSON."""
        envelope = _decoder.decode(body)
        meta = envelope.metadata
        return cls(
            key=ObjectKey(resource, meta.namespace, meta.name),
            resource_version=int(meta.resource_version or 0),
            uid=meta.uid,
            api_version=envelope.api_version,
            labels=meta.labels or {},
            references=meta.owner_references or (),
            finalizers=meta.finalizers or (),
            deleting=meta.deletion_timestamp is not None,
            body=body,
        )

    @classmethod
    def answer(cls, resource: ResourceKey, obj: Mapping[str, Any]) -> "Record":
        """An object that is returned and not stored."""
        version = str(obj.get("apiVersion", ""))
        return cls(ObjectKey(resource, "", ""), 0, "", version, {}, (), (), False, encode(obj))

    @property
    def owners(self) -> tuple[str, ...]:
        """uids of the owners."""
        return tuple(owner.uid for owner in self.references)

    def decode(self) -> dict[str, Any]:
        """A fresh, mutable copy of the object."""
        obj: dict[str, Any] = _any.decode(self.body)
        return obj

    def at_version(self, resource_version: int) -> "Record":
        """The same object stamped with another resourceVersion."""
        obj = self.decode()
        obj["metadata"]["resourceVersion"] = str(resource_version)
        return Record.parse(self.key.resource, _encoder.encode(obj))


def order(record: Record) -> str:
    """Sort key of a record in its collection: that of its key in etcd."""
    key = record.key
    return f"{key.namespace}/{key.name}" if key.namespace else key.name


def encode(obj: Mapping[str, Any]) -> bytes:
    """JSON bytes of an object."""
    return _encoder.encode(obj)


class Change(StrEnum):
    """Types of changes, spelled like the types of watch events."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True)
class Event:
    """One committed change. For DELETED `record` is the last state, stamped with the deletion's version."""

    type: Change
    record: Record
    previous: Record | None
    resource_version: int
