"""`metalctl up --fleet` as a process with a kubeconfig and sockets, in real time."""

import asyncio
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from metal.api.claim import ServerClaim
from metal.api.core import SECRET
from metal.api.kinds import kinds
from metal.api.server import Server
from metal.kube.client.errors import ApiError
from metal.kube.client.http import HTTPClient
from metal.kube.client.kubeconfig import load

pytestmark = pytest.mark.life

METALCTL = Path(sys.executable).with_name("metalctl")
KINDS = kinds()
IGNITION = '{"ignition": {"version": "3.2.0"}}'


class Up:
    """A running `metalctl up` and a client of its API."""

    def __init__(self, folder: Path, machines: int) -> None:
        self.data, self.machines = folder / "data", machines
        self.ports = free_ports(6)
        self.image = f"127.0.0.1:{self.ports[5]}/demo:latest"
        self.process: asyncio.subprocess.Process | None = None

    @property
    def command(self) -> list[str | Path]:
        api, boot, registry, metrics, bmcs, images = map(str, self.ports)
        return [
            METALCTL, "up", "--fleet", str(self.machines), "--data", self.data,
            "--api-listen", f"127.0.0.1:{api}", "--boot-listen", f"127.0.0.1:{boot}",
            "--registry-listen", f"127.0.0.1:{registry}", "--metrics-listen", f"127.0.0.1:{metrics}",
            "--bmc-port", bmcs, "--images-port", images,
        ]  # fmt: skip

    async def start(self) -> HTTPClient:
        self.process = await asyncio.create_subprocess_exec(
            *self.command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        await self.printed("kubeconfig:")
        return HTTPClient(load(self.data / "kubeconfig", None))

    async def printed(self, text: str) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        seen = []
        async with asyncio.timeout(20):
            async for line in self.process.stdout:
                seen.append(line.decode())
                if text in seen[-1]:
                    return
        raise AssertionError(f"it ended without {text!r}: {''.join(seen)}")

    async def end(self, how: signal.Signals) -> float:
        """Stop the process, and return the seconds until its end."""
        assert self.process is not None
        begun = time.monotonic()
        self.process.send_signal(how)
        await asyncio.wait_for(self.process.communicate(), 15)
        return time.monotonic() - begun


def free_ports(count: int) -> list[int]:
    """Return ports that were free on the address."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


@asynccontextmanager
async def running(up: Up) -> AsyncIterator[HTTPClient]:
    """Start a process, and end it afterwards."""
    client = await up.start()
    try:
        yield client
    finally:
        await client.aclose()
        if up.process is not None and up.process.returncode is None:
            await up.end(signal.SIGKILL)


async def wait_for(read: Callable[[], Any], check: Callable[[Any], bool], *, within: float = 15.0) -> Any:
    """Repeat a request until the answer passes a check."""
    end = time.monotonic() + within
    while True:
        try:
            found = await read()
            if check(found):
                return found
        except ApiError:
            found = None
        assert time.monotonic() < end, f"not within {within:g} s: {found}"
        await asyncio.sleep(0.05)


async def servers(client: HTTPClient) -> list[Server]:
    return sorted((await client.list(KINDS.server)).items, key=lambda server: server.metadata.name)


async def claim_one(client: HTTPClient, up: Up) -> None:
    secret = {"metadata": {"name": "c1", "namespace": "default"}, "stringData": {"ignition": IGNITION}}
    await client.create(SECRET, secret)
    spec = {"power": "On", "image": up.image, "ignitionSecretRef": {"name": "c1"}}
    await client.create(KINDS.claim, {"metadata": {"name": "c1", "namespace": "default"}, "spec": spec})


def ready(claim: ServerClaim) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in claim.status.conditions)


def outline(found: list[Server]) -> list[tuple[str, ...]]:
    return [(s.metadata.name, s.metadata.uid, s.uuid, s.status.state, s.status.power_state) for s in found]


def all_available(count: int) -> Callable[[list[Server]], bool]:
    return lambda found: len(found) == count and all(s.status.state == "Available" for s in found)


@pytest.mark.behaviour("Registry and probe", "`metalctl up` brings the first server to Available within ten seconds.")
async def test_the_first_server_is_available_within_ten_seconds(tmp_path: Path) -> None:
    """The first server is Available within ten seconds of the start of the process."""
    begun = time.monotonic()
    async with running(Up(tmp_path, 8)) as client:
        await wait_for(lambda: servers(client), lambda found: any(s.status.state == "Available" for s in found))
        assert time.monotonic() - begun < 10


async def test_state_survives_ctrl_c_and_a_restart(tmp_path: Path) -> None:
    """After a restart, claimed, booted and idle servers are unchanged and were not booted again."""
    up = Up(tmp_path, 3)
    async with running(up) as client:
        await wait_for(lambda: servers(client), all_available(3))
        await claim_one(client, up)
        await wait_for(lambda: client.get(KINDS.claim, "c1", "default"), ready)
        before = await servers(client)
        assert await up.end(signal.SIGINT) < 3
        assert up.process is not None
        assert up.process.returncode == 0
    async with running(up) as client:
        await asyncio.sleep(1.5)
        after = await servers(client)
        assert outline(after) == outline(before)
        assert [s.status.boot_window for s in after] == [s.status.boot_window for s in before]
        await client.delete(KINDS.claim, "c1", "default")
        await wait_for(lambda: servers(client), all_available(3))
        assert await up.end(signal.SIGTERM) < 3


async def test_a_killed_process_loses_no_machine(tmp_path: Path) -> None:
    """After SIGKILL during the boot of a claim and a restart, the claim is booted."""
    up = Up(tmp_path, 2)
    async with running(up) as client:
        await wait_for(lambda: servers(client), all_available(2))
        await claim_one(client, up)
        await wait_for(lambda: servers(client), lambda found: any(s.status.power_state == "On" for s in found))
        await asyncio.sleep(0.1)
        await up.end(signal.SIGKILL)
    async with running(up) as client:
        await wait_for(lambda: client.get(KINDS.claim, "c1", "default"), ready, within=40)


async def test_a_port_in_use_is_reported_with_the_way_out(tmp_path: Path) -> None:
    """A port in use is an error with a way out, and no process keeps running."""
    up = Up(tmp_path, 1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", up.ports[5]))
        taken.listen()
        with pytest.raises(AssertionError, match=rf"image registry 127\.0\.0\.1:{up.ports[5]}.*--images-port"):
            await up.start()
    assert up.process is not None
    assert await up.process.wait() == 1


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after", ["state.db", "apiserver.key", "kubeconfig"])
async def test_it_ends_soon_wherever_a_signal_finds_its_start(tmp_path: Path, how: signal.Signals, after: str) -> None:
    """As soon as a file of the start exists, a signal ends it within three seconds, with code 0 and no traceback."""
    up = Up(tmp_path, 2)
    up.process = await asyncio.create_subprocess_exec(
        *up.command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    end = time.monotonic() + 15
    while not (up.data / after).exists() and time.monotonic() < end:  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.002)
    await asyncio.sleep(0.05)
    begun = time.monotonic()
    up.process.send_signal(how)
    out, _ = await asyncio.wait_for(up.process.communicate(), 15)
    assert time.monotonic() - begun < 3
    assert up.process.returncode == 0, out.decode()
    assert b"Traceback" not in out
    assert b"all state is stored in" in out
