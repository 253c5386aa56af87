"""Protobuf: custom kinds have none, built-in ones need none, and who takes JSON too gets on with both homes."""

import aiohttp
import pytest

from tests.conformance.api import Api, widget

MEDIA = "application/vnd.kubernetes.protobuf"
CORE = "/api/v1"
MAGIC = b"k8s\x00"


def field(number: int, value: bytes) -> bytes:
    """A field with a length below 128."""
    return bytes([number << 3 | 2, len(value)]) + value


def body(api_version: bytes, kind: bytes, name: bytes) -> bytes:
    """An object with nothing but a name, in the envelope runtime.Unknown."""
    return MAGIC + field(1, field(1, api_version) + field(2, kind)) + field(2, field(1, field(1, name)))


@pytest.mark.differs(
    "kube-apiserver closes the connection on a protobuf body for a custom kind; the embedded API answers 415"
)
@pytest.mark.parametrize("method", ["POST", "PUT"])
async def test_a_custom_kind_in_protobuf(http: Api, method: str) -> None:
    """Nothing is written, and the API keeps serving."""
    (await http.create(http.path(), widget("there"))).ok()
    path = http.path() if method == "POST" else http.path(name="there")
    sent = body(b"conformance.example.org/v1", b"Widget", b"new")

    try:
        reply = await http.way.request(method, path, sent, content=MEDIA)
    except aiohttp.ClientError:
        assert http.is_kube
    else:
        assert not http.is_kube
        accepted = "accepted media types include: application/json, application/yaml"
        assert (reply.code, reply.reason) == (415, "UnsupportedMediaType")
        assert reply.message == f"the body of the request was in an unknown format - {accepted}"

    listed = (await http.get(http.path())).ok()
    assert [item["metadata"]["name"] for item in listed["items"]] == ["there"]


async def test_a_custom_kind_is_not_patched_in_protobuf(http: Api) -> None:
    """415 names the patches that there are."""
    (await http.create(http.path(), widget())).ok()

    reply = await http.way.request("PATCH", http.path(name="a"), MAGIC, content=MEDIA)

    assert (reply.code, reply.reason) == (415, "UnsupportedMediaType")
    assert reply.message.endswith(
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )


async def test_a_built_in_kind_in_protobuf(http: Api) -> None:
    """It is read, and answered in the JSON that was asked for."""
    sent = body(b"v1", b"ConfigMap", b"small")

    made = await http.way.request("POST", http.path("configmaps", base=CORE), sent, content=MEDIA)

    assert made.code == 201
    assert (made.body["kind"], made.body["metadata"]["name"]) == ("ConfigMap", "small")


async def test_bytes_that_are_no_object(http: Api) -> None:
    """400."""
    refused = await http.way.request("POST", http.path("configmaps", base=CORE), b"nonsense", content=MEDIA)

    assert (refused.code, refused.reason) == (400, "BadRequest")


@pytest.mark.parametrize(
    "accept", [f"{MEDIA},application/json", f"{MEDIA}, */*;q=0.1", f"application/json;q=0.5,{MEDIA}"]
)
async def test_custom_kinds_fall_back_to_json(http: Api, accept: str) -> None:
    """Who would rather have protobuf and takes JSON gets JSON."""
    (await http.create(http.path(), widget())).ok()

    listed = await http.way.request("GET", http.path(), headers={"Accept": accept})
    one = await http.way.request("GET", http.path(name="a"), headers={"Accept": accept})

    assert listed.headers["Content-Type"] == one.headers["Content-Type"] == "application/json"
    assert (listed.ok()["kind"], one.ok()["kind"]) == ("WidgetList", "Widget")


async def test_custom_kinds_have_no_protobuf(http: Api) -> None:
    """Who takes nothing else gets 406."""
    assert (await http.way.request("GET", http.path(), headers={"Accept": MEDIA})).code == 406


@pytest.mark.differs(
    "the embedded API does not encode protobuf: it answers in JSON if the client accepts it, else with 406"
)
async def test_built_in_kinds_fall_back_to_json(http: Api) -> None:
    """As a server does that has no protobuf; kubectl and client-go name both."""
    path = http.path("configmaps", base=CORE)

    both = await http.way.request("GET", path, headers={"Accept": f"{MEDIA},application/json"})
    only = await http.way.request("GET", path, headers={"Accept": MEDIA})

    if http.is_kube:
        assert both.headers["Content-Type"] == only.headers["Content-Type"] == MEDIA
    else:
        assert (both.headers["Content-Type"], both.ok()["kind"]) == ("application/json", "ConfigMapList")
        assert (only.code, only.reason) == (406, "NotAcceptable")
