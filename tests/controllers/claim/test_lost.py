"""Claims with stale caches, lost servers and equal names."""

import asyncio
from typing import Any

import msgspec
import pytest

from metal.api.server import Server
from metal.bmc.power import PowerState
from metal.kube.client.errors import Unavailable
from tests.controllers.claim.fleet import available, holders
from tests.controllers.server.steps import claimed_and_booting, reasons
from tests.controllers.world import KINDS, NS, World, world

pytestmark = pytest.mark.looptime


def _bound(claim: Any) -> tuple[str, str]:
    return next((c.status, c.reason) for c in claim.status.conditions if c.type == "Bound")


async def _booted(w: World) -> None:
    await w.add_server()
    await w.discover()
    await w.add_claim()
    await w.boot_claim()
    await w.until_claim(lambda c: any(x.type == "Ready" and x.status == "True" for x in c.status.conditions))


@pytest.mark.behaviour(
    "ServerClaim", "A claim whose server is deleted is Unbound with ServerLost and boots no second time."
)
async def test_a_claim_whose_server_is_gone_is_lost_and_boots_no_second_time() -> None:
    """The Server is deleted and its machine not enrolled again: the claim gets no other network boot."""
    async with world() as w:
        await _booted(w)
        await w.client.delete(KINDS.server, "s1")
        await w.until_gone(KINDS.server, "s1")
        await asyncio.sleep(600)
        claim = await w.claim()
    assert claim.status.phase == "Unbound"
    assert _bound(claim) == ("False", "ServerLost")
    assert w.bmc.network_boots == 2


@pytest.mark.behaviour(
    "ServerClaim", "A removed spec.serverClaimRef is written again while the claim exists; nothing is erased."
)
@pytest.mark.parametrize("while_down", [False, True])
async def test_a_reference_that_is_removed_from_a_claimed_server_is_written_again(while_down: bool) -> None:
    """kubectl replace with an older file: the tenant's machine runs on, and its data stays."""
    async with world(sanitization_policy="Clear") as w:
        await _booted(w)
        w.bmc.calls.clear()
        if while_down:
            await w.runtime.stop(grace=0.0)
        await w.client.patch(KINDS.server, "s1", {"spec": {"serverClaimRef": None}})
        if while_down:
            await w.restart()
        await w.until_true(lambda s: s.spec.server_claim_ref is not None)
        await asyncio.sleep(600)
        claim, server, events = await w.claim(), await w.server(), await w.events()
    assert (server.status.state, server.status.tenancy.data, w.bmc.writes()) == ("Reserved", "Dirty", [])
    assert (claim.status.phase, _bound(claim)) == ("Bound", ("True", "Bound"))
    assert "ClaimReferenceRestored" in {event.reason for event in events}


@pytest.mark.behaviour(
    "ServerClaim",
    "A spec.serverClaimRef that was changed to another claim is corrected to the recorded claim; nothing is erased.",
)
@pytest.mark.parametrize("exists", [False, True])
async def test_a_reference_to_another_claim_is_set_to_the_claim_of_the_record(exists: bool) -> None:
    """The claim of the record has not booted yet: only its UID tells that the server is its."""
    async with world(sanitization_policy="Clear") as w:
        await claimed_and_booting(w)
        if exists:
            await w.add_claim("other")
        await w.runtime.stop(grace=0.0)
        await w.client.patch(KINDS.server, "s1", {"spec": {"serverClaimRef": None}})
        ref = {"namespace": "default", "name": "other"}
        await w.client.patch(KINDS.server, "s1", {"spec": {"serverClaimRef": ref}})
        w.bmc.calls.clear()
        await w.restart()
        await asyncio.sleep(5)
        server, writes, passes = await w.server(), w.bmc.writes(), w.passes()
        events = await reasons(w)
    held = server.spec.server_claim_ref
    assert (held and held.name, server.status.state, writes) == ("c1", "Reserved", [])
    assert "ClaimReferenceRestored" in events
    assert passes < 20


