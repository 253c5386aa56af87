"""claim, release, power, cordon, park, maintain against an API without a manager."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from metal.api.core import CRD, SECRET
from metal.api.server import Server
from metal.cli.machines import operations
from metal.kube.client.errors import NotFound
from tests.cli.inprocess import Bench, Outcome, bench
from tests.cli.live import KINDS

OPERATION = KINDS.key("operation")
IGNITION = '{"ignition": {"version": "3.2.0"}}'


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "_PAUSE", 0.02)


async def seen(b: Bench, kind: Any, name: str, check: Callable[[Any], bool]) -> Any:
    """Return the object when a condition holds."""
    namespace = "default" if kind.namespaced else ""
    page = await b.live.client.list(kind, namespace)
    found = [obj for obj in page.items if obj.metadata.name == name and check(obj)]
    if found:
        return found[0]
    async with asyncio.timeout(10):
        async for event in b.live.client.watch(kind, namespace, resource_version=page.resource_version):
            if event.object is not None and event.object.metadata.name == name and check(event.object):
                return event.object
    raise AssertionError("the watch ended")


def asked(operation: str) -> Callable[[Server], bool]:
    return lambda server: server.metadata.annotations.get(OPERATION) == operation


async def take(b: Bench, name: str, operation: str, **status: Any) -> None:
    """Remove an operation annotation as a manager does."""
    await seen(b, KINDS.server, name, asked(operation))
    await b.live.client.patch_status(KINDS.server, name, {"status": status})
    await b.live.client.patch(KINDS.server, name, {"metadata": {"annotations": {OPERATION: None}}})


async def with_manager(command: Any, manager: Any) -> Outcome:
    outcome, _ = await asyncio.gather(command, manager)
    assert isinstance(outcome, Outcome)
    return outcome


async def test_power_of_a_claimed_server_is_changed_in_its_claim(tmp_path: Path) -> None:
    """The change of the claim is announced; a second request says that the power is already set."""
    async with bench(tmp_path) as b:
        await b.claimed("s1", "web", powerState="On")
        done = await b.run("power", "off", "s1")
        assert done.err == "setting spec.power of claim default/web, which controls the power of s1, to Off\n"
        assert done.out == "server/s1 power Off requested in claim default/web\n"
        assert (await b.live.client.get(KINDS.claim, "web", "default")).spec.power == "Off"
        assert (await b.run("power", "off", "s1")).out.endswith("is already set in claim default/web\n")


async def test_power_waits_for_the_machine_and_shows_what_is_awaited(tmp_path: Path) -> None:
    """Progress is on stderr, one line for each change without a terminal; -o prints the server on stdout."""
    async with bench(tmp_path) as b:
        await b.claimed("s1", "web", powerState="On", waitingFor="power Off (the claim's power)")

        async def manager() -> None:
            await seen(b, KINDS.claim, "web", lambda claim: claim.spec.power == "Off")
            await b.live.client.patch_status(KINDS.server, "s1", {"status": {"powerState": "Off"}})

        done = await with_manager(b.run("power", "off", "s1", "--wait", "-o", "json"), manager())
        assert done.json["status"]["powerState"] == "Off"
        late = await b.run("power", "on", "s1", "--wait", "--timeout", "1s")
    assert late.code == 4
    assert "server/s1: waiting for power Off (the claim's power)\n" in late.err
    assert "not completed within 1s; still waiting for power Off (the claim's power)" in late.err


@pytest.mark.parametrize(
    ("spec", "state", "sentence"),
    [
        ({}, "Available", "server s1 is not claimed and therefore powered off"),
        ({}, "Parked", "server s1 is parked; the operator does not control its power"),
        ({"serverMaintenanceRef": {"namespace": "ops", "name": "dimm"}}, "Maintenance", "is in maintenance ops/dimm"),
        ({"serverClaimRef": {"namespace": "default", "name": "gone"}}, "Reserved", "is deleted or being deleted"),
    ],
)
async def test_power_that_no_claim_controls_is_rejected(
    spec: dict[str, Any], state: str, sentence: str, tmp_path: Path
) -> None:
    """The error names what controls the power and what to do, for reset too."""
    async with bench(tmp_path) as b:
        await b.server("s1", spec, state=state)
        for action in ("on", "reset"):
            refused = await b.run("power", action, "s1")
            assert (refused.code, sentence in refused.err) == (1, True), refused.err


async def test_servers_fail_independently(tmp_path: Path) -> None:
    """The other servers are processed; each failure has a line, and different failures have exit code 1."""
    async with bench(tmp_path) as b:
        await b.claimed("s1", "web")
        await b.server("s2", state="Available")
        done = await b.run("power", "off", "s1", "s2", "s3")
    assert done.out == "server/s1 power Off requested in claim default/web\n"
    assert (done.code, done.err.count("Error: ")) == (1, 2)


@pytest.mark.parametrize(
    ("options", "operation"),
    [((), "graceful-restart-server"), (("--hard",), "hard-restart-server"), (("--cycle",), "power-cycle-server")],
)
async def test_a_reset_is_an_operation_of_the_server(options: tuple[str, ...], operation: str, tmp_path: Path) -> None:
    """With --wait the command ends when the manager has removed the annotation."""
    async with bench(tmp_path) as b:
        await b.claimed("s1", "web", powerState="On")
        done = await with_manager(b.run("power", "reset", "s1", *options, "--wait"), take(b, "s1", operation))
    assert (done.code, done.out) == (0, f"server/s1 {operation} completed\n")


async def test_an_operation_that_the_manager_refuses_fails_with_its_sentence(tmp_path: Path) -> None:
    """The message of the Event is the error; an Event of an earlier operation is ignored."""
    async with bench(tmp_path) as b:
        await b.claimed("s1", "web")
        await b.event("s1", "ParkedOperationDropped", "an older one")
        fine = await with_manager(b.run("power", "reset", "s1", "--wait"), take(b, "s1", "graceful-restart-server"))
        assert fine.code == 0, fine.err

        async def manager() -> None:
            await take(b, "s1", "graceful-restart-server")
            await b.event("s1", "UnsupportedOperation", "operation 'graceful-restart-server' is not supported")

        done = await with_manager(b.run("power", "reset", "s1", "--wait"), manager())
    assert (done.code, "is not supported" in done.err) == (1, True)


async def test_retry_shows_the_resulting_state(tmp_path: Path) -> None:
    """The output has the state of the server after the retry."""
    async with bench(tmp_path) as b:
        await b.server("s1", state="Error")
        done = await with_manager(b.run("retry", "s1", "--wait"), take(b, "s1", "retry", state="Discovery"))
        assert (done.code, done.out) == (0, "server/s1 is Discovery now\n"), done.err
        assert (await b.run("retry", "s2")).code == 3


async def test_an_operation_does_not_replace_another(tmp_path: Path) -> None:
    """The error names the pending operation."""
    async with bench(tmp_path) as b:
        await b.claimed("s1", "web")
        assert (await b.run("power", "off", "s1", "--force")).code == 0
        refused = await b.run("power", "reset", "s1")
    assert (refused.code, "operation force-off-server is pending" in refused.err) == (1, True)


async def test_power_status_shows_the_owner(tmp_path: Path) -> None:
    """Each row has power, owner, state, age and wait."""
    async with bench(tmp_path) as b:
        await b.claimed("s1", "web", powerState="On")
        await b.server("s2", state="Available", powerState="Off", waitingFor="power Off")
        table = await b.run("power", "status")
        named = await b.run("power", "status", "s2", "-o", "name")
    assert [line.split()[:4] for line in table.out.splitlines()] == [
        ["SERVER", "POWER", "OWNER", "STATE"],
        ["s1", "On", "claim", "default/web"],
        ["s2", "Off", "none", "Available"],
    ]  # fmt: skip
    assert named.out == "server.metal.ironcore.dev/s2\n"


async def test_a_claim_owns_its_ignition(tmp_path: Path) -> None:
    """The claim owns the Secret; selector and tolerations have kubectl's syntax."""
    file = tmp_path / "web.ign"
    file.write_text(IGNITION)
    async with bench(tmp_path / "data") as b:
        done = await b.run(
            "claim", "web", "--image", "x/os:1", "--ignition", str(file), "--power", "off",
            "-l", "rack=r7,zone in (a,b),!old", "--tolerate", "spot", "--tolerate", "gpu=a100:NoBind", "-o", "json",
        )  # fmt: skip
        spec = done.json["spec"]
        claim = await b.live.client.get(KINDS.claim, "web", "default")
        secret = await b.live.client.get(SECRET, "web-ignition", "default")
    assert spec["serverSelector"] == {
        "matchLabels": {"rack": "r7"},
        "matchExpressions": [
            {"key": "zone", "operator": "In", "values": ["a", "b"]}, {"key": "old", "operator": "DoesNotExist"},
        ],
    }  # fmt: skip
    assert spec["tolerations"] == [
        {"key": "spot", "operator": "Exists"},
        {"key": "gpu", "operator": "Equal", "value": "a100", "effect": "NoBind"},
    ]
    assert (spec["power"], spec["image"], spec["ignitionSecretRef"]) == ("Off", "x/os:1", {"name": "web-ignition"})
    assert secret.data["ignition"].decode() == IGNITION
    assert [owner.uid for owner in secret.metadata.owner_references] == [claim.metadata.uid]


