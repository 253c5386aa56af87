"""Rules for metadata, and formats of strings."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.apiserver.machinery.formats import FORMATS, parse_datetime, parse_duration
from metal.apiserver.machinery.object_meta import validate_metadata
from metal.kube.meta.names import is_label, is_subdomain


def told(meta: dict[str, Any], old: dict[str, Any] | None = None, *, namespaced: bool = True) -> list[str]:
    """What is wrong with metadata, as lines."""
    return [str(cause) for cause in validate_metadata(meta, namespaced=namespaced, old=old)]


OWNER = {"apiVersion": "v1", "kind": "A", "name": "x", "uid": "1"}


@pytest.mark.parametrize(
    "meta",
    [
        {"name": "a"},
        {"name": "a.b-c.d", "namespace": "default"},
        {"generateName": "a-"},
        {"name": "a", "labels": {"example.com/a_B.c": "", "x": "A-1.z"}, "annotations": {"X/Y": "any thing"}},
        {"name": "a", "finalizers": ["example.com/cleanup"], "ownerReferences": [OWNER]},
        {"name": "a", "labels": None, "annotations": None, "finalizers": None, "ownerReferences": None},
    ],
)
def test_metadata_in_order(meta: dict[str, Any]) -> None:
    """Names, labels and owners as users write them pass."""
    assert told(meta) == []


@pytest.mark.parametrize(
    ("meta", "line"),
    [
        ({}, "metadata.name: Required value: name or generateName is required"),
        ({"name": "A"}, 'metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of'),
        ({"name": "a" * 254}, "must be no more than 253 characters"),
        ({"name": "a\n"}, "metadata.name: Invalid value"),
        ({"generateName": "_"}, "metadata.generateName: Invalid value"),
        ({"name": "a", "namespace": "a.b"}, "metadata.namespace: Invalid value"),
        ({"name": "a", "labels": {"a": "b c"}}, 'metadata.labels: Invalid value: "b c": a valid label must be'),
        ({"name": "a", "labels": {"a": "x" * 64}}, "must be no more than 63 bytes"),
        ({"name": "a", "labels": {"a/b/c": ""}}, "prefix part a lowercase RFC 1123 subdomain"),
        ({"name": "a", "labels": {"x/": ""}}, "name part must be non-empty"),
        ({"name": "a", "labels": {"-x": ""}}, "name part must consist of alphanumeric characters"),
        ({"name": "a", "annotations": {"a": "x" * 262145}}, "metadata.annotations: Too long"),
        ({"name": "a", "finalizers": ["a b"]}, "metadata.finalizers: Invalid value"),
        ({"name": "a", "ownerReferences": [{**OWNER, "uid": ""}]}, "metadata.ownerReferences.uid: Invalid value"),
        (
            {
                "name": "a",
                "ownerReferences": [{**OWNER, "controller": True}, {**OWNER, "uid": "2", "controller": True}],
            },
            "Only one reference can have Controller set to true",
        ),
    ],
)
def test_metadata_out_of_order(meta: dict[str, Any], line: str) -> None:
    """Each fault has its sentence."""
    assert any(line in text for text in told(meta)), told(meta)


def test_cluster_scoped_kinds_have_no_namespace() -> None:
    """A namespace where there is none is refused."""
    assert told({"name": "a", "namespace": "x"}, namespaced=False) == [
        "metadata.namespace: Forbidden: not allowed on this type"
    ]


def test_identity_does_not_change() -> None:
    """uid and name are for ever; leaving them out is no change."""
    old = {"name": "a", "uid": "1", "creationTimestamp": "2024-01-01T00:00:00Z"}
    assert told({"name": "a"}, old) == []
    assert told({"name": "a", "uid": "2"}, old) == ['metadata.uid: Invalid value: "2": field is immutable']


def test_a_dying_object_takes_no_new_finalizers() -> None:
    """Finalizers may only go once deletion was asked for."""
    old = {"name": "a", "deletionTimestamp": "2024-01-01T00:00:00Z", "finalizers": ["x/a"]}
    assert told({"name": "a", "finalizers": []}, old) == []
    [line] = told({"name": "a", "finalizers": ["x/a", "x/b"]}, old)
    assert "no new finalizers can be added" in line
    assert line.endswith('found new finalizers []string{"x/b"}')


@given(st.text("abzAZ09.-_\n", max_size=70))
def test_a_label_is_a_short_subdomain_without_dots(text: str) -> None:
    """The two rules agree where they meet."""
    assert is_label(text) == (is_subdomain(text) and "." not in text and len(text) <= 63)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("byte", ["", "aGk=", "aGVsbG8="], ["a", "aGk", "a*=="]),
        ("date", ["2024-02-29"], ["2023-02-29", "yesterday"]),
        (
            "date-time",
            ["2024-01-02T03:04:05Z", "2024-01-02T03:04:05.123456789+01:00"],
            ["2024-01-02", "2024-13-01T00:00:00Z"],
        ),
        ("duration", ["1h30m", "0", "-2.5s", "100ms", "1µs"], ["", "5", "1x", "h"]),
        ("email", ["a@b"], ["a", "a b@c"]),
        ("hostname", ["a.b-c"], ["-a", "a_b", ""]),
        ("ipv4", ["10.0.0.1"], ["10.0.0.256", "::1"]),
        ("ipv6", ["::1"], ["10.0.0.1"]),
        ("cidr", ["10.0.0.1/8", "fe80::/64"], ["10.0.0.1/33", "x"]),
        ("mac", ["00:1a:2b:3c:4d:5e", "00-1A-2B-3C-4D-5E", "001a.2b3c.4d5e"], ["00:1a:2b", "00:1a:2b:3c:4d:5g"]),
        ("uri", ["https://a/b", "/path"], ["plain", "http://[x"]),
        ("uuid", ["123e4567-e89b-12d3-a456-426614174000"], ["123", "z23e4567-e89b-12d3-a456-426614174000"]),
    ],
)
def test_formats_tell_good_from_bad(name: str, good: list[str], bad: list[str]) -> None:
    """A format that is checked is checked."""
    assert all(FORMATS[name](text) for text in good)
    assert not any(FORMATS[name](text) for text in bad)


def test_durations_and_times_are_read() -> None:
    """Go durations and RFC 3339 with any number of digits."""
    assert parse_duration("1h1m1.5s") == timedelta(hours=1, minutes=1, seconds=1.5)
    assert parse_duration("-1m") == timedelta(minutes=-1)
    assert parse_datetime("2024-01-02T03:04:05.123456789Z") == datetime(2024, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)


@given(st.datetimes(timezones=st.just(UTC)))
def test_every_moment_can_be_read_back(moment: datetime) -> None:
    """What Python writes as ISO 8601 is read as the same moment."""
    assert parse_datetime(moment.isoformat()) == moment