async def test_a_claim_that_was_restored_with_its_status_has_its_data_left() -> None:
    """The claim of the same name has another UID, and reports that it is bound here: an administrator decides."""
    async with world(sanitization_policy="Clear") as w:
        await _booted(w)
        former = await w.claim()
        await w.runtime.stop(grace=0.0)
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.add_claim(serverRef={"name": "s1"})
        status = {"status": msgspec.to_builtins(former.status)}
        await w.client.patch_status(KINDS.claim, "c1", status, "default")
        w.bmc.calls.clear()
        await w.restart()
        await asyncio.sleep(600)
        server = await w.server()
        writes = w.bmc.writes()
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until("Cleanup")
    assert (server.status.wait and server.status.wait.for_, writes) == ("FormerTenant", [])
    assert "default/c1" in server.status.waiting_for


async def test_a_claim_that_never_reported_to_be_bound_here_does_not_stop_an_erasure() -> None:
    """A new claim that asks for this server by name waits until the former tenant's data is erased."""
    async with world(sanitization_policy="Clear") as w:
        await _booted(w)
        await w.add_claim("next", serverRef={"name": "s1"})
        await w.client.delete(KINDS.claim, "c1", "default")
        server = await w.until("Cleanup")
        await asyncio.sleep(60)
        server = await w.server()
    assert server.status.wait is not None
    assert server.status.wait.for_ == "BootConfiguration"


async def test_a_claim_that_never_booted_gets_another_server() -> None:
    """Nothing of it ran anywhere, so any matching server is suitable."""
    async with world() as w:
        await available(w, 1)
        await w.add_claim(power="Off")
        await w.until_claim(lambda c: c.status.phase == "Bound")
        await w.client.patch(KINDS.server, "s0", {"spec": {"serverClaimRef": None}})
        await asyncio.sleep(60)
        claim = await w.until_claim(lambda c: c.status.phase == "Bound")
    assert _bound(claim) == ("True", "Bound")


@pytest.mark.behaviour(
    "ServerClaim",
    "A lost answer to the binding request does not give the claim a second server.",
    issues=(374, 389, 391),
)
async def test_an_answer_that_was_lost_does_not_take_a_second_server() -> None:
    """The patch succeeded and its response was lost: the claim keeps the server that it reserved."""
    async with world() as w:
        await available(w, 6)
        failures = 0

        async def lose(what: str, when: str) -> None:
            nonlocal failures
            if when == "after" and what.startswith("patch Server ") and failures < 3:
                failures += 1
                raise Unavailable("the connection broke")

        w.tap.trap = lose
        await w.add_claim(power="Off")
        await w.until_claim(lambda c: c.status.phase == "Bound")
        await asyncio.sleep(60)
        held = await holders(w)
    assert held == ["c1"]
    assert failures > 0


@pytest.mark.behaviour(
    "ServerClaim",
    "Of two servers that reference a claim, the one that the claim does not name is freed.",
    issues=(374, 389, 391),
)
async def test_of_two_servers_that_point_at_a_claim_the_unnamed_one_is_freed() -> None:
    """Two managers reserved one each: the claim names one, the other goes through Cleanup, and only one boots."""
    async with world() as w:
        await available(w, 2)
        await w.runtime.stop(grace=0.0)
        await w.add_claim(power="Off")
        ref = {"namespace": "default", "name": "c1"}
        for name in ("s0", "s1"):
            await w.client.patch(KINDS.server, name, {"spec": {"serverClaimRef": ref, "bootConfigurationRef": ref}})
        await w.restart()
        claim = await w.until_claim(lambda c: c.status.phase == "Bound")
        await asyncio.sleep(60)
        servers: tuple[Server, ...] = (await w.client.list(KINDS.server)).items
    assert claim.spec.server_ref is not None
    held = [s.metadata.name for s in servers if s.spec.server_claim_ref]
    assert held == [claim.spec.server_ref.name]
    assert all(s.status.state == "Available" for s in servers if s.metadata.name not in held)


async def test_a_claim_deleted_before_it_could_name_its_server_frees_it_at_once() -> None:
    """The deletion causes a pass for the server that the claim holds."""
    async with world(resync=100_000.0) as w:
        await available(w, 1)

        async def never_named(what: str, when: str) -> None:
            if when == "before" and what.startswith("patch ServerClaim"):
                raise Unavailable("not now")

        w.tap.trap = never_named
        await w.add_claim(power="Off")
        await w.until("Reserved", "s0")
        await w.until_true(lambda s: not s.status.waiting_for and s.status.tenancy.uid != "", "s0")
        await asyncio.sleep(5)
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until_true(lambda s: s.spec.server_claim_ref is None, "s0", within=30)


