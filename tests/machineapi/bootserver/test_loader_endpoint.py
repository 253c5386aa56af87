"""iPXE's EFI binaries over HTTP."""

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from metal.machineapi.bootserver.routes import routes
from metal.machineapi.bootserver.settings import BootSettings
from metal.machineapi.http.server import make_app, serve
from tests.machineapi.world import World


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[aiohttp.ClientSession]:
    world = World(tmp_path)
    (tmp_path / "snponly.efi").write_bytes(b"MZ" + bytes(5000))
    service = world.service(BootSettings(ipxe=tmp_path))
    running = await serve(make_app(routes(service), world.refusals), "127.0.0.1", 0)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{running.port}") as session:
        yield session
    await running.aclose()


async def test_firmware_gets_the_binary_of_its_architecture(client: aiohttp.ClientSession) -> None:
    """HEAD and GET agree on type and length, without a redirect, whatever else is in the URL."""
    for method in ("HEAD", "GET"):
        async with client.request(method, "/httpboot/x86_64.efi", allow_redirects=False) as answer:
            body = await answer.read()
            assert answer.status == 200
            assert answer.headers["Content-Length"] == "5002"
            assert answer.headers["Content-Type"] == "application/efi"
            assert body == (b"" if method == "HEAD" else b"MZ" + bytes(5000))


@pytest.mark.parametrize("name", ["arm64.efi", "snponly.efi", "..%2Fsecret", "x86_64.efi%00"])
async def test_nothing_else_in_the_folder_or_outside_is_served(client: aiohttp.ClientSession, name: str) -> None:
    """A binary that is not installed is not found either."""
    async with client.get(f"/httpboot/{name}") as answer:
        assert answer.status in (400, 403, 404)
