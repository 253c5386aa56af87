"""Commands whose object changes, or is deleted and created again, between their read and their write."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from metal.cli.machines import operations
from metal.cli.support import dynamic
from metal.cli.support.waiting import wait_for
from tests.cli.inprocess import Bench, Outcome, bench
from tests.cli.live import KINDS

OPERATION = KINDS.key("operation")
NEEDED, APPROVED, REASON = (KINDS.key(f"maintenance-{word}") for word in ("needed", "approved", "reason"))
APPROVAL = KINDS.key("approval")
BMC = {
    "access": {"ip": "192.0.2.1", "macAddress": "a0:b1:c2:00:00:01"}, "bmcSecretRef": {"name": "b1"},
    "protocol": {"name": "Redfish", "port": 443},
}  # fmt: skip
Change = Callable[[Any], Awaitable[None]]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "_PAUSE", 0.02)


@pytest.fixture
def before_write(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes metalctl do a change, as another client does it, right before its first write to a kind."""

    def arm(kind: Any, change: Change) -> None:
        write, done = dynamic.merge, list[bool]()

        async def merge(http: Any, of: Any, name: str, namespace: str, patch: Any, **more: Any) -> Any:
            if of.kind == kind.kind and not done:
                done.append(True)
                await change(http)
            return await write(http, of, name, namespace, patch, **more)

        monkeypatch.setattr(dynamic, "merge", merge)

    return arm


def recreated(kind: Any, name: str, body: dict[str, Any], namespace: str = "") -> Change:
    """Deletes an object and creates another of the same name."""

    async def change(http: Any) -> None:
        await dynamic.delete(http, kind, name, namespace)
        metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **body.get("metadata", {})}
        await dynamic.create(http, kind, {**body, "metadata": metadata})

    return change


def patched(kind: Any, name: str, *bodies: dict[str, Any], namespace: str = "") -> Change:
    """Sends merge patches."""

    async def change(http: Any) -> None:
        for body in bodies:
            await dynamic.merge(http, kind, name, namespace, body)

    return change


def refused(done: Outcome, *words: str) -> None:
    assert done.code == 1, (done.out, done.err)
    assert [word for word in words if word not in done.err] == [], done.err


ANOTHER = {"spec": {"systemUUID": "38947555-7742-3448-3784-823347823999"}}


@pytest.mark.behaviour("Server: errors and deletion", "metalctl acts on no Server that was created again meanwhile.")
@pytest.mark.parametrize("args", [("retry", "s1"), ("park", "s1"), ("cordon", "s1")])
async def test_a_server_that_was_created_again_is_left_alone(
    args: tuple[str, ...], tmp_path: Path, before_write: Callable[..., None]
) -> None:
    """The command fails, says so, and the new Server has neither annotation nor change."""
    async with bench(tmp_path) as b:
        await b.server("s1", state="Error")
        before_write(KINDS.server, recreated(KINDS.server, "s1", ANOTHER))
        done = await b.run(*args)
        server = await b.live.client.get(KINDS.server, "s1")
    refused(done, "server s1 was deleted and created again")
    assert (server.metadata.annotations, server.spec.unclaimable) == ({}, False)


@pytest.mark.behaviour("Server: power and resets", "metalctl requests no reset of the next tenant's machine.")
@pytest.mark.parametrize("args", [("power", "reset", "s1", "--hard"), ("power", "off", "s1", "--force")])
async def test_a_reset_is_for_the_claim_that_was_seen(
    args: tuple[str, ...], tmp_path: Path, before_write: Callable[..., None]
) -> None:
    """The claim was exchanged before the annotation was written: the command fails without it."""
    async with bench(tmp_path) as b:
        await b.claimed("s1", "web")
        await b.claim("other")
        none, ref = ({"spec": {"serverClaimRef": ref}} for ref in (None, {"namespace": "default", "name": "other"}))
        before_write(KINDS.server, patched(KINDS.server, "s1", none, ref))
        done = await b.run(*args)
        server = await b.live.client.get(KINDS.server, "s1")
    refused(done, "server s1 was changed meanwhile")
    assert OPERATION not in server.metadata.annotations