async def test_a_claim_that_cannot_be_made_leaves_no_secret(tmp_path: Path) -> None:
    """A name that exists is an error with exit code 1, and the Secret of the existing claim is kept."""
    file = tmp_path / "web.ign"
    file.write_text(IGNITION)
    async with bench(tmp_path / "data") as b:
        await b.claim("web")
        taken = await b.run("claim", "web", "--image", "x/os:1", "--ignition", str(file))
        assert (taken.code, "already exists" in taken.err) == (1, True)
        assert [s.metadata.name for s in (await b.live.client.list(SECRET, "default")).items] == []


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("--server", "s1", "-l", "a=b"), "cannot be combined"),
        (("-l", "a>3"), "supports only"),
        (("-l", "a=b,"), "expected: identifier after ','"),
        (("--tolerate", "k:Always"), "use NoBind or Evict"),
        (("--tolerate", "=v"), "has no key"),
        (("--wait", "--timeout", "soon"), "is not a duration"),
    ],
)
async def test_invalid_options_are_usage_errors(args: tuple[str, ...], complaint: str, tmp_path: Path) -> None:
    """Invalid options are usage errors, and nothing is created."""
    async with bench(tmp_path) as b:
        wrong = await b.run("claim", "web", "--image", "x/os:1", *args)
        assert (wrong.code, complaint in " ".join(wrong.err.split())) == (2, True), wrong.err
        assert (await b.live.client.list(KINDS.claim)).items == ()


