"""Bodies in the protobuf of Kubernetes, for the messages that kubectl sends (k8s.io/api, generated.proto).

kubectl encodes built-in kinds in protobuf for `create secret`, `create role`, `auth can-i` and others, and cannot fall
back to JSON.
"""

import base64
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_DEPTH = 20


class ProtobufError(ValueError):
    """The bytes are not valid protobuf."""


class UnknownKindError(ValueError):
    """Protobuf is not supported for this kind."""


class Field(NamedTuple):
    """How one field is decoded: `many` for repeated fields, `keyed` for maps."""

    name: str
    read: Callable[[Any, int], Any]
    many: bool = False
    keyed: bool = False


Message = dict[int, Field]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ProtobufError("a number is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
        shift += 7


def _wire(data: bytes) -> Iterator[tuple[int, Any]]:
    """Field numbers and raw values: an int for varints, bytes for everything with a length."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if kind == 2:
            length, at = _varint(data, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ProtobufError(f"wire type {kind} is not in use")
        if at + length > len(data):
            raise ProtobufError("a field is cut off")
        yield number, data[at : at + length]
        at += length


def _bytes(value: Any, depth: int) -> bytes:
    if not isinstance(value, bytes):
        raise ProtobufError("a number stands where bytes are expected")
    return value


def _text(value: Any, depth: int) -> str:
    try:
        return _bytes(value, depth).decode()
    except UnicodeDecodeError:
        raise ProtobufError("a text is not UTF-8") from None


def _base64(value: Any, depth: int) -> str:
    return base64.b64encode(_bytes(value, depth)).decode()


def _int(value: Any, depth: int) -> int:
    if not isinstance(value, int):
        raise ProtobufError("bytes stand where a number is expected")
    return value - (1 << 64) if value >> 63 else value


def _bool(value: Any, depth: int) -> bool:
    return bool(_int(value, depth))


def _moment(digits: int) -> Callable[[Any, int], str | None]:
    def read(value: Any, depth: int) -> str | None:
        parts = dict(_wire(_bytes(value, depth)))
        if not parts:
            return None
        try:
            moment = datetime.fromtimestamp(_int(parts.get(1, 0), depth), UTC)
        except (ValueError, OverflowError, OSError):
            raise ProtobufError("a time is out of range") from None
        fraction = f".{_int(parts.get(2, 0), depth) // 1000:06d}" if digits else ""
        return moment.strftime("%Y-%m-%dT%H:%M:%S") + fraction + "Z"

    return read


_time, _micro = _moment(0), _moment(6)


def _message(fields: Callable[[], Message]) -> Callable[[Any, int], dict[str, Any]]:
    return lambda value, depth: _decode(fields(), _bytes(value, depth), depth + 1)


def _decode(message: Message, data: bytes, depth: int) -> dict[str, Any]:
    if depth > _DEPTH:
        raise ProtobufError("nested too deeply")
    out: dict[str, Any] = {}
    for number, raw in _wire(data):
        field = message.get(number)
        if field is None:
            continue
        if field.keyed:
            entry = dict(_wire(_bytes(raw, depth)))
            out.setdefault(field.name, {})[_text(entry.get(1, b""), depth)] = field.read(entry.get(2, b""), depth)
        elif field.many:
            out.setdefault(field.name, []).append(field.read(raw, depth))
        else:
            out[field.name] = field.read(raw, depth)
    # Go encodes empty strings in protobuf and omits them in JSON.
    return {name: value for name, value in out.items() if value not in ("", None)}


def _fields(*rows: tuple[Any, ...]) -> Message:
    return {row[0]: Field(*row[1:]) for row in rows}


def _texts(*names: tuple[int, str]) -> Message:
    return {number: Field(name, _text) for number, name in names}


_OWNER = {**_texts((1, "kind"), (3, "name"), (4, "uid"), (5, "apiVersion"))} | _fields(
    (6, "controller", _bool), (7, "blockOwnerDeletion", _bool)
)
_META = {
    **_texts((1, "name"), (2, "generateName"), (3, "namespace"), (5, "uid"), (6, "resourceVersion")),
    **_fields(
        (7, "generation", _int),
        (8, "creationTimestamp", _time),
        (9, "deletionTimestamp", _time),
        (11, "labels", _text, False, True),
        (12, "annotations", _text, False, True),
        (13, "ownerReferences", _message(lambda: _OWNER), True),
        (14, "finalizers", _text, True),
    ),
}
_meta = _message(lambda: _META)
_REFERENCE = _texts(
    (1, "kind"), (2, "namespace"), (3, "name"), (4, "uid"), (5, "apiVersion"), (6, "resourceVersion"), (7, "fieldPath")
)
_reference = _message(lambda: _REFERENCE)

_SECRET = _fields(
    (1, "metadata", _meta),
    (2, "data", _base64, False, True),
    (3, "type", _text),
    (4, "stringData", _text, False, True),
    (5, "immutable", _bool),
)
_CONFIGMAP = _fields(
    (1, "metadata", _meta),
    (2, "data", _text, False, True),
    (3, "binaryData", _base64, False, True),
    (4, "immutable", _bool),
)
_NAMESPACE = _fields((1, "metadata", _meta))
_SERVICE_ACCOUNT = _fields((1, "metadata", _meta), (2, "secrets", _reference, True))
_EVENT_SOURCE = _texts((1, "component"), (2, "host"))
_SERIES = _fields((1, "count", _int), (2, "lastObservedTime", _micro))
_EVENT = {
    **_texts((3, "reason"), (4, "message"), (9, "type"), (12, "action")),
    **_texts((14, "reportingComponent"), (15, "reportingInstance")),
    **_fields(
        (1, "metadata", _meta),
        (2, "involvedObject", _reference),
        (5, "source", _message(lambda: _EVENT_SOURCE)),
        (6, "firstTimestamp", _time),
        (7, "lastTimestamp", _time),
        (8, "count", _int),
        (10, "eventTime", _micro),
        (11, "series", _message(lambda: _SERIES)),
        (13, "related", _reference),
    ),
}
_LEASE_SPEC = {
    **_texts((1, "holderIdentity"), (6, "strategy"), (7, "preferredHolder")),
    **_fields(
        (2, "leaseDurationSeconds", _int), (3, "acquireTime", _micro), (4, "renewTime", _micro),
        (5, "leaseTransitions", _int),
    ),
}  # fmt: skip
_LEASE = _fields((1, "metadata", _meta), (2, "spec", _message(lambda: _LEASE_SPEC)))
_ASKED_RESOURCE = _texts(
    (1, "namespace"), (2, "verb"), (3, "group"), (4, "version"), (5, "resource"), (6, "subresource"), (7, "name")
)
_ASKED_PATH = _texts((1, "path"), (2, "verb"))
_ACCESS_SPEC = _fields(
    (1, "resourceAttributes", _message(lambda: _ASKED_RESOURCE)),
    (2, "nonResourceAttributes", _message(lambda: _ASKED_PATH)),
)
_ACCESS = _fields((1, "metadata", _meta), (2, "spec", _message(lambda: _ACCESS_SPEC)))
_RULES_SPEC = _texts((1, "namespace"))
_RULES = _fields((1, "metadata", _meta), (2, "spec", _message(lambda: _RULES_SPEC)))
_RULE = _fields(
    (1, "verbs", _text, True),
    (2, "apiGroups", _text, True),
    (3, "resources", _text, True),
    (4, "resourceNames", _text, True),
    (5, "nonResourceURLs", _text, True),
)
_EXPRESSION = _fields((1, "key", _text), (2, "operator", _text), (3, "values", _text, True))
_LABEL_SELECTOR = _fields(
    (1, "matchLabels", _text, False, True),
    (2, "matchExpressions", _message(lambda: _EXPRESSION), True),
)
_AGGREGATION = _fields((1, "clusterRoleSelectors", _message(lambda: _LABEL_SELECTOR), True))
_ROLE = _fields(
    (1, "metadata", _meta),
    (2, "rules", _message(lambda: _RULE), True),
    (3, "aggregationRule", _message(lambda: _AGGREGATION)),
)
_SUBJECT = _texts((1, "kind"), (2, "apiGroup"), (3, "name"), (4, "namespace"))
_ROLE_REFERENCE = _texts((1, "apiGroup"), (2, "kind"), (3, "name"))
_BINDING = _fields(
    (1, "metadata", _meta),
    (2, "subjects", _message(lambda: _SUBJECT), True),
    (3, "roleRef", _message(lambda: _ROLE_REFERENCE)),
)
_BOUND = _texts((1, "kind"), (2, "apiVersion"), (3, "name"), (4, "uid"))
_TOKEN_SPEC = _fields(
    (1, "audiences", _text, True),
    (3, "boundObjectRef", _message(lambda: _BOUND)),
    (4, "expirationSeconds", _int),
)
_TOKEN = _fields((1, "metadata", _meta), (2, "spec", _message(lambda: _TOKEN_SPEC)))
_PRECONDITIONS = _texts((1, "uid"), (2, "resourceVersion"))
_DELETE = _fields(
    (1, "gracePeriodSeconds", _int),
    (2, "preconditions", _message(lambda: _PRECONDITIONS)),
    (3, "orphanDependents", _bool),
    (4, "propagationPolicy", _text),
    (5, "dryRun", _text, True),
)

_KINDS: dict[str, Message] = {
    "Secret": _SECRET,
    "ConfigMap": _CONFIGMAP,
    "Namespace": _NAMESPACE,
    "ServiceAccount": _SERVICE_ACCOUNT,
    "Event": _EVENT,
    "Lease": _LEASE,
    "SelfSubjectReview": _NAMESPACE,
    "SelfSubjectAccessReview": _ACCESS,
    "SelfSubjectRulesReview": _RULES,
    "Role": _ROLE,
    "ClusterRole": _ROLE,
    "RoleBinding": _BINDING,
    "ClusterRoleBinding": _BINDING,
    "TokenRequest": _TOKEN,
    "DeleteOptions": _DELETE,
}
_TYPE = _texts((1, "apiVersion"), (2, "kind"))
_ENVELOPE = _fields((1, "type", _message(lambda: _TYPE)), (2, "raw", _bytes))


def decode(body: bytes) -> dict[str, Any]:
    """The object in a runtime.Unknown envelope. Raises ProtobufError or UnknownKindError."""
    if not body.startswith(_MAGIC):
        raise ProtobufError("the magic number k8s\\0 is missing")
    envelope = _decode(_ENVELOPE, body[len(_MAGIC) :], 0)
    named = envelope.get("type", {})
    message = _KINDS.get(named.get("kind", ""))
    if message is None:
        raise UnknownKindError(str(named.get("kind", "")))
    return {**named, **_decode(message, envelope.get("raw", b""), 0)}
