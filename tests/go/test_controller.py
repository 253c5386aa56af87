"""A controller-runtime program works on both homes: it sees every Server, writes status, and outlives a cut watch."""

import asyncio
import os
import secrets
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.conformance.homes import KINDS, Home, home
from tests.go.build import BUILD_SECONDS, built

pytestmark = [pytest.mark.kube, pytest.mark.wire, pytest.mark.needs("go"), pytest.mark.timeout(BUILD_SECONDS + 120)]

COUNT = 20
PATIENCE = 60.0
QUIET = 1.0
"""Seconds in which nothing may be written once all is said."""


@pytest.fixture(scope="session")
def program() -> Path:
    """The controller, built once."""
    return built("controller")


@pytest.fixture(params=["tls", "kube"])
async def api(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Home]:
    """Both homes."""
    cluster = request.getfixturevalue("cluster") if request.param == "kube" else None
    async with home(request.param, tmp_path, cluster) as made:
        yield made


class Fleet:
    """The Servers of one test."""

    def __init__(self, api: Home) -> None:
        self._client = api.client
        self.names = [f"audit-{secrets.token_hex(3)}-{number:02}" for number in range(COUNT)]

    async def create(self) -> None:
        for name in self.names:
            spec = {"systemUUID": "38947555-7742-3448-3784-823347823834"}
            await self._client.create(KINDS.server, {"metadata": {"name": name}, "spec": spec})

    async def change(self, led: str) -> None:
        """A new generation of each."""
        for name in self.names:
            await self._client.patch(KINDS.server, name, {"spec": {"indicatorLED": led}})

    async def delete(self) -> None:
        for name in self.names:
            await self._client.delete(KINDS.server, name)

    async def audited(self) -> None:
        """Returns once each carries the condition for the generation that it has. Raises TimeoutError."""
        async with asyncio.timeout(PATIENCE):
            for name in self.names:
                await self._becomes_audited(name)

    async def versions(self) -> list[str]:
        """resourceVersion of each."""
        return [(await self._client.get(KINDS.server, name)).metadata.resource_version for name in self.names]

    async def _becomes_audited(self, name: str) -> None:
        while True:
            server = await self._client.get(KINDS.server, name)
            told = [(c.type, c.status, c.message) for c in server.status.conditions]
            if told == [("Audited", "True", f"generation {server.metadata.generation}")]:
                return
            await asyncio.sleep(0.1)


@asynccontextmanager
async def running(program: Path, api: Home, log: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """The program at work; it is killed at the end if it still runs."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(log.parent), "KUBECONFIG": str(api.kubeconfig)}
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(program, env=environment, stdout=out, stderr=out)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_controller_runtime_controls_servers(program: Path, api: Home, tmp_path: Path) -> None:
    """Twenty Servers get the condition, changes are seen through a break of the watch, and nothing is written twice."""
    fleet, log = Fleet(api), tmp_path / "log"
    await fleet.create()
    async with running(program, api, log) as process:
        await fleet.audited()
        settled = await fleet.versions()
        await asyncio.sleep(QUIET)
        unmoved = await fleet.versions()
        await fleet.change("Lit")
        await fleet.audited()
        await api.restart()
        await fleet.change("Blinking")
        await fleet.audited()
        await fleet.delete()
        process.send_signal(signal.SIGTERM)
        code = await asyncio.wait_for(process.wait(), PATIENCE)

    assert unmoved == settled
    assert code == 0, log.read_text()[-3000:]