async def test_a_claim_that_found_the_cache_behind_takes_the_next_server_at_once() -> None:
    """A server that no longer matches in the API does not delay the claim until the next resync."""
    async with world() as w:
        await available(w, 3)
        real = w.tap.get
        lied: set[str] = set()

        async def behind(kind: Any, name: str, namespace: str = "") -> Any:
            found = await real(kind, name, namespace)
            if kind is KINDS.server and not lied:
                lied.add(name)
                await w.client.patch(KINDS.server, name, {"spec": {"unclaimable": True}})
                found = await real(kind, name, namespace)
            return found

        w.tap.get = behind  # type: ignore[method-assign]  # one read is answered from the future
        await w.add_claim(power="Off")
        claim = await w.until_claim(lambda c: c.status.phase == "Bound")
        await asyncio.sleep(1)
    assert lied
    assert claim.spec.server_ref is not None
    assert claim.spec.server_ref.name not in lied


@pytest.mark.behaviour("ServerClaim", "A claim on an undiscovered server waits for its discovery.")
async def test_a_claim_put_by_hand_on_an_undiscovered_server_waits_for_its_discovery() -> None:
    """Discovery and claim do not compete for the boot configuration."""
    async with world() as w:
        await w.add_server()
        await w.until("Discovery")
        await w.add_claim()
        ref = {"namespace": "default", "name": "c1"}
        await w.client.patch(KINDS.server, "s1", {"spec": {"serverClaimRef": ref}})
        await asyncio.sleep(5)
        before = w.passes()
        await asyncio.sleep(60)
        spent = w.passes() - before
        await w.config_ready("s1", NS)
        await w.until_true(lambda s: s.status.power_state == "On" and s.status.boot_window is not None)
        await w.fetch_script()
        await w.fetch_ignition()
        await w.report()
        await w.until("Reserved")
        await w.boot_claim()
    assert spent < 10
    assert w.bmc.network_boots == 2


async def test_a_claim_on_a_server_in_error_says_what_is_wrong_with_it() -> None:
    """The claim shows the failure of its server."""
    async with world(claim_boot_timeout=30.0, boot_retry=1.0, boot_attempts=2) as w:
        await w.add_server()
        await w.discover()
        await w.add_claim()
        await w.until_true(lambda s: s.spec.boot_configuration_ref is not None)
        await asyncio.sleep(0.5)
        await w.config_ready("c1", "default")
        await w.until("Error", within=600)
        broken = await w.until_claim(lambda c: "Error" in c.status.waiting_for)
        ready = [(c.status, c.reason) for c in broken.status.conditions if c.type == "Ready"]
        await w.client.patch(KINDS.claim, "c1", {"spec": {"image": "reg/os:2"}}, "default")
        await w.until("Reserved", within=300)
    assert "network boots failed" in broken.status.waiting_for
    assert ready == [("False", "ServerInError")]


@pytest.mark.behaviour(
    "ServerClaim", "A server that shows power is not bound; the claim reports it and binds when the server is off."
)
@pytest.mark.parametrize("count", [1, 4])
async def test_no_server_is_taken_that_shows_power(count: int) -> None:
    """Servers that show power stay unbound while they do; the claim names the reason and binds when one is off."""
    async with world() as w:
        await available(w, count)
        await w.runtime.stop(grace=0.0)
        for n in range(count):
            w.pool.bmcs[f"10.0.1.{n}"].shows = PowerState.ON
            await w.client.patch_status(KINDS.server, f"s{n}", {"status": {"powerState": "On"}})
        await w.add_claim(power="Off")
        await w.restart()
        await asyncio.sleep(30)
        waiting, held = await w.claim(), await holders(w)
        for n in range(count):
            w.pool.bmcs[f"10.0.1.{n}"].shows = None
        claim = await w.until_claim(lambda c: c.status.phase == "Bound")
        assert claim.spec.server_ref is not None
        server = await w.server(claim.spec.server_ref.name)
    assert (held, waiting.status.phase, _bound(waiting)) == ([], "Unbound", ("False", "NotAvailable"))
    assert f"{count} not powered off yet" in next(c.message for c in waiting.status.conditions if c.type == "Bound")
    assert server.status.power_state == "Off"


