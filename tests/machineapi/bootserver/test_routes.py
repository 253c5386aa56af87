"""The boot server over HTTP: the whole boot of a machine, with another client beside it."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import structlog

from metal.machineapi.bootserver.routes import routes
from metal.machineapi.http.server import make_app, serve
from tests.boot.registry import INITRAMFS, KERNEL
from tests.machineapi.world import UUID, World

LOOPBACK = "127.0.0.1"


@pytest.fixture
async def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    await made.populate()
    return made


@pytest.fixture
async def client(world: World) -> AsyncIterator[aiohttp.ClientSession]:
    running = await serve(make_app(routes(world.boot), world.refusals), LOOPBACK, 0)
    async with aiohttp.ClientSession(f"http://{LOOPBACK}:{running.port}") as session:
        yield session
    await running.aclose()


async def get(client: aiohttp.ClientSession, url: str, **headers: str) -> tuple[int, str]:
    local = url.partition("http://10.0.0.1:8082")[2] or url
    async with client.get(local, headers=headers) as answer:
        return answer.status, (await answer.read()).decode("latin-1")


def urls(script: str, part: str) -> str:
    found: list[str] = re.findall(rf"http://\S*{part}\S*", script)
    return found[0]


async def test_a_machine_walks_the_whole_chain(world: World, client: aiohttp.ClientSession) -> None:
    """Chainload, script, kernel, RAM disk and Ignition are each at the URL that the step before names."""
    await world.lease(LOOPBACK)
    await world.open("Claim")
    assert (await get(client, "/ipxe"))[1] == (await get(client, "/ipxe/"))[1]
    status, script = await get(client, f"/ipxe/{UUID}?mac=52:54:00:00:00:01")
    assert status == 200
    for line, expected in (("kernel http", KERNEL), ("initrd --name", INITRAMFS)):
        (command,) = {found for found in script.splitlines() if found.startswith(line) and found.endswith("failed")}
        assert await get(client, urls(command, "/image")) == (200, expected.decode("latin-1"))
    assert (await get(client, urls(script, "/ignition/")))[0] == 200
    assert (await get(client, urls(script, "/image")))[0] == 403
    assert (await world.window()).phase == "Succeeded"


async def test_forged_headers_make_nobody_the_machine(world: World, client: aiohttp.ClientSession) -> None:
    """Another lease is known, and X-Forwarded-For and similar headers are ignored."""
    await world.open("Claim")
    status, body = await get(client, f"/ipxe/{UUID}", **{"X-Forwarded-For": "10.0.0.7", "Forwarded": "for=10.0.0.7"})
    assert (status, body) == (403, "forbidden\n")
    assert world.refused("script", "ClientNotLeased") == 1


async def test_refusals_look_alike(world: World, client: aiohttp.ClientSession) -> None:
    """Closed window, wrong address and wrong token get the same status and body."""
    closed = await get(client, f"/ipxe/{UUID}")
    await world.open("Claim")
    wrong = await get(client, f"/ignition/{UUID}?token=x")
    assert closed == wrong == await get(client, f"/ipxe/{UUID}")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/ipxe", 405), ("HEAD", f"/ipxe/{UUID}", 405), ("HEAD", f"/ignition/{UUID}", 405),
        ("DELETE", "/image", 405), ("GET", "/", 404), ("GET", "/ipxe/a/b", 404), ("GET", "/image", 400),
        ("HEAD", "/ipxe", 200),
    ],
)  # fmt: skip
async def test_only_what_is_offered_is_answered(
    world: World, client: aiohttp.ClientSession, method: str, path: str, status: int
) -> None:
    """HEAD is offered only where GET changes nothing."""
    await world.open("Claim")
    async with client.request(method, path) as answer:
        assert answer.status == status
    assert (await world.window()).phase == "Open"


async def test_no_token_reaches_the_log(world: World, client: aiohttp.ClientSession) -> None:
    """Neither valid nor invalid tokens are logged; query strings are not logged at all."""
    await world.lease(LOOPBACK)
    await world.open("Discovery")
    with structlog.testing.capture_logs() as logs:
        _, script = await get(client, f"/ipxe/{UUID}")
        await get(client, urls(script, "/image"))
        await get(client, f"/ignition/{UUID}?token=hunter2")
        await get(client, urls(script, "/ignition/"))
        await get(client, f"/ignition/{UUID}?token=hunter2")
        await get(client, "/image?token=hunter2")
    assert logs
    told = str(logs) + str(world.events)
    assert "hunter2" not in told
    assert "token-" not in told
