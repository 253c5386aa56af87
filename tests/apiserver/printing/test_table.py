"""Tables and JSONPath."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.apiserver.printing.builtin_columns import builtin_columns
from metal.apiserver.printing.jsonpath import BadPath, compile_path
from metal.apiserver.printing.table import age, columns_for, human_duration, render

NOW = datetime(2024, 5, 6, 12, 0, tzinfo=UTC)
SERVER: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Server",
    "metadata": {
        "name": "s1",
        "creationTimestamp": "2024-05-06T11:55:00Z",
        "labels": {"a.b/c": "dotted", "plain": "x"},
    },
    "spec": {"power": "On", "cores": 8, "load": 0.5, "wanted": True, "disks": [{"name": "sda"}, {"name": "sdb"}]},
    "status": {
        "since": "2024-05-04T12:00:00Z",
        "conditions": [{"type": "Ready", "status": "False", "n": 1}, {"type": "Powered", "status": "True", "n": 3}],
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.power", ["On"]),
        ("{.spec.power}", ["On"]),
        ("$.spec.power", ["On"]),
        (".spec.disks[0].name", ["sda"]),
        (".spec.disks[-1].name", ["sdb"]),
        (".spec.disks[7].name", []),
        (".spec.disks[*].name", ["sda", "sdb"]),
        (".metadata.labels['plain']", ["x"]),
        (r".metadata.labels['a\.b/c']", ["dotted"]),
        (r".metadata.labels.a\.b/c", ["dotted"]),
        (".metadata.labels['a.b/c']", ["dotted"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["False"]),
        (".status.conditions[?(@.type=='Powered')].status", ["True"]),
        (".status.conditions[?(@.type!='Ready')].type", ["Powered"]),
        (".status.conditions[?(@.n > 2)].type", ["Powered"]),
        (".status.conditions[?(@.n)].n", [1, 3]),
        ('.status.conditions[?(@.type=="Gone")].status', []),
        (".status.nothing.here", []),
        (".spec.power.deeper", []),
        (".", [SERVER]),
    ],
)
def test_paths_of_printer_columns(path: str, found: list[Any]) -> None:
    """Names, indexes, wildcards, quoted names and filters are read; what is missing gives nothing."""
    assert compile_path(path)(SERVER) == found


@pytest.mark.parametrize("path", [".a[", ".a[?(x)]", ".a[1:2]", ".a]"])
def test_a_path_that_cannot_be_read_names_the_place(path: str) -> None:
    """The error repeats the path."""
    with pytest.raises(BadPath) as caught:
        compile_path(path)
    assert repr(path) in str(caught.value)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"), (1, "1s"), (119, "119s"), (120, "2m"), (200, "3m20s"), (599, "9m59s"), (600, "10m"), (10799, "179m"),
        (10800, "3h"), (3 * 3600 + 300, "3h5m"), (8 * 3600, "8h"), (47 * 3600 + 59, "47h"), (48 * 3600, "2d"),
        (7 * 86400 + 3600, "7d1h"), (8 * 86400, "8d"), (729 * 86400, "729d"), (730 * 86400, "2y"),
        (800 * 86400, "2y70d"), (8 * 365 * 86400, "8y"), (-1, "0s"), (-5, "<invalid>"),
    ],
)  # fmt: skip
def test_durations_read_as_in_kubectl(seconds: int, text: str) -> None:
    """Two units at most, coarser the longer it is."""
    assert human_duration(timedelta(seconds=seconds)) == text


@given(st.integers(0, 10**9))
def test_a_duration_is_short(seconds: int) -> None:
    """No age is wider than a column can be."""
    assert 2 <= len(human_duration(timedelta(seconds=seconds))) <= 6


def test_an_age_that_is_no_time_is_invalid() -> None:
    """Garbage does not break a table."""
    assert age("yesterday", NOW) == "<invalid>"


COLUMNS: list[dict[str, Any]] = [
    {"name": "Power", "type": "string", "jsonPath": ".spec.power", "description": "What is wanted."},
    {"name": "Cores", "type": "integer", "jsonPath": ".spec.cores", "format": "int32", "priority": 1},
    {"name": "Load", "type": "number", "jsonPath": ".spec.load"},
    {"name": "Wanted", "type": "boolean", "jsonPath": ".spec.wanted"},
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "Since", "type": "date", "jsonPath": ".status.since"},
    {"name": "Missing", "type": "string", "jsonPath": ".status.missing"},
    {"name": "Disks", "type": "string", "jsonPath": ".spec.disks[0]"},
    {"name": "Number", "type": "string", "jsonPath": ".spec.cores"},
]


def test_cells_have_the_type_of_their_column() -> None:
    """Name first; numbers and booleans stay typed, dates become ages, what is missing is null."""
    table = render(columns_for({"additionalPrinterColumns": COLUMNS}), [SERVER], now=NOW)
    assert table["rows"][0]["cells"] == ["s1", "On", 8, 0.5, True, "False", "2d", None, '{"name":"sda"}', "8"]


def test_definitions_carry_what_kubectl_prints() -> None:
    """Each column has name, type, format, description and priority."""
    table = render(columns_for({"additionalPrinterColumns": COLUMNS}), [], now=NOW)
    assert (table["kind"], table["apiVersion"], table["rows"]) == ("Table", "meta.k8s.io/v1", [])
    names = [column["name"] for column in table["columnDefinitions"]]
    assert names == ["Name", *(str(column["name"]) for column in COLUMNS)]
    assert table["columnDefinitions"][0]["format"] == "name"
    assert table["columnDefinitions"][2] == {
        "name": "Cores",
        "type": "integer",
        "format": "int32",
        "description": "Custom resource definition column (in JSONPath format): .spec.cores",
        "priority": 1,
    }


def test_without_columns_there_is_the_age() -> None:
    """A CRD that names no columns shows name and age."""
    table = render(columns_for({}), [SERVER], now=NOW)
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Age"]
    assert table["rows"][0]["cells"] == ["s1", "5m"]


def test_a_value_of_another_type_leaves_its_cell_empty() -> None:
    """A column never lies about its type."""
    columns = columns_for({"additionalPrinterColumns": [{"name": "X", "type": "integer", "jsonPath": ".spec.power"}]})
    assert render(columns, [SERVER], now=NOW)["rows"][0]["cells"] == ["s1", None]


def test_rows_carry_what_was_asked_for() -> None:
    """Metadata by default, the whole object, or nothing."""
    columns = columns_for({})
    row = render(columns, [SERVER], now=NOW)["rows"][0]
    assert row["object"] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": SERVER["metadata"],
    }
    assert render(columns, [SERVER], include="Object", now=NOW)["rows"][0]["object"] == SERVER
    assert render(columns, [SERVER], include="None", now=NOW)["rows"][0]["object"] is None


def test_headers_and_list_metadata() -> None:
    """A watch repeats no headers; a list hands on its metadata."""
    table = render(columns_for({}), [], now=NOW, metadata={"resourceVersion": "7"}, headers=False)
    assert table["columnDefinitions"] is None
    assert table["metadata"] == {"resourceVersion": "7"}


EVENT = {
    "metadata": {"name": "e", "creationTimestamp": "2024-05-06T11:00:00Z"},
    "involvedObject": {"kind": "Server", "name": "s1"},
    "type": "Normal",
    "reason": "Ready",
    "message": "up \n",
    "count": 3,
    "lastTimestamp": "2024-05-06T11:59:00Z",
    "firstTimestamp": "2024-05-06T11:00:00Z",
    "source": {"component": "manager", "host": "node"},
}


@pytest.mark.parametrize(
    ("kind", "obj", "cells"),
    [
        ("Namespace", {"status": {"phase": "Active"}}, ["x", "Active", "5m"]),
        ("Secret", {"type": "Opaque", "data": {"a": "", "b": ""}}, ["x", "Opaque", 2, "5m"]),
        ("Secret", {}, ["x", "Opaque", 0, "5m"]),
        ("ConfigMap", {"data": {"a": ""}, "binaryData": {"b": ""}}, ["x", 2, "5m"]),
        ("ServiceAccount", {"secrets": [{}]}, ["x", "5m"]),
        ("Lease", {"spec": {"holderIdentity": "me"}}, ["x", "me", "5m"]),
        ("CustomResourceDefinition", {}, ["x", "2024-05-06T11:55:00Z"]),
        ("SomethingElse", {}, ["x", "5m"]),
    ],
)
def test_builtin_kinds_have_the_columns_that_kubectl_users_know(
    kind: str, obj: dict[str, Any], cells: list[Any]
) -> None:
    """Each built-in kind shows what matters of it."""
    given = {"metadata": {"name": "x", "creationTimestamp": "2024-05-06T11:55:00Z"}, **obj}
    assert render(builtin_columns(kind), [given], now=NOW)["rows"][0]["cells"] == cells


def test_events_show_when_what_and_where() -> None:
    """Wide columns come with priority 1."""
    table = render(builtin_columns("Event"), [EVENT], now=NOW)
    narrow = [
        c for c, d in zip(table["rows"][0]["cells"], table["columnDefinitions"], strict=True) if not d["priority"]
    ]
    assert narrow == ["60s", "Normal", "Ready", "server/s1", "up"]
    assert table["rows"][0]["cells"] == [
        "60s",
        "Normal",
        "Ready",
        "server/s1",
        "",
        "manager, node",
        "up",
        "60m",
        3,
        "e",
    ]


def test_events_of_the_new_api_show_their_series() -> None:
    """eventTime and series stand in for the old fields."""
    given = {
        "eventTime": "2024-05-06T11:00:00.000000Z",
        "series": {"count": 9, "lastObservedTime": "2024-05-06T11:58:00.123456Z"},
    }
    cells = render(builtin_columns("Event"), [given], now=NOW)["rows"][0]["cells"]
    assert (cells[0], cells[7], cells[8]) == ("119s", "60m", 9)
