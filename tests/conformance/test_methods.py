"""Unsupported methods and formats, invalid credentials and queries."""

import pytest

from tests.conformance.api import WIDGETS, Api, Reply, config_map, widget
from tests.conformance.ways import MERGE, OverHTTP

CORE = "/api/v1"
NOT_ALLOWED = (405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def told(reply: Reply) -> tuple[int, str, str]:
    return reply.code, reply.reason, reply.message


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_changes_need_a_name(http: Api, method: str) -> None:
    """A collection of custom objects is not replaced or patched; one of built-in objects has no such method."""
    custom = await http.way.request(method, http.path(), widget(), content=MERGE)
    built_in = await http.way.request(method, http.path("configmaps", base=CORE), config_map(), content=MERGE)

    assert told(custom) == (400, "BadRequest", "name must be provided")
    assert told(built_in) == NOT_ALLOWED
    assert built_in.body["details"] == {}


async def test_a_body_names_what_is_created(http: Api) -> None:
    """A custom object that is posted to a name takes the one of its body; a built-in one is not posted to a name."""
    custom = await http.create(http.path(name="path"), widget("body"))
    built_in = await http.create(http.path("configmaps", "a", base=CORE), config_map())

    assert custom.ok()["metadata"]["name"] == "body"
    assert (await http.get(http.path(name="path"))).code == 404
    assert told(built_in) == NOT_ALLOWED


async def test_a_status_is_only_read_and_changed(http: Api) -> None:
    """Nothing is created at a status, and no status is deleted."""
    (await http.create(http.path(), widget())).ok()
    status = http.path(name="a", sub="status")

    created = await http.create(status, widget())
    deleted = await http.delete(status)

    told_of = 'is not supported on resources of kind "widgets.conformance.example.org"'
    assert told(created) == (405, "MethodNotAllowed", f"create {told_of}")
    assert told(deleted) == (405, "MethodNotAllowed", f"delete {told_of}")
    assert created.body["details"] == {"group": "conformance.example.org", "kind": "widgets"}
    (await http.get(http.path(name="a"))).ok()


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
async def test_only_reads_cross_namespaces(http: Api, method: str) -> None:
    """Without a namespace custom objects are read and no more."""
    assert (await http.way.request(method, f"{WIDGETS}/widgets", widget(), content=MERGE)).code == 404


async def test_an_answer_that_cannot_be_given(http: Api) -> None:
    """Who takes no form that can be given is told before anything is written."""
    headers = {"Accept": "text/html"}

    read = await http.way.request("GET", http.path(), headers=headers)
    written = await http.way.request("POST", http.path(), widget(), headers=headers)

    assert (read.code, read.reason) == (written.code, written.reason) == (406, "NotAcceptable")
    assert written.message.startswith("only the following media types are accepted: application/json, application/yaml")
    assert (await http.get(http.path(name="a"))).code == 404


@pytest.mark.parametrize("path", ["/api", "/version", "/healthz", "/nothing", f"{CORE}/namespaces"])
async def test_a_wrong_token(http: Api, path: str) -> None:
    """A wrong token is refused on every path, even where none is required."""
    assert isinstance(http.way, OverHTTP)

    refused = await http.way.holding("wrong").request("GET", path)

    assert told(refused) == (401, "Unauthorized", "Unauthorized")
    assert "details" not in refused.body


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("limit", "x", 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("limit", "", 'strconv.ParseInt: parsing "": invalid syntax'),
        ("limit", "9" * 20, f'strconv.ParseInt: parsing "{"9" * 20}": value out of range'),
        ("timeoutSeconds", "1.5", 'strconv.ParseInt: parsing "1.5": invalid syntax'),
        ("continue", "x", "invalid continue token: continue key is not valid: illegal base64 data"),
    ],
)
@pytest.mark.parametrize("plural", ["widgets", "configmaps"])
async def test_queries_of_a_list(api: Api, plural: str, name: str, value: str, why: str) -> None:
    """A value that cannot be read is 400 and says why."""
    path = api.path() if plural == "widgets" else api.path(plural, base=CORE)

    refused = await api.get(path, **{name: value})

    assert (refused.code, refused.reason) == (400, "BadRequest")
    assert refused.message.startswith(why)
