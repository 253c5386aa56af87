"""Credentials of registries from a Secret in the manager's namespace."""

import asyncio
import base64
import json
from typing import Any

import pytest

from metal.api.core import SECRET
from metal.controllers.bootconfig.registry_secret import AuthSecret
from metal.kube.client.errors import Forbidden, ServerError
from tests.kube.client.fakeapi import FakeAPI

pytestmark = pytest.mark.looptime
NAME, NAMESPACE = "registry-credentials", "metal-system"


def content(password: str) -> dict[str, str]:
    auth = base64.b64encode(f"robot:{password}".encode()).decode()
    config = json.dumps({"auths": {"r.example": {"auth": auth}}})
    return {".dockerconfigjson": base64.b64encode(config.encode()).decode()}


async def store(api: FakeAPI, data: dict[str, str]) -> None:
    body = {"metadata": {"name": NAME, "namespace": NAMESPACE}, "type": "kubernetes.io/dockerconfigjson", "data": data}
    await api.apply(SECRET, body, manager="t")


async def password(source: AuthSecret, *, rejected: bool = False) -> str:
    found = (await source.auths(rejected=rejected)).get("r.example")
    return found.password if found else ""


def reads(api: FakeAPI) -> int:
    return sum((verb, plural) == ("get", "secrets") for verb, plural, _ in api.calls)


async def test_the_secret_is_read_again_after_its_interval_and_after_a_rejection() -> None:
    """Once for all that wait, at most every 30 s; every 5 s while a registry rejects it."""
    api = FakeAPI()
    await store(api, content("one"))
    source = AuthSecret(api, NAMESPACE, NAME)
    assert set(await asyncio.gather(*(password(source) for _ in range(50)))) == {"one"}
    await store(api, content("two"))
    assert (await password(source), reads(api)) == ("one", 1)
    assert (await password(source, rejected=True), reads(api)) == ("one", 1)
    await asyncio.sleep(6)
    assert (await password(source), reads(api)) == ("one", 1)
    assert (await password(source, rejected=True), reads(api)) == ("two", 2)
    await store(api, content("three"))
    await asyncio.sleep(31)
    assert (await password(source), reads(api)) == ("three", 3)


async def test_a_missing_secret_is_named_and_found_when_it_exists() -> None:
    """The credentials of a deleted Secret are not used any more."""
    api = FakeAPI()
    source = AuthSecret(api, NAMESPACE, NAME)
    assert await password(source) == ""
    assert source.problem.startswith("the Secret metal-system/registry-credentials does not exist: create it")
    await store(api, content("one"))
    await asyncio.sleep(6)
    assert (await password(source), source.problem) == ("one", "")
    await api.delete(SECRET, NAME, NAMESPACE)
    await asyncio.sleep(31)
    assert await password(source) == ""


@pytest.mark.parametrize("error", [ServerError("s3cret"), Forbidden("s3cret")])
async def test_an_api_that_fails_leaves_the_last_content_in_use(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The problem says so without the words of the answer."""
    api = FakeAPI()
    await store(api, content("one"))
    source = AuthSecret(api, NAMESPACE, NAME)
    await password(source)

    async def get(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(api, "get", get)
    await asyncio.sleep(31)
    assert await password(source) == "one"
    assert "cannot be read" in source.problem
    assert "s3cret" not in source.problem


@pytest.mark.parametrize("data", [{}, {".dockerconfigjson": base64.b64encode(b'{"auths": {"r": "s3cret"}}').decode()}])
async def test_a_secret_that_cannot_be_used_shows_nothing_of_its_content(data: dict[str, str]) -> None:
    """Neither in the problem nor in the repr."""
    api = FakeAPI()
    await store(api, data)
    source = AuthSecret(api, NAMESPACE, NAME)
    assert await password(source) == ""
    assert source.problem.startswith("the key .dockerconfigjson of the Secret metal-system/registry-credentials")
    assert "s3cret" not in f"{source.problem} {source!r}"
    assert "broken" in repr(source)