async def test_an_operation_is_requested_although_the_manager_writes_meanwhile(
    tmp_path: Path, before_write: Callable[..., None]
) -> None:
    """A change of what the decision does not depend on is no obstacle."""
    async with bench(tmp_path) as b:
        await b.claimed("s1", "web")
        before_write(KINDS.server, patched(KINDS.server, "s1", {"metadata": {"labels": {"rack": "r1"}}}))
        done = await b.run("power", "reset", "s1")
        server = await b.live.client.get(KINDS.server, "s1")
    assert (done.code, server.metadata.annotations[OPERATION]) == (0, "graceful-restart-server"), done.err


async def test_two_operators_do_not_replace_each_others_operation(
    tmp_path: Path, before_write: Callable[..., None]
) -> None:
    """The one who writes second is told which operation is pending."""
    async with bench(tmp_path) as b:
        await b.claimed("s1", "web")
        other = {"metadata": {"annotations": {OPERATION: "park"}}}
        before_write(KINDS.server, patched(KINDS.server, "s1", other))
        done = await b.run("power", "reset", "s1")
        server = await b.live.client.get(KINDS.server, "s1")
    refused(done, "operation park is pending")
    assert server.metadata.annotations[OPERATION] == "park"


async def test_the_power_of_a_claim_that_does_not_hold_the_server_is_not_set(tmp_path: Path) -> None:
    """A claim that was created again under its name is another tenant's; the server is still its predecessor's."""
    async with bench(tmp_path) as b:
        await b.claimed("s1", "web", tenancy={"claimRef": {"namespace": "default", "name": "web", "uid": "gone"}})
        done = await b.run("power", "off", "s1")
        claim = await b.live.client.get(KINDS.claim, "web", "default")
    refused(done, "claim default/web", "created again")
    assert claim.spec.power == "On"


