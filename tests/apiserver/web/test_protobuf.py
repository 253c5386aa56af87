"""Protobuf bodies as kubectl sends them, and bytes that are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.apiserver.web.protobuf import ProtobufError, UnknownKindError, decode


def varint(value: int) -> bytes:
    """Base-128."""
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, value: bytes | int) -> bytes:
    """A field of a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def envelope(version: str, kind: str, raw: bytes) -> bytes:
    """What travels: the magic number and runtime.Unknown."""
    named = field(1, version.encode()) + field(2, kind.encode())
    return b"k8s\x00" + field(1, named) + field(2, raw) + field(3, b"") + field(4, b"")


def entry(key: str, value: bytes) -> bytes:
    """An entry of a map."""
    return field(1, key.encode()) + field(2, value)


META = field(1, b"s") + field(2, b"") + field(3, b"default") + field(11, entry("a", b"b")) + field(8, b"")


def test_a_secret_is_read() -> None:
    """Bytes become base64, maps become objects, empty texts and times are left out."""
    raw = field(1, META) + field(2, entry("p", b"\x00\xff")) + field(3, b"Opaque") + field(5, 1)
    assert decode(envelope("v1", "Secret", raw)) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "default", "labels": {"a": "b"}},
        "data": {"p": "AP8="},
        "type": "Opaque",
        "immutable": True,
    }


def test_times_are_read() -> None:
    """Time has seconds, MicroTime six digits."""
    moment = field(1, 1_893_456_000) + field(2, 123_456_789)
    lease = field(2, field(2, 15) + field(4, moment))
    assert decode(envelope("coordination.k8s.io/v1", "Lease", lease))["spec"] == {
        "leaseDurationSeconds": 15,
        "renewTime": "2030-01-01T00:00:00.123456Z",
    }
    event = decode(envelope("v1", "Event", field(7, moment) + field(8, 3)))
    assert (event["lastTimestamp"], event["count"]) == ("2030-01-01T00:00:00Z", 3)


def test_roles_and_bindings_are_read() -> None:
    """Rules keep the empty group, which is the core one; subjects and the role are named."""
    rule = field(1, b"get") + field(1, b"list") + field(2, b"") + field(3, b"secrets")
    role = decode(envelope("rbac.authorization.k8s.io/v1", "Role", field(1, META) + field(2, rule)))
    assert role["rules"] == [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["secrets"]}]
    subject = field(1, b"ServiceAccount") + field(2, b"") + field(3, b"bot") + field(4, b"lab")
    named = field(1, b"rbac.authorization.k8s.io") + field(2, b"Role") + field(3, b"reader")
    binding = decode(envelope("rbac.authorization.k8s.io/v1", "RoleBinding", field(2, subject) + field(3, named)))
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "bot", "namespace": "lab"}]
    assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}


def test_token_requests_are_read() -> None:
    """Audiences, lifetime and the object that the token dies with."""
    spec = field(1, b"api") + field(3, field(1, b"Secret") + field(3, b"s")) + field(4, 600)
    request = decode(envelope("authentication.k8s.io/v1", "TokenRequest", field(2, spec)))
    bound = {"kind": "Secret", "name": "s"}
    assert request["spec"] == {"audiences": ["api"], "boundObjectRef": bound, "expirationSeconds": 600}


def test_negative_numbers_are_read() -> None:
    """int64 travels as two's complement."""
    raw = field(1, (1 << 64) - 5)
    assert decode(envelope("v1", "DeleteOptions", raw))["gracePeriodSeconds"] == -5


def test_unknown_fields_are_passed_over() -> None:
    """A newer kubectl may send more; fixed-width fields are skipped too."""
    more = field(99, b"new") + varint(98 << 3 | 1) + b"12345678" + varint(97 << 3 | 5) + b"1234"
    assert decode(envelope("v1", "ConfigMap", field(1, META) + more))["metadata"]["name"] == "s"


def test_unknown_kinds_are_told_apart() -> None:
    """What is no known kind is not garbage: the caller may be asked for JSON."""
    with pytest.raises(UnknownKindError, match="Pod"):
        decode(envelope("v1", "Pod", b""))


@pytest.mark.parametrize(
    "raw",
    [b"\x0a", b"\x0a\x05ab", b"\x80" * 11, b"\x0b", field(1, 5), field(1, field(1, b"\xff"))],
)
def test_broken_messages_are_refused(raw: bytes) -> None:
    """Cut off, overlong, of the wrong type or not UTF-8."""
    with pytest.raises(ProtobufError):
        decode(envelope("v1", "ConfigMap", raw))


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader(raw: bytes) -> None:
    """Any bytes are decoded to an object or refused."""
    for kind in ("Secret", "Event", "DeleteOptions"):
        try:
            decoded = decode(envelope("v1", kind, raw))
        except ProtobufError:
            continue
        assert decoded["kind"] == kind
    with pytest.raises(ProtobufError):
        decode(b"x" + raw)
