"""The registry over HTTP: paths, methods and limits as metalprobe uses them."""

import asyncio
import base64
import io
import json
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest

from metal.listener.server import RunningServer
from metal.machineapi.http.server import make_app, serve
from metal.machineapi.registry.routes import routes
from metal.probe.registry import Refused, Registry
from tests.machineapi.world import UUID, World


@pytest.fixture
async def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    await made.populate()
    return made


@pytest.fixture
async def listening(world: World) -> AsyncIterator[RunningServer]:
    running = await serve(make_app(routes(world.registry), world.refusals), "127.0.0.1", 0)
    yield running
    await running.aclose()


@pytest.fixture
async def client(listening: RunningServer) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(f"http://127.0.0.1:{listening.port}") as session:
        yield session


@pytest.mark.behaviour(
    "Registry and probe",
    "Paths and methods that are not offered are refused with the right status.",
    go="Also serves and deletes reports.",
)
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/register", 405), ("PUT", "/register", 405), ("GET", "/bootstate", 405), ("GET", "/sanitization", 405),
        ("GET", f"/systems/{UUID}", 403), ("DELETE", f"/delete/{UUID}", 403), ("GET", f"/delete/{UUID}", 405),
        ("GET", "/", 404), ("POST", "/x", 404), ("TRACE", "/", 405),
    ],
)  # fmt: skip
async def test_only_what_is_offered_is_answered(
    client: aiohttp.ClientSession, method: str, path: str, status: int
) -> None:
    """Other paths and methods get the proper status."""
    async with client.request(method, path) as answer:
        assert answer.status == status


async def test_a_body_beyond_the_limit_is_cut_off(client: aiohttp.ClientSession, world: World) -> None:
    """With and without a Content-Length."""
    size = world.registry.settings.limits.body + 1

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(size // 65536 + 1):
            yield bytes(65536)

    for body in (io.BytesIO(bytes(size)), chunks()):
        with suppress(aiohttp.ClientConnectionError):  # the server may hang up before everything was sent
            async with client.post("/register", data=body) as answer:
                assert answer.status == 413
    assert world.refused("register", "TooLarge") == 2


async def test_the_probe_is_understood(listening: RunningServer, world: World) -> None:
    """metalprobe's own client completes all requests, and reports a refused token."""
    await world.open("Discovery")
    await world.lease("127.0.0.1")
    script = (await world.boot.script(UUID, "127.0.0.1")).body.decode()
    ignition = await world.boot.ignition(UUID, re.findall(r"token=([\w-]+)", script)[0], "127.0.0.1")
    sources = [file["contents"]["source"] for file in json.loads(ignition.body)["storage"]["files"][1:]]
    token = base64.b64decode(sources[0].partition("base64,")[2]).decode()
    probe = Registry(f"http://127.0.0.1:{listening.port}", UUID, token)
    await asyncio.to_thread(probe.register, {"cpu": []})
    await asyncio.to_thread(probe.register, {"cpu": []})
    assert (await world.window()).phase == "Succeeded"
    with pytest.raises(Refused):
        await asyncio.to_thread(probe.register, {"cpu": [1]})
