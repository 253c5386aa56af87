"""ConfigMaps: text and bytes side by side, sizes, keys, and what stays."""

import base64
from typing import Any

import pytest

from tests.conformance.api import Api, Obj, config_map

CORE = "/api/v1"
FROZEN = "Forbidden: field is immutable when `immutable` is set"


def told(refused: Any) -> list[tuple[str, str]]:
    """Fields and messages of a 422."""
    assert (refused.code, refused.reason) == (422, "Invalid")
    return [(cause["field"], cause["message"]) for cause in refused.causes]


async def test_text_and_bytes_live_side_by_side(api: Api) -> None:
    """data is text, binaryData base64; both come back as they were sent."""
    sent = {**config_map(a="1\nü"), "binaryData": {"b": "AAH/"}}

    made = (await api.create(api.path("configmaps", base=CORE), sent)).ok()

    assert (made["data"], made["binaryData"]) == ({"a": "1\nü"}, {"b": "AAH/"})


async def test_a_key_stands_in_one_of_them(api: Api) -> None:
    """The same key in data and binaryData is refused."""
    refused = await api.create(api.path("configmaps", base=CORE), {**config_map(a="1"), "binaryData": {"a": "AA=="}})

    assert told(refused) == [("data[a]", 'Invalid value: "a": duplicate of key present in binaryData')]


@pytest.mark.parametrize("field", ["data", "binaryData"])
async def test_keys_are_file_names(api: Api, field: str) -> None:
    """A slash or a space is refused with the rule."""
    sent: Obj = {**config_map(), field: {"a/b": "MQ=="}}

    ((where, message),) = told(await api.create(api.path("configmaps", base=CORE), sent))

    assert where == f"{field}[a/b]"
    assert message == (
        "Invalid value: \"a/b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
        "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
    )


async def test_what_is_immutable_stays(api: Api) -> None:
    """Neither data, nor bytes, nor the mark itself."""
    path = api.path("configmaps", "a", base=CORE)
    sent = {**config_map(a="1"), "binaryData": {"b": "AA=="}, "immutable": True}
    (await api.create(api.path("configmaps", base=CORE), sent)).ok()

    assert told(await api.patch(path, {"data": {"a": "2"}})) == [("data", FROZEN)]
    assert told(await api.patch(path, {"binaryData": None})) == [("binaryData", FROZEN)]
    assert told(await api.patch(path, {"immutable": False})) == [("immutable", FROZEN)]
    assert (await api.patch(path, {"metadata": {"labels": {"x": "y"}}})).code == 200


async def test_a_config_map_has_a_size(api: Api) -> None:
    """Text and bytes together may have 1 MiB."""
    half = "x" * (512 * 1024)
    sent = {**config_map(a=half), "binaryData": {"b": base64.b64encode(half.encode() + b"x").decode()}}

    ((_, message),) = told(await api.create(api.path("configmaps", base=CORE), sent))

    assert message == "Too long: may not be more than 1048576 bytes"


async def test_numbers_are_no_text(api: Api) -> None:
    """YAML's unquoted numbers are refused with 400, not turned into text."""
    refused = await api.create(api.path("configmaps", base=CORE), {**config_map(), "data": {"a": 1}})

    assert (refused.code, refused.reason) == (400, "BadRequest")


async def test_bytes_are_base64(api: Api) -> None:
    """What is no base64 is refused with 400."""
    refused = await api.create(api.path("configmaps", base=CORE), {**config_map(), "binaryData": {"a": "?"}})

    assert (refused.code, "illegal base64 data" in refused.message) == (400, True)


async def test_updates_without_a_version_overwrite(api: Api) -> None:
    """Built-in kinds that allow it take an update without resourceVersion."""
    (await api.create(api.path("configmaps", base=CORE), config_map(a="1"))).ok()

    changed = (await api.update(api.path("configmaps", "a", base=CORE), config_map(b="2"))).ok()

    assert changed["data"] == {"b": "2"}
