"""fieldValidation: unknown and duplicate fields are refused, warned of, or passed over."""

import pytest

from tests.conformance.api import Api, config_map, widget
from tests.conformance.ways import APPLY, MERGE

UNKNOWN = ['unknown field "spec.bar"', 'unknown field "spec.foo"', 'unknown field "spec.ports[0].zz"']
TWICE = (
    b'{"apiVersion":"conformance.example.org/v1","kind":"Widget","metadata":{"name":"a"},'
    b'"spec":{"size":1,"size":2,"labels":{"x":"1","x":"2"}}}'
)


async def test_strict_refuses_unknown_fields(api: Api) -> None:
    """Strict names every unknown field, and stores nothing."""
    body = widget(foo=1, bar=2, ports=[{"name": "b", "zz": 1}])

    refused = await api.create(api.path(), body, fieldValidation="Strict")

    told = f'Widget in version "v1" cannot be handled as a Widget: strict decoding error: {", ".join(UNKNOWN)}'
    assert (refused.code, refused.reason, refused.message) == (400, "BadRequest", told)
    assert (await api.get(api.path(name="a"))).code == 404


@pytest.mark.parametrize(("mode", "warnings"), [("Warn", UNKNOWN), ("Ignore", [])])
async def test_unknown_fields_are_dropped(api: Api, mode: str, warnings: list[str]) -> None:
    """Warn stores the rest and warns of each, Ignore says nothing."""
    body = widget(foo=1, bar=2, ports=[{"name": "b", "zz": 1}])

    stored = await api.create(api.path(), body, fieldValidation=mode)

    assert stored.ok()["spec"] == {"note": "plain", "ports": [{"name": "b"}]}
    assert list(stored.warnings) == warnings


async def test_unknown_fields_of_a_built_in(api: Api) -> None:
    """Built-in kinds likewise."""
    path = api.path("configmaps", base="/api/v1")

    refused = await api.create(path, {**config_map(), "foo": 1}, fieldValidation="Strict")

    told = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "foo"'
    assert (refused.code, refused.message) == (400, told)


async def test_duplicate_fields(http: Api) -> None:
    """A member that is given twice is told by its path; the last counts."""
    names = ['duplicate field "spec.size"', 'duplicate field "spec.labels.x"']

    refused = await http.way.request("POST", http.path(), TWICE, query={"fieldValidation": "Strict"})
    stored = await http.way.request("POST", http.path(), TWICE, query={"fieldValidation": "Warn"})

    assert refused.message.endswith(f"strict decoding error: {', '.join(names)}")
    assert stored.ok()["spec"] == {"size": 2, "note": "plain", "labels": {"x": "2"}}
    assert list(stored.warnings) == names


async def test_unknown_fields_of_a_patch(http: Api) -> None:
    """With Strict a patch is Invalid, and the cause repeats what it would have made."""
    (await http.create(http.path(), widget(size=1))).ok()

    refused = await http.way.request(
        "PATCH", http.path(name="a"), {"spec": {"foo": 1}}, query={"fieldValidation": "Strict"}, content=MERGE
    )

    assert (refused.code, refused.reason, refused.causes[0]["field"]) == (422, "Invalid", "patch")
    assert refused.message.endswith('strict decoding error: unknown field "spec.foo"')


YAML_TWICE = b"""
apiVersion: conformance.example.org/v1
kind: Widget
metadata:
  name: a
spec:
  size: 1
  size: 2
  ports:
  - name: p
    name: q
"""
LINES = ['line 8: key "size" already set in map', 'line 11: key "name" already set in map']


async def test_duplicate_keys_of_yaml(http: Api) -> None:
    """A key that is given twice is told by its line; the last counts."""
    yaml = "application/yaml"

    refused = await http.way.request("POST", http.path(), YAML_TWICE, query={"fieldValidation": "Strict"}, content=yaml)
    silent = await http.way.request("POST", http.path(), YAML_TWICE, query={"fieldValidation": "Ignore"}, content=yaml)
    (await http.delete(http.path(name="a"))).ok()
    stored = await http.way.request("POST", http.path(), YAML_TWICE, content=yaml)

    told = "strict decoding error: yaml: unmarshal errors:\n  " + "\n  ".join(LINES)
    assert (refused.code, refused.message) == (400, f'Widget in version "v1" cannot be handled as a Widget: {told}')
    assert (silent.code, silent.warnings) == (201, ())
    assert stored.ok()["spec"] == {"size": 2, "note": "plain", "ports": [{"name": "q"}]}
    assert list(stored.warnings) == LINES


async def test_duplicate_keys_that_are_applied(http: Api) -> None:
    """An applied configuration likewise, in YAML and in JSON."""
    path, query = http.path(name="a"), {"fieldManager": "m"}
    strict = {**query, "fieldValidation": "Strict"}

    refused = await http.way.request("PATCH", path, YAML_TWICE, query=strict, content=APPLY)
    json_refused = await http.way.request("PATCH", path, TWICE, query=strict, content=APPLY)
    stored = await http.way.request("PATCH", path, YAML_TWICE, query=query, content=APPLY)

    head = "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  "
    assert (refused.code, refused.message) == (400, head + "\n  ".join(LINES))
    assert json_refused.message.startswith(f'{head}line 1: key "size" already set in map')
    assert stored.ok()["spec"]["size"] == 2
    assert list(stored.warnings) == LINES