async def test_an_invalid_ignition_is_reported_before_anything_is_created(tmp_path: Path) -> None:
    """The error names the place in the Ignition, and nothing is created."""
    async with bench(tmp_path) as b:
        wrong = await b.run(
            "claim", "web", "--image", "x", "--ignition", "-", stdin='{"ignition": {"version": "1.0.0"}}'
        )
        assert (wrong.code, "standard input is not an Ignition config" in wrong.err) == (2, True)


async def test_a_missing_server_is_not_claimed(tmp_path: Path) -> None:
    """A misspelled server name is an error before anything is created."""
    async with bench(tmp_path) as b:
        missing = await b.run("claim", "--server", "s9", "--image", "x/os:1")
        assert (missing.code, (await b.live.client.list(KINDS.claim)).items) == (3, ())


async def test_claim_waits_until_the_image_runs(tmp_path: Path) -> None:
    """Progress shows what the claim waits for; a missing name is generated."""
    async with bench(tmp_path) as b:

        async def manager() -> None:
            claims = await seen_any(b)
            name = claims.metadata.name
            unbound = {"type": "Bound", "status": "False", "reason": "NoMatch", "message": "none of 3 servers fits"}
            await status(b, name, {"conditions": [unbound]})
            await b.live.client.patch(KINDS.claim, name, {"spec": {"serverRef": {"name": "s1"}}}, "default")
            await status(b, name, {"phase": "Bound", "conditions": [ok("Bound"), ok("Ready")]})

        done = await with_manager(b.run("claim", "--image", "x/os:1", "--wait"), manager())
    first, second = done.out.splitlines()
    name = first.split()[0]
    assert (first, second) == (f"{name} created", f"{name} runs on server s1")
    assert f"{name}: waiting for a server (none of 3 servers fits)" in done.err


def ok(type: str) -> dict[str, str]:
    return {"type": type, "status": "True", "reason": type, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}


async def status(b: Bench, name: str, status: dict[str, Any]) -> None:
    for condition in status["conditions"]:
        condition.setdefault("lastTransitionTime", "2026-01-01T00:00:00Z")
    await b.live.client.patch_status(KINDS.claim, name, {"status": status}, "default")


async def seen_any(b: Bench) -> Any:
    page = await b.live.client.list(KINDS.claim)
    if page.items:
        return page.items[0]
    async for event in b.live.client.watch(KINDS.claim, resource_version=page.resource_version):
        if event.object is not None:
            return event.object
    raise AssertionError("the watch ended")