async def test_a_claim_that_only_the_list_of_all_claims_shows_keeps_its_machine_running() -> None:
    """The record has the UID of the claim, but no name, and the claim names no server: it is found before the power."""
    async with world(sanitization_policy="Clear") as w:
        await _booted(w)
        await w.runtime.stop(grace=0.0)
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.client.patch(KINDS.server, "s1", {"spec": {"serverClaimRef": None}})
        claim = await w.add_claim("c2")
        ref = {"namespace": "", "name": "", "uid": claim.metadata.uid}
        await w.client.patch_status(KINDS.server, "s1", {"status": {"tenancy": {"claimRef": ref}}})
        w.bmc.calls.clear()
        await w.restart()
        server = await w.until_true(lambda s: s.spec.server_claim_ref is not None)
        await asyncio.sleep(60)
    assert server.spec.server_claim_ref is not None
    assert (server.spec.server_claim_ref.name, w.bmc.power, w.bmc.writes()) == ("c2", PowerState.ON, [])


@pytest.mark.parametrize("while_down", [False, True])
async def test_a_new_claim_of_the_same_name_does_not_stop_the_erasure(while_down: bool) -> None:
    """It names no server, so it is no restored one: the former tenant's data is erased."""
    async with world(sanitization_policy="Clear") as w:
        await _booted(w)
        if while_down:
            await w.runtime.stop(grace=0.0)
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.add_claim()
        if while_down:
            await w.restart()
        await w.until("Cleanup")
        await asyncio.sleep(120)
        server = await w.server()
    assert (server.status.state, server.status.wait and server.status.wait.for_) == ("Cleanup", "BootConfiguration")


@pytest.mark.behaviour(
    "ServerClaim",
    "A claim with spec.serverRef that `kubectl replace --force` created again waits (`FormerTenant`); deleting it "
    "erases.",
)
async def test_a_restored_claim_without_a_status_has_its_data_left() -> None:
    """Its spec.serverRef names this server; it has another UID: an administrator decides."""
    async with world(sanitization_policy="Clear") as w:
        await _booted(w)
        await w.runtime.stop(grace=0.0)
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.add_claim(serverRef={"name": "s1"})
        w.bmc.calls.clear()
        await w.restart()
        await asyncio.sleep(600)
        server, writes = await w.server(), w.bmc.writes()
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until_true(lambda s: s.status.wait is not None and s.status.wait.for_ == "BootConfiguration")
    assert (server.status.wait and server.status.wait.for_, writes) == ("FormerTenant", [])


@pytest.mark.behaviour(
    "Cleanup", "Nothing is erased while a claim exists that may own the data, also one restored with its phase only."
)
async def test_a_restored_claim_with_nothing_but_its_phase_has_its_data_left() -> None:
    """It has another UID and names no server: the data stays until a decision, and no other server is bound to it."""
    async with world(sanitization_policy="Clear") as w:
        await available(w, 1)
        await w.add_server()
        await w.discover()
        await w.add_claim(serverRef={"name": "s1"})
        await w.boot_claim()
        await w.runtime.stop(grace=0.0)
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.add_claim()
        await w.client.patch_status(KINDS.claim, "c1", {"status": {"phase": "Bound"}}, "default")
        w.bmc.calls.clear()
        await w.restart()
        await asyncio.sleep(600)
        server, claim, held, writes = await w.server(), await w.claim(), await holders(w), w.bmc.writes()
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until("Cleanup")
    assert (server.status.wait and server.status.wait.for_, writes) == ("FormerTenant", [])
    assert "default/c1" in server.status.waiting_for
    assert (held, _bound(claim)) == (["c1"], ("False", "ServerLost"))


async def test_a_bound_claim_of_another_operator_keeps_the_machine_of_a_server_without_a_status() -> None:
    """The claim has phase Bound and no condition, the Server was restored without status: nothing is booted."""
    async with world(sanitization_policy="Clear") as w:
        await w.runtime.stop(grace=0.0)
        await w.add_claim(serverRef={"name": "s1"})
        await w.client.patch_status(KINDS.claim, "c1", {"status": {"phase": "Bound"}}, "default")
        w.bmc.power = PowerState.ON
        await w.add_server()
        await w.restart()
        server = await w.until("Reserved")
        await asyncio.sleep(600)
        claim = await w.claim()
    assert (w.bmc.writes(), claim.status.phase) == ([], "Bound")
    assert [c.status for c in server.status.conditions if c.type == "BootAssumed"] == ["True"]
