"""--wait ends when a server enters Error, with the failure, a hint and exit code 1."""

from pathlib import Path
from typing import Any

import pytest

from metal.cli.machines import operations
from tests.cli.inprocess import Bench, Outcome, bench
from tests.cli.live import KINDS
from tests.cli.machines.test_machines import ok, seen, seen_any, status, take, with_manager

OWED = {"state": "Cleanup", "reason": "SanitizationOwed", "message": "drive S1 (Bay 4) is locked."}
TORN = {"state": "Reserved", "reason": "NetworkBootFailed", "message": "5 network boots failed."}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "_PAUSE", 0.02)


async def fail(b: Bench, failure: dict[str, str]) -> None:
    """Write a failure of server s1 as a manager does."""
    body = {"status": {"state": "Error", "failure": failure, "since": "2026-01-01T00:00:00Z"}}
    await b.live.client.patch_status(KINDS.server, "s1", body)


async def free(b: Bench) -> None:
    """Write a server that can be claimed."""
    body = {"status": {"state": "Available", "tenancy": None, "failure": None, "waitingFor": None}}
    await b.live.client.patch_status(KINDS.server, "s1", body)


def refused(done: Outcome, *words: str) -> None:
    """Assert that the command failed with these texts."""
    assert done.code == 1, done.err
    assert [word for word in (*words, "metalctl why server/s1") if word not in done.err] == [], done.err


async def held(b: Bench, **status: Any) -> str:
    """Create server s1 bound to claim web; return the UID of the claim."""
    await b.claimed("s1", "web", powerState="On")
    uid = (await b.live.client.get(KINDS.claim, "web", "default")).metadata.uid
    await b.live.client.patch_status(KINDS.server, "s1", {"status": {"tenancy": {"claimRef": {"uid": uid}}, **status}})
    return uid


async def gone(b: Bench) -> None:
    """Wait until the claim is deleted."""
    page = await b.live.client.list(KINDS.claim)
    if page.items:
        async for event in b.live.client.watch(KINDS.claim, resource_version=page.resource_version):
            if event.type == "DELETED":
                return


async def test_a_claim_whose_server_fails_is_waited_for_no_longer(tmp_path: Path) -> None:
    """The condition Ready ends the wait; the claim is kept."""
    async with bench(tmp_path) as b:

        async def manager() -> None:
            await seen_any(b)
            await b.live.client.patch(KINDS.claim, "web", {"spec": {"serverRef": {"name": "s1"}}}, "default")
            text = "server s1, which is in Error: 5 network boots failed."
            failed = {"type": "Ready", "status": "False", "reason": "ServerInError", "message": text}
            await status(b, "web", {"phase": "Bound", "conditions": [ok("Bound"), failed]})

        done = await with_manager(b.run("claim", "web", "--image", "x/os:1", "--wait"), manager())
        kept = await b.live.client.get(KINDS.claim, "web", "default")
    refused(done, "claim web waits for server s1, which is in Error: 5 network boots failed. It continues when")
    assert kept.metadata.deletion_timestamp is None


async def test_a_release_ends_when_the_sanitization_fails(tmp_path: Path) -> None:
    """A sanitization that failed ends the wait, because the server does not become free."""
    async with bench(tmp_path) as b:
        await held(b)

        async def manager() -> None:
            await gone(b)
            await fail(b, OWED)

        done = await with_manager(b.run("release", "web", "--wait"), manager())
    refused(done, "server s1 is in Error: SanitizationOwed: drive S1 (Bay 4) is locked")


async def test_an_earlier_failure_does_not_end_a_release(tmp_path: Path) -> None:
    """An earlier failure of the server does not end the wait: the release resolves it."""
    async with bench(tmp_path) as b:
        await held(b, state="Error", failure=TORN, since="2026-01-01T00:00:00Z", waitingFor="somebody")

        async def manager() -> None:
            await gone(b)
            await free(b)

        done = await with_manager(b.run("release", "web", "--wait"), manager())
    assert (done.code, done.out) == (0, "serverclaim/web deleted; server s1 is Available\n"), done.err


async def test_a_retry_that_leaves_the_server_in_error_failed(tmp_path: Path) -> None:
    """A retry without effect is an error."""
    async with bench(tmp_path) as b:
        await b.server("s1", state="Error", failure=TORN)
        done = await with_manager(b.run("retry", "s1", "--wait"), take(b, "s1", "retry"))
    refused(done, "NetworkBootFailed: 5 network boots failed")


async def test_parking_a_server_that_fails_is_not_waited_for(tmp_path: Path) -> None:
    """A server in Error is not parked, so that the wait ends."""
    async with bench(tmp_path) as b:
        await b.server("s1", state="Available")

        async def manager() -> None:
            await take(b, "s1", "park")
            await fail(b, {"state": "Available", "reason": "PowerOffTimeout", "message": "still on"})

        done = await with_manager(b.run("park", "s1", "--wait"), manager())
    refused(done, "PowerOffTimeout: still on")


async def test_a_maintenance_that_fails_is_waited_for_no_longer(tmp_path: Path) -> None:
    """The failure is reported by the maintenance at its start, and by the server at its end."""
    async with bench(tmp_path) as b:
        await b.server("s1", state="Available")

        async def begins() -> None:
            await seen(b, KINDS.maintenance, "s1", lambda one: True)
            failed = {"state": "Failed", "waitingFor": "power On, which is late"}
            await b.live.client.patch_status(KINDS.maintenance, "s1", {"status": failed}, "default")

        done = await with_manager(b.run("maintain", "s1", "--reason", "new DIMM", "--wait"), begins())
        refused(done, "the maintenance failed: power On, which is late")
        await b.live.client.patch(
            KINDS.server, "s1", {"spec": {"serverMaintenanceRef": {"namespace": "default", "name": "s1"}}}
        )
        await b.live.client.patch_status(KINDS.server, "s1", {"status": {"state": "Maintenance"}})

        async def ends() -> None:
            page = await b.live.client.list(KINDS.maintenance)
            if page.items:
                async for event in b.live.client.watch(KINDS.maintenance, resource_version=page.resource_version):
                    if event.type == "DELETED":
                        break
            await fail(b, {"state": "Maintenance", "reason": "PowerOffTimeout", "message": "still on"})

        ended = await with_manager(b.run("maintain", "s1", "--end", "--wait"), ends())
    refused(ended, "server s1 is in Error: PowerOffTimeout: still on")