async def test_an_operation_that_was_lost_with_its_server_is_not_reported_as_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--wait ends with an error when another Server has the name before the wait begins."""
    change = recreated(KINDS.server, "s1", ANOTHER)

    async def late(http: Any, *args: Any) -> Any:
        await change(http)
        return await wait_for(http, *args)

    monkeypatch.setattr(operations, "wait_for", late)
    async with bench(tmp_path) as b:
        await b.server("s1", state="Error")
        done = await b.run("retry", "s1", "--wait", "--timeout", "5s")
    refused(done, "s1 was deleted")


async def pending(b: Bench, reason: str) -> None:
    """Mark claim web as one whose server needs maintenance."""
    marks = {"labels": {NEEDED: "true"}, "annotations": {REASON: reason}}
    await b.live.client.patch(KINDS.claim, "web", {"metadata": marks}, "default")


@pytest.mark.behaviour("ServerMaintenance", "An approval is for the maintenance that was shown, not for the next one.")
@pytest.mark.parametrize(
    "meanwhile",
    [
        {"metadata": {"annotations": {REASON: "new firmware"}}},
        {"metadata": {"annotations": {REASON: None}, "labels": {NEEDED: None}}},
    ],
    ids=["another", "ended"],
)
async def test_an_approval_is_for_the_maintenance_that_was_read(
    meanwhile: dict[str, Any], tmp_path: Path, before_write: Callable[..., None]
) -> None:
    """Another one began, or the last one ended, before the approval was written: nothing is approved."""
    async with bench(tmp_path) as b:
        await b.claimed("s1", "web")
        await pending(b, "new DIMM")
        before_write(KINDS.claim, patched(KINDS.claim, "web", meanwhile, namespace="default"))
        done = await b.run("approve", "web")
        claim = await b.live.client.get(KINDS.claim, "web", "default")
    refused(done, "serverclaim web was changed meanwhile")
    assert APPROVED not in claim.metadata.labels


async def test_two_owners_may_approve_at_once(tmp_path: Path, before_write: Callable[..., None]) -> None:
    """The second approval of the same maintenance is no error."""
    async with bench(tmp_path) as b:
        await b.claimed("s1", "web")
        await pending(b, "new DIMM")
        same = {"metadata": {"labels": {APPROVED: "true"}}}
        before_write(KINDS.claim, patched(KINDS.claim, "web", same, namespace="default"))
        done = await b.run("approve", "web")
    assert (done.code, done.out) == (0, "serverclaim/web approved: new DIMM\n"), done.err


@pytest.mark.behaviour("Endpoint", "The approval of a BMC is for the spec that was read.")
@pytest.mark.parametrize("how", ["changed", "recreated"])
async def test_the_approval_of_a_bmc_is_for_its_spec(
    how: str, tmp_path: Path, before_write: Callable[..., None]
) -> None:
    """A BMC whose port changed meanwhile, or another one of the same name, still waits."""
    elsewhere = {**BMC, "access": {"ip": "198.51.100.9", "macAddress": "a0:b1:c2:00:00:02"}}
    waits = {"metadata": {"annotations": {APPROVAL: "pending"}}}
    change = {
        "changed": patched(KINDS.bmc, "b1", {"spec": {"protocol": {"name": "Redfish", "port": 8443}}}),
        "recreated": recreated(KINDS.bmc, "b1", {**waits, "spec": elsewhere}),
    }[how]
    async with bench(tmp_path) as b:
        await b.live.client.create(KINDS.bmc, {"metadata": {"name": "b1", **waits["metadata"]}, "spec": BMC})
        before_write(KINDS.bmc, change)
        done = await b.run("approve", "bmc/b1")
        bmc = await b.live.client.get(KINDS.bmc, "b1")
    refused(done, "bmc b1 was")
    assert bmc.metadata.annotations[APPROVAL] == "pending"


async def maintenance(b: Bench, server: str, *finalizers: str) -> None:
    """Create a maintenance with the name s1."""
    meta = {"name": "s1", "namespace": "default", "finalizers": list(finalizers)}
    spec = {"serverRef": {"name": server}, "policy": "OwnerApproval"}
    await b.live.client.create(KINDS.maintenance, {"metadata": meta, "spec": spec})


@pytest.mark.behaviour("ServerMaintenance", "`metalctl maintain` changes no maintenance of another server.")
async def test_the_maintenance_of_another_server_is_not_changed(tmp_path: Path) -> None:
    """A maintenance that has the server's name but is of another server is named in the error."""
    async with bench(tmp_path) as b:
        await b.server("s1", state="Available")
        await maintenance(b, "s2")
        done = await b.run("maintain", "s1", "--reason", "new DIMM", "--power", "off")
        found = await b.live.client.get(KINDS.maintenance, "s1", "default")
    refused(done, "servermaintenance default/s1 is of server s2")
    assert (found.spec.server_power, found.metadata.annotations) == ("", {})


async def test_a_maintenance_that_ends_is_not_begun_anew(tmp_path: Path) -> None:
    """While one operator ends it, the other is told that it ends: it would be gone a moment later."""
    async with bench(tmp_path) as b:
        await b.server("s1", state="Available")
        await maintenance(b, "s1", KINDS.key("servermaintenance"))
        assert (await b.run("maintain", "s1", "--end")).code == 0
        done = await b.run("maintain", "s1", "--reason", "new DIMM", "--power", "off")
        await b.live.client.patch(KINDS.maintenance, "s1", {"metadata": {"finalizers": None}}, "default")
    refused(done, "servermaintenance default/s1 is being deleted")


async def test_a_maintenance_that_was_created_again_is_not_changed(
    tmp_path: Path, before_write: Callable[..., None]
) -> None:
    """Its successor keeps the power that its creator chose."""
    async with bench(tmp_path) as b:
        await b.server("s1", state="Available")
        await maintenance(b, "s1")
        spec = {"serverRef": {"name": "s1"}, "policy": "OwnerApproval", "serverPower": "On"}
        before_write(KINDS.maintenance, recreated(KINDS.maintenance, "s1", {"spec": spec}, "default"))
        done = await b.run("maintain", "s1", "--power", "off")
        found = await b.live.client.get(KINDS.maintenance, "s1", "default")
    refused(done, "servermaintenance s1 was deleted and created again")
    assert found.spec.server_power == "On"
