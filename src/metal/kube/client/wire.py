"""JSON of the Kubernetes API on the wire: lists, watch events, error bodies, and where things live."""

import re
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from metal.kube.client.errors import ApiError, BadRequest, Malformed, from_status
from metal.kube.client.protocol import EventType, WatchEvent
from metal.kube.client.resources import Resource, from_list
from metal.kube.meta.objects import Kind, Object

T = TypeVar("T", bound=Object)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for JSON that is not what was expected, not UTF-8, or nested too deeply."""
_MAX_LINE = 64 * 1024 * 1024
"""Bytes of one watch event that are buffered before giving up; etcd stores at most a few MiB."""


class ListMeta(msgspec.Struct):
    """metadata of a list."""

    resource_version: str = msgspec.field(default="", name="resourceVersion")
    continue_: str = msgspec.field(default="", name="continue")


class ObjectList(msgspec.Struct, Generic[T]):
    """One page of a list."""

    metadata: ListMeta
    items: list[T] | None = None


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Version(msgspec.Struct):
    metadata: ListMeta


_event_decoder = msgspec.json.Decoder(_Event)
_version_decoder = msgspec.json.Decoder(_Version)


class Codec(Generic[T]):
    """Decodes objects, pages and watch lines of one kind. Raises Malformed, or what an ERROR event says."""

    def __init__(self, kind: Kind[T]) -> None:
        self._kind = kind
        self._object = msgspec.json.Decoder(kind.struct)
        self._page = msgspec.json.Decoder(ObjectList[kind.struct])  # type: ignore[name-defined]  # made at run time

    def object(self, body: bytes | msgspec.Raw) -> T:
        """Decode one object."""
        try:
            return self._object.decode(body)
        except _UNREADABLE as exc:
            raise Malformed(f"cannot read a {self._kind.kind}: {exc}{_culprit(bytes(body))}") from None

    def page(self, body: bytes) -> ObjectList[T]:
        """Decode one page of a list."""
        try:
            page: ObjectList[T] = self._page.decode(body)
        except _UNREADABLE as exc:
            raise Malformed(f"cannot read a list of {self._kind.kind}: {exc}{_culprit_in_list(body, exc)}") from None
        return page

    def event(self, line: bytes) -> WatchEvent[T]:
        """Decode one line of a watch."""
        try:
            event = _event_decoder.decode(line)
            if event.type == "BOOKMARK":
                return WatchEvent(
                    EventType.BOOKMARK, None, _version_decoder.decode(event.object).metadata.resource_version
                )
            if event.type == "ERROR":
                raise from_status(msgspec.json.decode(event.object))
            type = EventType(event.type)
        except (*_UNREADABLE, ValueError) as exc:
            raise Malformed(f"cannot read a watch event of {self._kind.kind}: {exc}") from None
        obj = self.object(event.object)
        return WatchEvent(type, obj, obj.metadata.resource_version)


def encode(body: Any) -> bytes:
    """JSON of a request body. Raises BadRequest for a value that JSON cannot hold, such as a lone surrogate."""
    try:
        return msgspec.json.encode(body)
    except (TypeError, ValueError, OverflowError, RecursionError) as exc:
        raise BadRequest(f"the body of the request cannot be encoded: {exc}") from None


def resources(api_version: str, body: bytes) -> tuple[Resource, ...]:
    """The kinds in an APIResourceList. Raises Malformed."""
    try:
        return from_list(api_version, msgspec.json.decode(body)["resources"])
    except (*_UNREADABLE, KeyError, TypeError) as exc:
        raise Malformed(f"cannot read the list of kinds of {api_version}: {exc!r}") from None


def _culprit(body: bytes) -> str:
    try:
        return _describe(msgspec.json.decode(body))
    except _UNREADABLE:
        return ""


def _culprit_in_list(body: bytes, exc: Exception) -> str:
    found = re.search(r"\$\.items\[(\d+)\]", str(exc))
    return _describe(msgspec.json.decode(body)["items"][int(found[1])]) if found else ""


def _describe(obj: Any) -> str:
    meta = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(meta, dict):
        return ""
    return f" (object {meta.get('namespace', '')}/{meta.get('name', '')})"


class Lines:
    """Splits a stream on b"\\n" and nothing else; a line may have up to 64 MiB. An unfinished end is kept back."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that end in this chunk. Raises Malformed when one is too long."""
        *complete, rest = chunk.split(b"\n")
        if complete:
            complete[0] = b"".join((*self._parts, complete[0]))
            self._parts, self._size = [], 0
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
        if self._size > _MAX_LINE:
            raise Malformed(f"a watch event is longer than {_MAX_LINE} bytes")
        return [line for line in complete if line.strip()]


def collection_path(kind: Kind[Any], namespace: str) -> str:
    """Path of all objects of a kind; of every namespace when none is given."""
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    where = f"/namespaces/{quote(namespace, safe='')}" if kind.namespaced and namespace else ""
    return f"{root}{where}/{kind.plural}"


def object_path(kind: Kind[Any], name: str, namespace: str) -> str:
    """Path of one object. Raises BadRequest when name or namespace is missing."""
    if not name:
        raise BadRequest(f"{kind.kind}: metadata.name is missing")
    return f"{within(kind, namespace)}/{quote(name, safe='')}"


def within(kind: Kind[Any], namespace: str) -> str:
    """Path under which objects are created. Raises BadRequest when a namespaced kind comes without namespace."""
    if kind.namespaced and not namespace:
        raise BadRequest(f"{kind.kind} lives in a namespace: metadata.namespace is missing")
    return collection_path(kind, namespace)


def typed(kind: Kind[Any], obj: Mapping[str, Any]) -> dict[str, Any]:
    """The object with apiVersion and kind filled in."""
    return {**obj, "apiVersion": kind.api_version, "kind": kind.kind}


def error(code: int, body: bytes, headers: Mapping[str, str]) -> ApiError:
    """The exception for an answer that is not a success."""
    status: Any = None
    with suppress(*_UNREADABLE):  # proxies answer in HTML: its first words become the message
        status = msgspec.json.decode(body)
    if not isinstance(status, dict) or status.get("kind") != "Status":
        status = {"message": f"HTTP {code}: {body[:200].decode(errors='replace').strip() or 'no body'}"}
    return from_status({**status, "code": code}, retry_after=retry_after(headers))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Retry-After in seconds (RFC 9110 §10.2.3); a date counts from the answer's own Date."""
    value = headers.get("Retry-After", "")
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        return max(0.0, (parsedate_to_datetime(value) - parsedate_to_datetime(headers["Date"])).total_seconds())
    except (ValueError, TypeError, KeyError):
        return None
