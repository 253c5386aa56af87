"""status, lease-hook and sim as processes against an API that listens, in real time."""

import asyncio
import json
import signal
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from metal.kube.client.protocol import Client
from tests.cli.live import KINDS, METALCTL, api
from tests.cli.run.test_up import free_ports

pytestmark = pytest.mark.life

MAC, NAME = "52:54:00:00:00:01", "mac-52-54-00-00-00-01"


async def _server(client: Client, name: str, uuid: str, status: dict[str, Any]) -> None:
    await client.create(KINDS.server, {"metadata": {"name": name}, "spec": {"systemUUID": uuid}})
    await client.patch_status(KINDS.server, name, {"status": status})


async def _bmc(client: Client, name: str, waiting_for: str) -> None:
    spec = {
        "access": {"address": "192.0.2.9"},
        "bmcSecretRef": {"name": "none"},
        "protocol": {"name": "Redfish", "port": 443},
    }
    await client.create(KINDS.bmc, {"metadata": {"name": name}, "spec": spec})
    await client.patch_status(KINDS.bmc, name, {"status": {"state": "Error", "waitingFor": waiting_for}})


async def test_status_shows_servers_and_what_has_none(tmp_path: Path) -> None:
    """The table lists servers and BMCs without a server; JSON has times and names, and nothing else is on stdout."""
    async with api(tmp_path) as live:
        since, until = "2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z"
        wait = {"for": "Probe", "since": since, "until": until}
        status = {"state": "Discovery", "since": since, "waitingFor": "the probe's report", "wait": wait}
        await _server(live.client, "s1", "38947555-7742-3448-3784-823347823834", status)
        await _bmc(live.client, "lonely", "credentials that work")
        people, programs, foreign = await asyncio.gather(
            live.metalctl("status"),
            live.metalctl("status", "-o", "json"),
            live.metalctl("status", "--api-group", "metal.openkcm.dev"),
        )
    code, out, _ = people
    header, row, *rest = out.splitlines()
    assert code == 0
    assert header.split() == ["SERVER", "STATE", "SINCE", "POWER", "CLAIM", "WAITING", "FOR"]
    assert row.split()[:2] == ["s1", "Discovery"]
    assert rest == ["1 BMC has no server yet: kubectl get bmcs", "  lonely: credentials that work"]
    (found,) = json.loads(programs[1])
    assert datetime.fromisoformat(found["since"]) == datetime.fromisoformat(since)
    assert datetime.fromisoformat(found["deadline"]) == datetime.fromisoformat(until)
    assert (found["waitName"], found["waitingFor"]) == ("Probe", "the probe's report")
    assert foreign[0] == 1
    assert "the API server has no kinds of group metal.openkcm.dev; set --api-group" in foreign[2]


async def test_the_lease_hook_records_what_dnsmasq_says(tmp_path: Path) -> None:
    """add creates an Endpoint, old with another address changes it, del removes the address."""
    async with api(tmp_path) as live:
        assert await live.metalctl("lease-hook", "add", MAC, "192.0.2.11", "host-1") == (0, "", "")
        assert str((await live.client.get(KINDS.endpoint, NAME)).spec.ip) == "192.0.2.11"
        assert await live.metalctl("lease-hook", "old", MAC, "192.0.2.12") == (0, "", "")
        endpoint = await live.client.get(KINDS.endpoint, NAME)
        assert (endpoint.spec.mac_address, str(endpoint.spec.ip)) == (MAC, "192.0.2.12")
        assert await live.metalctl("lease-hook", "del", MAC, "192.0.2.12") == (0, "", "")
        assert [e for e in (await live.client.list(KINDS.endpoint)).items if e.spec.ip] == []


@pytest.mark.parametrize("late", [False, True])
async def test_sim_reports_the_leases_of_its_bmcs(late: bool, tmp_path: Path) -> None:
    """Leases are reported also if sim starts before the kubeconfig exists."""
    port, images = map(str, free_ports(2))
    data = tmp_path / "data"
    command: list[str | Path] = [
        METALCTL,
        "sim",
        "-n",
        "2",
        "--kubeconfig",
        data / "kubeconfig",
        "--port",
        port,
        "--images-port",
        images,
    ]
    if late:
        process = await _started(command)
        await _printed(process, "waiting for the kubeconfig")
    async with api(data) as live:
        if not late:
            process = await _started(command)
        try:
            await _printed(process, "every BMC has a lease")
            found = [e.spec.ip for e in (await live.client.list(KINDS.endpoint)).items]
            assert len({str(ip) for ip in found if ip}) == 2
            process.send_signal(signal.SIGINT)
            assert await asyncio.wait_for(process.wait(), 3) == 0
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()


async def _started(command: list[str | Path]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )


async def _printed(process: asyncio.subprocess.Process, text: str) -> None:
    assert process.stdout is not None
    seen = []
    async with asyncio.timeout(15):
        async for line in process.stdout:
            seen.append(line.decode())
            if text in seen[-1]:
                return
    raise AssertionError(f"it ended without {text!r}: {''.join(seen)}")
