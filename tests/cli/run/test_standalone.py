"""`metalctl up` in this process: election, supervision, readiness, and an end at any moment of the start."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from metal.api.core import LEASE, NAMESPACE
from metal.apiserver.storage.journal import Done, JournalError
from metal.cli.run.home_lease import PREFIX, release_former
from metal.cli.run.manager import _manager as manager_over
from metal.cli.run.process import candidate, started
from metal.cli.run.simulated_fleet import FleetOptions
from metal.cli.run.standalone import Standalone
from metal.config import Config
from metal.kube.client.http import HTTPClient
from metal.kube.client.kubeconfig import load
from metal.kube.controller.tasks import Crashed
from metal.manager import Manager
from tests.cli.run.test_up import free_ports

CONFIG = Config()
ENDPOINT: dict[str, Any] = {
    "metadata": {"name": "e1"}, "spec": {"macAddress": "02:00:00:00:00:01", "ip": "192.0.2.1"}
}  # fmt: skip
INFORMERS = (
    "bmcs", "bmcsecrets", "endpoints", "ipxebootconfigs", "sanitizationevidences", "serverbootconfigurations",
    "serverclaims", "servermaintenances", "serverreadinessrules", "servers",
)  # fmt: skip
CONTROLLERS = (
    "bmc", "bmcsecret", "endpoint", "readiness", "server", "serverbootconfiguration", "serverclaim",
    "servermaintenance", "serverreadinessrule",
)  # fmt: skip
TASKS = (
    "api/garbage collector", "api/housekeeping", "api/serving certificate", "api/storage check", "background/events",
    "background/events of BMCs", "background/mac-prefixes", "background/pause", "election/elector",
    *(f"informer/{name}" for name in INFORMERS), *(f"controller/{name}" for name in CONTROLLERS),
)  # fmt: skip
"""The tasks of a leader that run until it stops."""
UNSUPERVISED = {"election/watch"}
"""It only wakes the elector, which also reads the Lease at intervals."""


def configured() -> Config:
    """Free ports of loopback."""
    api, boot, registry, metrics = (f"127.0.0.1:{port}" for port in free_ports(4))
    listen = dataclasses.replace(CONFIG.listen, api=api, boot=boot, registry=registry, metrics=metrics)
    return dataclasses.replace(CONFIG, listen=listen)


@asynccontextmanager
async def up(folder: Path, config: Config | None = None) -> AsyncIterator[Standalone]:
    """A running control plane."""
    plane = Standalone(folder, config or configured(), FleetOptions())
    try:
        await plane.start()
        yield plane
    finally:
        await plane.stop()


async def holder(plane: Standalone) -> str:
    """Holder of the Lease."""
    return (await plane.api.client().get(LEASE, "metal-operator", "metal-system")).spec.holder_identity


async def leading(plane: Standalone) -> None:
    """Wait until this process leads; within five seconds, which is less than the duration of a Lease."""
    await led_by(plane.manager)


async def led_by(leader: Manager) -> None:
    """Wait until this manager leads."""
    async with asyncio.timeout(5):
        while leader.role != "leader":  # noqa: ASYNC110 - the role is read from the clock and wakes nobody
            await asyncio.sleep(0.01)


@asynccontextmanager
async def manager(plane: Standalone, folder: Path) -> AsyncIterator[Manager]:
    """What `metalctl manager` runs, with the kubeconfig of this plane."""
    connection = load(plane.api.kubeconfig, None)
    async with HTTPClient(connection) as client, HTTPClient(connection) as election:
        elector = candidate(plane.config, election)
        made = manager_over(plane.config, client, folder, elector, CollectorRegistry())
        try:
            await made.start()
            yield made
        finally:
            await made.stop(grace=0.0)


async def acted_on(plane: Standalone) -> None:
    """Wait until a controller has written the status of the Endpoint."""
    client, kind, name = plane.api.client(), plane.manager.kinds.endpoint, ENDPOINT["metadata"]["name"]
    async with asyncio.timeout(5):
        while not (await client.get(kind, name)).status.conditions:  # noqa: ASYNC110 - it is polled
            await asyncio.sleep(0.01)


async def probe(plane: Standalone, path: str, *, metrics: bool = False) -> tuple[int, str]:
    """A probe, of the API or of the listener of metrics."""
    reader, writer = await asyncio.open_connection(*plane.config.listen.metrics.split(":"))
    if not metrics:
        answer = plane.api.backend.health.answer(path, {"verbose": ""})
        assert answer is not None
        writer.close()
        return (200 if answer.passed else 500), answer.text
    writer.write(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
    raw = (await reader.read()).decode()
    writer.close()
    return int(raw.split()[1]), raw.split("\r\n\r\n", 1)[1]


@pytest.mark.behaviour(
    "Embedded API and assembly",
    "Of `metalctl up` and `metalctl manager` on one API one leads; the controllers of the other do not run.",
)
async def test_with_a_manager_on_the_same_kubeconfig_only_one_leads(tmp_path: Path) -> None:
    """A whole manager over the network stands by: its caches are filled, its controllers do not run."""
    async with up(tmp_path) as plane:
        await leading(plane)
        async with manager(plane, tmp_path / "other") as other:
            await plane.api.client().create(plane.manager.kinds.endpoint, ENDPOINT)
            await acted_on(plane)
            assert (other.role, plane.manager.role) == ("standby", "leader")
            assert (other.runtime.working, plane.manager.runtime.working) == (False, True)
            assert (await holder(plane)).startswith(PREFIX)


@pytest.mark.behaviour(
    "Embedded API and assembly", "`metalctl up` stands by where a manager over the network leads, also after a restart."
)
async def test_where_a_manager_leads_up_stands_by(tmp_path: Path) -> None:
    """`up` restarts while a manager over the network leads: the Lease in its data folder is not released."""
    config = configured()
    async with up(tmp_path, config) as plane:
        await leading(plane)
        async with manager(plane, tmp_path / "other") as other:
            await plane.manager.stop()
            await led_by(other)
            await plane.stop()
            async with up(tmp_path, config) as again:
                await again.api.client().create(again.manager.kinds.endpoint, ENDPOINT)
                await acted_on(again)
                assert (other.role, again.manager.role) == ("leader", "standby")
                assert (other.runtime.working, again.manager.runtime.working) == (True, False)
                assert await holder(again) == other.parts.elector.settings.identity  # type: ignore[union-attr]  # elected


async def test_a_leader_elsewhere_is_waited_for(tmp_path: Path) -> None:
    """When another process holds the Lease at the start, `up` is ready as standby and its controllers are held."""
    async with up(tmp_path) as plane:
        await plane.manager.stop()
        spec = {"holderIdentity": "elsewhere", "leaseDurationSeconds": 10}
        await plane.api.client().patch(LEASE, "metal-operator", {"spec": spec}, "metal-system")
    async with up(tmp_path) as plane:
        assert plane.manager.role == "standby"
        assert not plane.manager.runtime.working
        assert await probe(plane, "/readyz", metrics=True) == (200, "ok standby")


@pytest.mark.behaviour(
    "Embedded API and assembly",
    "After a crash `metalctl up` leads at once: the Lease of a former process of its data folder is released.",
)
async def test_after_a_crash_it_leads_at_once(tmp_path: Path) -> None:
    """A Lease of a former process of this data folder is released before the API listens: that process has ended."""
    async with up(tmp_path) as plane:
        await leading(plane)
        await plane.manager.stop()
        spec = {"holderIdentity": f"{PREFIX}killed", "leaseDurationSeconds": 10}
        await plane.api.client().patch(LEASE, "metal-operator", {"spec": spec}, "metal-system")
    async with up(tmp_path) as plane:
        await leading(plane)


async def test_a_lease_that_is_missing_is_released_in_an_empty_folder_only(tmp_path: Path) -> None:
    """The holder of a Lease that was deleted may still act; in an empty data folder there was none."""
    async with up(tmp_path) as plane:
        client = plane.api.client()
        await plane.manager.stop()
        await client.delete(LEASE, "metal-operator", "metal-system")
        await release_former(client, "metal-operator", "metal-system", empty=False)
        assert not (await client.list(LEASE, "metal-system")).items
        await release_former(client, "metal-operator", "metal-system", empty=True)
        assert await holder(plane) == ""


@pytest.mark.behaviour(
    "Embedded API and assembly",
    "`/readyz?verbose` and `/livez?verbose` name each check: storage, background tasks, caches, manager, certificate.",
)
async def test_every_check_is_named_and_both_listeners_have_them(tmp_path: Path) -> None:
    """/readyz?verbose says what was tested, in one line for each check; /livez tests what a restart would end."""
    async with up(tmp_path) as plane:
        checks = ["ping", "storage", "api-tasks", "caches", "tasks", "manager", "serving-certificate"]
        for metrics in (True, False):
            code, text = await probe(plane, "/readyz?verbose" if metrics else "/readyz", metrics=metrics)
            assert (code, text) == (200, "".join(f"[+]{name} ok\n" for name in checks) + "readyz check passed\n")
        code, text = await probe(plane, "/livez?verbose", metrics=True)
        assert (code, text) == (200, "[+]ping ok\n[+]api-tasks ok\n[+]tasks ok\nlivez check passed\n")
        assert (await probe(plane, "/readyz/storage", metrics=True)) == (200, "ok")
        assert (await probe(plane, "/readyz/none", metrics=True))[0] == 404


@pytest.mark.behaviour(
    "Embedded API and assembly",
    "`metalctl up` has the metrics of a manager for requests to the API and for its election.",
)
async def test_the_metrics_of_the_api_client_and_the_election_are_those_of_a_manager(tmp_path: Path) -> None:
    """Requests in process are counted as those over the network are."""
    async with up(tmp_path) as plane:
        await leading(plane)
        _, text = await probe(plane, "/metrics", metrics=True)
        assert 'leader_election_master_status{name="metal-operator"} 1.0' in text
        assert 'rest_client_requests_total{code="200",host="in-process",method="PATCH"}' in text


@pytest.mark.behaviour(
    "Embedded API and assembly", "A background task that ends is named in `/readyz` and `/livez`, and ends the process."
)
@pytest.mark.parametrize("task", TASKS)
async def test_a_background_task_that_ends_is_named_and_ends_the_process(tmp_path: Path, task: str) -> None:
    """Its failure is in /readyz and /livez, and ends the wait for a signal."""
    async with up(tmp_path) as plane:
        running = asyncio.ensure_future(plane.run(asyncio.Event()))
        await leading(plane)
        await acting()
        [victim] = [found for found in asyncio.all_tasks() if found.get_name() == task]
        await asyncio.sleep(0)
        victim.cancel()
        async with asyncio.timeout(5):
            with pytest.raises(Crashed, match=f"{task}: ended without being stopped"):
                await running
        for path in ("/readyz", "/livez"):
            code, text = await probe(plane, path, metrics=True)
            assert code == 503
            assert f"tasks failed: {task}" in text


async def acting() -> None:
    """Wait until the controllers of a leader run."""
    async with asyncio.timeout(5):
        while not {f"controller/{name}" for name in CONTROLLERS} <= named():  # noqa: ASYNC110 - tasks have no event
            await asyncio.sleep(0.01)


def named() -> set[str]:
    """The tasks of the program that have a name of their own."""
    return {name for task in asyncio.all_tasks() if "/" in (name := task.get_name()) and not name.startswith("Task-")}


async def test_each_task_of_a_leader_is_supervised(tmp_path: Path) -> None:
    """The list of this module is complete."""
    async with up(tmp_path) as plane:
        await leading(plane)
        await acting()
        assert named() == {*TASKS, *UNSUPERVISED}


@pytest.mark.behaviour(
    "Embedded API and assembly",
    "`/readyz` fails while the data folder cannot be written, without a write of a client.",
)
async def test_a_store_that_cannot_be_written_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fails is noticed without a write, and so is its recovery."""
    async with up(tmp_path) as plane:
        store = plane.api.backend.store

        async def broken() -> None:
            raise JournalError("the disk is full")

        def lose(done: Done, *_: object) -> None:
            done(JournalError("the disk is full"))

        with monkeypatch.context() as disk:
            disk.setattr(store._journal, "check", broken)
            disk.setattr(store._journal, "append", lose)
            await store.check()
            code, text = await probe(plane, "/readyz", metrics=True)
            assert (code, "[-]storage failed: the data folder cannot be written\n" in text) == (503, True)
            assert (await probe(plane, "/livez", metrics=True))[0] == 200
        await store.check()
        assert (await probe(plane, "/readyz", metrics=True))[0] == 200


async def turns(count: int, stop: asyncio.Event) -> None:
    """Set `stop` after so many turns of the loop."""
    for _ in range(count):
        await asyncio.sleep(0)
    stop.set()


@pytest.mark.behaviour(
    "Embedded API and assembly",
    "`metalctl up` can be interrupted at any moment of its start, and leaves its data folder in order.",
)
@pytest.mark.parametrize("count", [0, 1, 3, 10, 30, 60, 100, 200, 400, 800, 1600])
async def test_it_can_be_interrupted_at_any_moment_of_the_start(tmp_path: Path, count: int) -> None:
    """Wherever a signal finds the start, it ends there within two seconds; the next start finds the folder in order."""
    stop = asyncio.Event()
    plane = Standalone(tmp_path, configured(), FleetOptions())
    signal = asyncio.ensure_future(turns(count, stop))
    async with asyncio.timeout(10):
        assert not await started(plane.start(), stop), "the start ended before the signal"
    async with asyncio.timeout(2):
        await plane.stop()
    signal.cancel()
    if count in (30, 200):
        async with up(tmp_path) as again:
            await again.api.client().get(NAMESPACE, "metal-system")