async def test_a_wait_that_cannot_succeed_ends(tmp_path: Path) -> None:
    """A claim in the namespace of the manager is never bound, so that --wait fails at once."""
    async with bench(tmp_path) as b:

        async def manager() -> None:
            await seen_any(b)
            reserved = {
                "type": "Bound",
                "status": "False",
                "reason": "NamespaceReserved",
                "message": "it is the manager's",
            }
            await status(b, "web", {"conditions": [reserved]})

        done = await with_manager(b.run("claim", "web", "--image", "x/os:1", "--wait"), manager())
    assert (done.code, "claim web cannot bind a server: it is the manager's" in done.err) == (1, True)


async def test_release_waits_until_the_server_is_free(tmp_path: Path) -> None:
    """The wait ends when the claim is deleted and the server is sanitized."""
    async with bench(tmp_path) as b:
        await b.claimed("s1", "web", powerState="On")
        uid = (await b.live.client.get(KINDS.claim, "web", "default")).metadata.uid
        await b.live.client.patch_status(
            KINDS.server, "s1", {"status": {"tenancy": {"claimRef": {"uid": uid}}, "waitingFor": "power Off"}}
        )

        async def manager() -> None:
            page = await b.live.client.list(KINDS.claim)
            if page.items:
                async for event in b.live.client.watch(KINDS.claim, resource_version=page.resource_version):
                    if event.type == "DELETED":
                        break
            free = {"state": "Available", "tenancy": None, "waitingFor": None}
            await b.live.client.patch_status(KINDS.server, "s1", {"status": free})

        done = await with_manager(b.run("release", "web", "--wait"), manager())
        assert (done.code, done.out) == (0, "serverclaim/web deleted; server s1 is Available\n"), done.err
        assert (await b.run("release", "web")).code == 3


async def test_a_second_cordon_changes_nothing(tmp_path: Path) -> None:
    """A second cordon says that the server is already cordoned."""
    async with bench(tmp_path) as b:
        await b.server("s1")
        assert (await b.run("cordon", "s1")).out == "server/s1 cordoned\n"
        assert (await b.live.client.get(KINDS.server, "s1")).spec.unclaimable
        assert (await b.run("cordon", "s1")).out == "server/s1 already cordoned\n"
        assert (await b.run("uncordon", "s1", "-o", "json")).json["spec"]["unclaimable"] is False


async def test_park_waits_for_the_state(tmp_path: Path) -> None:
    """park waits for the state Parked, and unpark for any other state."""
    async with bench(tmp_path) as b:
        await b.server("s1", state="Available")
        parked = await with_manager(b.run("park", "s1", "--wait"), take(b, "s1", "park", state="Parked"))
        assert (parked.code, parked.out) == (0, "server/s1 parked\n"), parked.err
        assert (await b.run("park", "s1")).out == "server/s1 already parked\n"
        back = await with_manager(b.run("unpark", "s1", "--wait"), take(b, "s1", "unpark", state="Available"))
        assert (back.code, back.out) == (0, "server/s1 unparked\n"), back.err


MAINTENANCES = f"servermaintenances.{KINDS.group}"


async def forget_maintenances(b: Bench) -> None:
    with contextlib.suppress(NotFound):
        await b.live.client.delete(CRD, MAINTENANCES)


async def test_maintain_reports_a_missing_kind(tmp_path: Path) -> None:
    """An API server without the kind is an error with exit code 3 and a way out."""
    async with bench(tmp_path) as b:
        await forget_maintenances(b)
        await b.server("s1")
        missing = await b.run("maintain", "s1", "--reason", "new DIMM")
    assert (missing.code, "the API server has no kind ServerMaintenance" in missing.err) == (3, True)


async def test_a_maintenance_begins_and_ends(tmp_path: Path) -> None:
    """The maintenance has the name of the server, a policy and a reason; --power changes it; --end deletes it."""
    async with bench(tmp_path) as b:
        await b.server("s1", state="Available")
        args = ("maintain", "s1", "--reason", "new DIMM", "--policy", "Enforced", "--priority", "7", "--power", "off")
        made = (await b.run(*args, "-o", "json")).json
        assert made["spec"] == {"serverRef": {"name": "s1"}, "policy": "Enforced", "priority": 7, "serverPower": "Off"}
        assert made["metadata"]["annotations"] == {KINDS.key("reason"): "new DIMM"}
        changed = await b.run("maintain", "s1", "--power", "on")
        assert changed.out == "servermaintenance/s1 changed\n"
        ended = await b.run("maintain", "s1", "--end", "--wait")
        assert (ended.code, ended.out) == (0, "servermaintenance/s1 deleted; the server has left maintenance\n"), (
            ended.err
        )
        again = await b.run("maintain", "s1", "--end")
        assert (again.code, "has no maintenance in namespace default" in again.err) == (3, True)
        assert (await b.run("maintain", "s1")).code == 2
