"""From `metalctl up` into a cluster and back, every part in a process of its own."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from metal.api.kinds import kinds
from metal.api.server import Server
from metal.kube.client.http import HTTPClient
from metal.kube.client.kubeconfig import load
from metal.kube.client.protocol import Client
from tests.crds import crds
from tests.kubeapi.cluster import KubeCluster, free_ports, running
from tests.migration.site import install
from tests.sim.plane import is_ready

METALCTL = Path(sys.executable).with_name("metalctl")
KINDS = kinds()
_STOP_TIMEOUT = 60.0


def _claim(images: str) -> dict[str, Any]:
    spec = {"power": "On", "image": f"127.0.0.1:{images}/demo:latest"}
    return {"metadata": {"name": "c1", "namespace": "default"}, "spec": spec}


def _spawn(folder: Path, *args: str | Path) -> subprocess.Popen[bytes]:
    with (folder / f"{args[0]}.log").open("ab") as log:
        return subprocess.Popen([METALCTL, *args], stdout=log, stderr=log, cwd=folder, env={**os.environ})


def _config(folder: Path, name: str, ports: list[int]) -> Path:
    path = folder / f"{name}.yaml"
    api, boot, registry = ports
    path.write_text(
        f"listen:\n  api: 127.0.0.1:{api}\n  boot: 127.0.0.1:{boot}\n  registry: 127.0.0.1:{registry}\n  metrics: ''\n"
        "bmc:\n  scheme: http\n"
    )
    return path


async def _until(check: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(_STOP_TIMEOUT):
        while True:
            if await check():
                return
            await asyncio.sleep(0.5)


@asynccontextmanager
async def _client(kubeconfig: Path) -> AsyncIterator[Client]:
    async with HTTPClient(load(kubeconfig)) as client:
        yield client


async def _until_ready(client: Client) -> None:
    async def ready() -> bool:
        return is_ready(await client.get(KINDS.claim, "c1", "default"))

    await _until(ready)


async def _until_available(client: Client, count: int) -> None:
    async def available() -> bool:
        return sum(s.status.state == "Available" for s in (await client.list(KINDS.server)).items) >= count

    await _until(available)


async def _move(folder: Path, source: Path, target: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        METALCTL, "move", "--kubeconfig", source, "--to-kubeconfig", target, "--yes", cwd=folder,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await asyncio.wait_for(process.communicate(), _STOP_TIMEOUT)
    assert process.returncode == 0, out.decode()


async def _facts(client: Client) -> dict[str, tuple[object, ...]]:
    """Facts that differ if a machine was powered or booted."""
    servers: tuple[Server, ...] = (await client.list(KINDS.server)).items
    return {s.metadata.name: _fact(s) for s in servers}


def _fact(s: Server) -> tuple[object, ...]:
    window, booted = s.status.boot_window, s.status.tenancy.boot
    return (
        s.status.state,
        s.status.power_state,
        window and window.id,
        booted and booted.booted_at,
        s.status.power_request,
    )


@pytest.fixture
def empty() -> Iterator[KubeCluster]:
    """A new cluster: objects are moved only into an empty home."""
    with running() as started:
        yield started


@pytest.mark.kube
@pytest.mark.timeout(240)
async def test_a_first_cluster_is_adopted_and_given_back(tmp_path: Path, empty: KubeCluster) -> None:
    """Embedded, cluster, embedded: the claim stays Ready, no boot is repeated, and it can be released."""
    local, running = tmp_path / "data" / "kubeconfig", []
    ports = free_ports(8)
    up = _config(tmp_path, "up", ports[:3])
    manager = _config(tmp_path, "manager", ports[3:6])
    bmc, images = str(ports[6]), str(ports[7])
    try:
        running.append(_spawn(tmp_path, "up", "--data", tmp_path / "data", "--fleet", "2", "--config", up,
                              "--bmc-port", bmc, "--images-port", images))  # fmt: skip
        await _until(lambda: asyncio.to_thread(local.exists))
        async with _client(local) as here, _client(empty.kubeconfig) as there:
            await install(there, crds(KINDS))
            running.append(
                _spawn(tmp_path, "manager", "--kubeconfig", empty.kubeconfig, "--config", manager, "--data",
                       tmp_path / "cache")
            )  # fmt: skip
            await _until_available(here, 2)
            await here.create(KINDS.claim, _claim(images))
            await _until_ready(here)
            before = await _facts(here)

            await _move(tmp_path, local, empty.kubeconfig)
            await _until_ready(there)
            assert await _facts(there) == before

            await _move(tmp_path, empty.kubeconfig, local)
            await _until_ready(here)
            assert await _facts(here) == before
            await here.delete(KINDS.claim, "c1", "default")
            await _until_available(here, 2)
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(20)
