"""BMCSecrets are normalized and validated."""

import asyncio
from typing import Any

import pytest

from tests.controllers.rack import KINDS, Rack, rack, ready

pytestmark = pytest.mark.looptime


async def write(r: Rack, **body: Any) -> Any:
    """Create a BMCSecret and read it back a moment later."""
    await r.user.create(KINDS.bmc_secret, {"metadata": {"name": "s"}, **body})
    await asyncio.sleep(1)
    return await r.secret("s")


@pytest.mark.behaviour("BMCSecret", "`stringData` is moved into `data`.")
async def test_plain_text_moves_into_data() -> None:
    """stringData is moved and removed; keys in data stay, and are replaced where stringData has them."""
    async with rack() as r:
        old = {"username": "b2xk", "extra": "a2VwdA=="}
        secret = await write(r, data=old, stringData={"username": "root", "password": "pässword"})
        again = await r.secret("s")
    assert secret.string_data == {}
    assert secret.data == {"username": b"root", "password": "pässword".encode(), "extra": b"kept"}
    assert ready(secret) == ("True", "Complete")
    assert again.metadata.resource_version == secret.metadata.resource_version


async def test_an_immutable_secret_keeps_its_plain_text() -> None:
    """An immutable BMCSecret cannot be changed; the condition reports it, and the credentials are used."""
    async with rack() as r:
        secret = await write(r, immutable=True, stringData={"username": "root", "password": "x"})
    assert secret.string_data == {"username": "root", "password": "x"}
    assert ready(secret) == ("True", "PlainText")


@pytest.mark.behaviour(
    "BMCSecret", "A missing key sets Ready=False with the key's name until it is added; no value is shown."
)
@pytest.mark.parametrize("key", ["username", "password"])
async def test_a_missing_key_is_said_until_it_is_there(key: str) -> None:
    """Ready is False with the name of the key; adding it is enough. No value is ever shown."""
    async with rack() as r:
        values = {"username": "user-1", "password": "pass-1"}
        secret = await write(r, stringData={name: value for name, value in values.items() if name != key})
        message = secret.status.waiting_for
        await r.user.patch(KINDS.bmc_secret, "s", {"stringData": {key: values[key]}})
        await asyncio.sleep(1)
        healed, events = await r.secret("s"), await r.events()
    assert ready(secret) == ("False", "CredentialsMissing")
    assert f"has no {key}" in message
    assert "user-1" not in message
    assert "pass-1" not in message
    assert ready(healed) == ("True", "Complete")
    assert ("s", "CredentialsMissing") in events


async def test_an_ignored_secret_is_left_alone() -> None:
    """operation=ignore applies here as well."""
    async with rack() as r:
        metadata = {"name": "s", "annotations": {KINDS.key("operation"): "ignore"}}
        await r.user.create(KINDS.bmc_secret, {"metadata": metadata, "stringData": {"username": "root"}})
        await asyncio.sleep(10)
        secret = await r.secret("s")
    assert secret.string_data == {"username": "root"}
    assert secret.status is None
