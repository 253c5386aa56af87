"""Secrets: what is folded, what is checked, what stays; no refusal repeats a value."""

import base64
from typing import Any

import pytest

from tests.conformance.api import Api, Obj
from tests.conformance.ways import STRATEGIC

CORE = "/api/v1"
FROZEN = "Forbidden: field is immutable when `immutable` is set"


def secret(name: str = "a", **more: Any) -> Obj:
    """A new Secret."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, **more}


def encoded(text: str) -> str:
    """In base64."""
    return base64.b64encode(text.encode()).decode()


def told(refused: Any) -> list[tuple[str, str]]:
    """Fields and messages of a 422."""
    assert (refused.code, refused.reason) == (422, "Invalid")
    return [(cause["field"], cause["message"]) for cause in refused.causes]


async def test_plain_text_is_folded_into_data(api: Api) -> None:
    """stringData wins over data, is never read back, and the type is Opaque unless told."""
    path = api.path("secrets", base=CORE)
    sent = secret(data={"a": encoded("1"), "b": encoded("1")}, stringData={"a": "zwei ü"})

    made = (await api.create(path, sent)).ok()

    assert made["data"] == {"a": encoded("zwei ü"), "b": encoded("1")}
    assert made["type"] == "Opaque"
    assert "stringData" not in made
    patched = (await api.patch(f"{path}/a", {"stringData": {"c": "3"}, "data": {"b": None}})).ok()
    assert patched["data"] == {"a": encoded("zwei ü"), "c": encoded("3")}
    strategic = (await api.patch(f"{path}/a", {"stringData": {"d": "4"}}, STRATEGIC)).ok()
    assert strategic["data"]["d"] == encoded("4")


async def test_what_is_immutable_stays(api: Api) -> None:
    """Neither data nor the mark itself changes; labels do, and the Secret can be deleted."""
    path = api.path("secrets", "a", base=CORE)
    (await api.create(api.path("secrets", base=CORE), secret(data={"a": "MQ=="}, immutable=True))).ok()

    assert told(await api.patch(path, {"data": {"a": "Mg=="}})) == [("data", FROZEN)]
    assert told(await api.patch(path, {"stringData": {"b": "2"}})) == [("data", FROZEN)]
    assert told(await api.patch(path, {"immutable": None})) == [("immutable", FROZEN)]
    assert (await api.patch(path, {"metadata": {"labels": {"x": "y"}}})).code == 200
    assert (await api.delete(path)).code == 200


async def test_the_type_never_changes(api: Api) -> None:
    """Programs rely on it."""
    (await api.create(api.path("secrets", base=CORE), secret())).ok()

    refused = await api.patch(api.path("secrets", "a", base=CORE), {"type": "example.org/other"})

    assert told(refused) == [("type", 'Invalid value: "example.org/other": field is immutable')]
    assert refused.message == ('Secret "a" is invalid: type: Invalid value: "example.org/other": field is immutable')


@pytest.mark.parametrize(
    ("kind", "data", "lacking"),
    [
        ("tls", {}, ["data[tls.crt]", "data[tls.key]"]),
        ("tls", {"tls.crt": ""}, ["data[tls.key]"]),
        ("dockerconfigjson", {}, ["data[.dockerconfigjson]"]),
        ("dockercfg", {}, ["data[.dockercfg]"]),
        ("basic-auth", {}, ["data[username]", "data[password]"]),
        ("ssh-auth", {"ssh-privatekey": ""}, ["data[ssh-privatekey]"]),
        ("service-account-token", {}, ["metadata.annotations[kubernetes.io/service-account.name]"]),
    ],
)
async def test_types_need_their_keys(api: Api, kind: str, data: Obj, lacking: list[str]) -> None:
    """Each well-known type has keys that must be there."""
    refused = await api.create(api.path("secrets", base=CORE), secret(type=f"kubernetes.io/{kind}", data=data))

    assert told(refused) == [(field, "Required value") for field in lacking]


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("tls", {"tls.crt": "", "tls.key": ""}),
        ("dockerconfigjson", {".dockerconfigjson": encoded("{}")}),
        ("basic-auth", {"password": encoded("x")}),
        ("ssh-auth", {"ssh-privatekey": encoded("x")}),
    ],
)
async def test_types_with_their_keys_are_kept(api: Api, kind: str, data: Obj) -> None:
    """An empty value is a value, but for ssh-auth."""
    sent = secret(type=f"kubernetes.io/{kind}", data=data)

    assert (await api.create(api.path("secrets", base=CORE), sent)).ok()["data"] == data


async def test_docker_credentials_are_json(api: Api) -> None:
    """What is no JSON is refused without being repeated."""
    data = {".dockerconfigjson": encoded("hunter2")}

    refused = await api.create(api.path("secrets", base=CORE), secret(type="kubernetes.io/dockerconfigjson", data=data))

    ((field, message),) = told(refused)
    assert field == "data[.dockerconfigjson]"
    assert message.startswith('Invalid value: "<secret contents redacted>": ')
    assert "hunter2" not in refused.message


@pytest.mark.parametrize("key", ["a b", "a/b", "ü", ".", "..", "..a", "k" * 254, ""])
async def test_keys_are_file_names(api: Api, key: str) -> None:
    """A key that could not be a file is refused, and the cause names it."""
    refused = await api.create(api.path("secrets", base=CORE), secret(data={key: "MQ=="}))

    found = told(refused)
    assert {field for field, _ in found} == {f"data[{key}]"}
    rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
    expected = {".": "must not be '.'", "..": "must not be '..'", "..a": "must not start with '..'"}.get(key, rule)
    if len(key) > 253:
        expected = "must be no more than 253 characters"
    assert expected in found[0][1]


async def test_a_secret_has_a_size(api: Api) -> None:
    """The values together may have 1 MiB."""
    much = base64.b64encode(b"x" * (1024 * 1024 + 1)).decode()

    refused = await api.create(api.path("secrets", base=CORE), secret(data={"a": much}))

    assert told(refused) == [("data", "Too long: may not be more than 1048576 bytes")]


async def test_what_is_not_base64_is_refused(api: Api) -> None:
    """400, before anything else is looked at."""
    refused = await api.create(api.path("secrets", base=CORE), secret(data={"a": "not base64!"}))

    assert (refused.code, refused.reason) == (400, "BadRequest")
    assert "illegal base64 data" in refused.message
    assert "not base64!" not in refused.message


async def test_secrets_are_selected_by_type(api: Api) -> None:
    """The field selector `type` is the only one beside name and namespace."""
    path = api.path("secrets", base=CORE)
    (await api.create(path, secret("a", type="example.org/x"))).ok()
    (await api.create(path, secret("b"))).ok()

    found = (await api.get(path, fieldSelector="type=example.org/x")).ok()
    refused = await api.get(path, fieldSelector="data=x")

    assert [item["metadata"]["name"] for item in found["items"]] == ["a"]
    assert (refused.code, "field label not supported: data" in refused.message) == (400, True)
