"""Encodes records for responses: objects, lists, tables, metadata only; in JSON or YAML."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
import yaml

from metal.apiserver.machinery.records import Record
from metal.apiserver.machinery.resources import Resource
from metal.apiserver.machinery.results import Listing
from metal.apiserver.printing import table
from metal.apiserver.verbs import shaping
from metal.apiserver.web.negotiate import YAML, Form, Shape

Obj = dict[str, Any]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

OBJECT_SHAPES = (Shape.TABLE, Shape.PARTIAL)
LIST_SHAPES = (Shape.TABLE, Shape.PARTIAL_LIST)


def encode(value: Any, form: Form) -> bytes:
    """A value in the form's media type."""
    return as_media(_encode(value), form)


def as_media(body: bytes, form: Form) -> bytes:
    """JSON in the form's media type."""
    if form.media != YAML:
        return body
    text: str = yaml.safe_dump(_decode(body), sort_keys=False, allow_unicode=True)
    return text.encode()


def shown(resource: Resource, record: Record) -> bytes:
    """The JSON of a record in the requested version (conversion strategy None)."""
    # The response of an action has another kind.
    if record.api_version == resource.api_version or record.key.resource != resource.key:
        return record.body
    return _encode(shaping.at_version(resource, record.decode()))


class Renderer:
    """Encodes the responses of one request. include: content of each row of a table."""

    def __init__(self, resource: Resource, form: Form, *, now: datetime, include: str = "Metadata") -> None:
        self._resource = resource
        self._form = form
        self._now = now
        self._include = include or "Metadata"

    def one(self, record: Record) -> bytes:
        """The body for one object, in the form that the client accepts."""
        return as_media(self._one(record, headers=True), self._form)

    def event(self, kind: str, record: Record, *, first: bool) -> bytes:
        """One event of a watch. Only the first table has column definitions."""
        return b'{"type":"%s","object":%s}\n' % (kind.encode(), self._one(record, headers=first))

    def bookmark(self, version: int, *, initial_end: bool) -> bytes:
        """A bookmark of a watch."""
        metadata: Obj = {"resourceVersion": str(version)}
        if initial_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        obj: Obj = {"kind": self._resource.kind, "apiVersion": self._resource.api_version, "metadata": metadata}
        if self._form.shape is Shape.PARTIAL:
            obj = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
        if self._form.shape is Shape.TABLE:
            obj = self._table((), metadata, headers=False)
        return b'{"type":"BOOKMARK","object":%s}\n' % _encode(obj)

    def _one(self, record: Record, *, headers: bool) -> bytes:
        if self._form.shape is Shape.TABLE:
            meta = {"resourceVersion": str(record.resource_version)}
            return _encode(self._table((record,), meta, headers=headers))
        if self._form.shape is Shape.PARTIAL:
            return _encode(self._partial(record))
        return shown(self._resource, record)

    def many(self, listing: Listing) -> bytes:
        """The body for a list, in the form that the client accepts."""
        metadata: Obj = {"resourceVersion": str(listing.resource_version)}
        if listing.continue_:
            metadata["continue"] = listing.continue_
        if listing.remaining is not None:
            metadata["remainingItemCount"] = listing.remaining
        if self._form.shape is Shape.TABLE:
            return encode(self._table(listing.records, metadata, headers=True), self._form)
        if self._form.shape is Shape.PARTIAL_LIST:
            items = [self._partial(record) for record in listing.records]
            head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
            return encode({**head, "metadata": metadata, "items": items}, self._form)
        return as_media(self._list(metadata, listing.records), self._form)

    def _list(self, metadata: Obj, records: Sequence[Record]) -> bytes:
        # Joined as bytes, so that the items of a list are not decoded and encoded again.
        head = _encode({"kind": self._resource.list_kind, "apiVersion": self._resource.api_version})
        items = b",".join(shown(self._resource, record) for record in records)
        return b'%s,"metadata":%s,"items":[%s]}' % (head[:-1], _encode(metadata), items)

    def _table(self, records: Sequence[Record], metadata: Mapping[str, Any], *, headers: bool) -> Obj:
        found = table.render(
            self._resource.columns,
            [_decode(shown(self._resource, record)) for record in records],
            include=self._include,
            now=self._now,
            metadata=metadata,
            headers=headers,
        )
        return {**found, "apiVersion": f"meta.k8s.io/{self._form.version}"}

    def _partial(self, record: Record) -> Obj:
        meta = record.decode()["metadata"]
        return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
