"""A parked server is not changed until it is unparked, also when its status, claim or machine changes."""

import asyncio
from typing import Any

import pytest

from metal.api.server import Server
from metal.bmc.errors import BMCTimeout
from metal.bmc.power import PowerState
from metal.kube.client.errors import NotFound
from tests.controllers.server.steps import (
    claimed_and_booted,
    claimed_and_booting,
    condition,
    maintain,
    operate,
    reasons,
)  # fmt: skip
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime
MARKER = KINDS.key("parked")


async def _park(w: World) -> Server:
    await operate(w, "park")
    return await w.until_true(lambda s: s.status.state == "Parked" and s.status.wait is not None)


async def _lose_status(w: World) -> None:
    names = _fields(await w.server())
    await w.client.patch_status(KINDS.server, "s1", {"status": dict.fromkeys(names)})


def _fields(server: Server) -> tuple[str, ...]:
    """Names of all status fields, as they are on the wire."""
    return server.status.__struct_encode_fields__


@pytest.mark.behaviour("Server: parking", "A free server is parked, and Available again when it is unparked.")
async def test_a_free_server_is_parked_and_available_again() -> None:
    """Marker, state, named wait, Events; then back, and claimable."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        parked = await _park(w)
        await operate(w, "unpark")
        server = await w.until("Available")
        told = await reasons(w)
    assert parked.metadata.annotations[MARKER] == "true"
    assert KINDS.key("operation") not in parked.metadata.annotations
    assert "operation=unpark" in parked.status.waiting_for
    assert MARKER not in server.metadata.annotations
    assert told >= {"Parked", "Unparking", "Resumed"}
    assert w.bmc.network_boots == 1


@pytest.mark.behaviour(
    "Server: parking", "A machine that was switched on while parked is switched off before it can be claimed."
)
async def test_a_machine_that_was_switched_on_while_parked_is_off_before_it_can_be_claimed() -> None:
    """The status says Off, as when the server was parked; it does not count."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await _park(w)
        w.bmc.power = PowerState.ON
        await operate(w, "unpark")
        waiting = await w.until_true(lambda s: s.status.wait is not None and s.status.wait.for_ == "PowerOff")
        await w.until("Available")
        power = w.bmc.power
    assert waiting.status.state == "Parked"
    assert power is PowerState.OFF


@pytest.mark.behaviour(
    "Server: parking", "A parked server keeps its claim Bound; unparked, the machine boots from its disk."
)
async def test_a_claimed_server_keeps_its_claim_and_comes_back_from_disk() -> None:
    """Switched off gracefully; the claim stays Bound and says why it is not Ready; unparked it runs again."""
    async with world() as w:
        await claimed_and_booted(w)
        w.bmc.calls.clear()
        await _park(w)
        claim = await w.until_claim(lambda c: any(x.reason == "ServerParked" for x in c.status.conditions))
        writes = w.bmc.writes()
        await operate(w, "unpark")
        await w.until_true(lambda s: s.status.state == "Reserved" and s.status.power_state == "On")
        await w.until_claim(lambda c: any(x.type == "Ready" and x.status == "True" for x in c.status.conditions))
    assert (claim.status.phase, writes) == ("Bound", ["graceful_off"])
    assert (w.bmc.network_boots, w.bmc.last_boot) == (2, "disk")


@pytest.mark.behaviour("Server: parking", "A claim does not change its boot configuration while its server is parked.")
async def test_the_claim_writes_nothing_of_its_boot_while_its_server_is_parked() -> None:
    """A changed image waits until the server is unparked."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await w.add_claim(power="Off")
        await w.until_true(lambda s: s.status.state == "Reserved" and not s.status.waiting_for)
        await _park(w)
        await w.client.patch(KINDS.claim, "c1", {"spec": {"image": "reg/os:2"}}, "default")
        await asyncio.sleep(10)
        during = await w.config("c1", "default")
        await operate(w, "unpark")
        await w.until("Reserved")
        await asyncio.sleep(10)
        after = await w.config("c1", "default")
    assert (during.spec.image, after.spec.image) == ("reg/os:1", "reg/os:2")


@pytest.mark.behaviour(
    "Server: parking", "The power of a parked server is not changed, its BMC is not read, and a dead BMC is no Error."
)
async def test_the_power_of_a_parked_server_is_somebody_elses() -> None:
    """Switched on from outside it stays on, its BMC is not even asked, and a dead one is no Error."""
    async with world(bmc_timeout=60.0) as w:
        await w.add_server()
        await w.discover()
        await _park(w)
        w.bmc._arrive(PowerState.ON)
        w.bmc.failure = BMCTimeout("no answer")
        w.bmc.calls.clear()
        await asyncio.sleep(1000)
        server, calls = await w.server(), list(w.bmc.calls)
    assert (server.status.state, calls, w.bmc.power) == ("Parked", [], PowerState.ON)


@pytest.mark.behaviour("Server: parking", "A parked server can be deleted.")
async def test_a_parked_server_can_be_deleted() -> None:
    """Deletion is possible in every state."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await _park(w)
        await w.client.delete(KINDS.server, "s1")
        await w.settle()
        with pytest.raises(NotFound):
            await w.server()


@pytest.mark.behaviour(
    "Server: parking", "A lost status is rebuilt from the park annotation without touching the machine."
)
@pytest.mark.parametrize("claimed", [False, True])
async def test_a_lost_status_is_rebuilt_from_the_marker(claimed: bool) -> None:
    """Parked again without touching the machine; a claimed one is its claim's afterwards and boots from its disk."""
    async with world() as w:
        if claimed:
            await claimed_and_booted(w)
        else:
            await w.add_server()
            await w.discover()
        await _park(w)
        w.bmc.calls.clear()
        await _lose_status(w)
        await w.until_true(lambda s: s.status.state == "Parked" and s.status.wait is not None)
        await asyncio.sleep(200)
        writes = w.bmc.writes()
        await operate(w, "unpark")
        await w.until("Reserved" if claimed else "Discovery")
        await asyncio.sleep(200)
    assert writes == []
    assert w.bmc.last_boot == ("disk" if claimed else "network")


@pytest.mark.behaviour(
    "Server: parking",
    "A claim deleted while its server is parked is cleaned up after the server is unparked.",
    go="Goes straight to Available.",
)
async def test_a_claim_that_goes_while_its_server_is_parked_is_cleaned_up_afterwards() -> None:
    """The tenant's traces are owed, whenever the server is looked after again."""
    async with world() as w:
        await claimed_and_booted(w)
        await _park(w)
        await w.client.delete(KINDS.claim, "c1", "default")
        await asyncio.sleep(100)
        parked = await w.server()
        await operate(w, "unpark")
        server = await w.until("Available")
        told = await reasons(w)
    assert parked.status.tenancy.uid
    assert (server.status.tenancy.uid, "Cleanup" in told) == ("", True)


async def test_a_claim_reference_removed_while_parked_is_written_again() -> None:
    """The claim exists, and its data is still there."""
    async with world() as w:
        await claimed_and_booted(w)
        await _park(w)
        await w.client.patch(KINDS.server, "s1", {"spec": {"serverClaimRef": None}})
        await operate(w, "unpark")
        server = await w.until("Reserved")
        told = await reasons(w)
    assert (server.spec.server_claim_ref is not None, "ClaimReferenceRestored" in told) == (True, True)


@pytest.mark.behaviour(
    "Server: parking", "Parking waits for the end of a network boot, with an Event and a condition.", issues=(1119,)
)
async def test_parking_waits_for_the_end_of_a_network_boot_and_says_so() -> None:
    """Discovery under way: an Event and a condition, once; afterwards the server is parked."""
    async with world() as w:
        await w.add_server()
        await w.until("Discovery")
        await w.config_ready("s1")
        await w.until_true(lambda s: s.status.power_state == "On")
        await operate(w, "park")
        waiting = await w.until_true(lambda s: any(c.reason == "ParkDeferred" for c in s.status.conditions))
        await w.fetch_script()
        await w.fetch_ignition()
        await w.report()
        await w.until("Parked")
        events = [e for e in await w.events() if e.reason == "ParkDeferred"]
        await operate(w, "unpark")
        await w.until("Available")
    assert waiting.metadata.annotations[KINDS.key("operation")] == "park"
    assert len(events) == 1


async def test_a_discovery_in_which_nothing_is_under_way_is_parked_and_starts_afresh() -> None:
    """What was never discovered is not Available after it was parked."""
    async with world() as w:
        await w.add_server()
        await w.until("Discovery")
        await _park(w)
        await operate(w, "unpark")
        await w.discover()
    assert w.bmc.network_boots == 1


async def test_a_first_boot_is_not_cut_off_by_parking() -> None:
    """Once the claim's boot is taken note of, the server is parked; the claim boots no second time."""
    async with world() as w:
        await claimed_and_booting(w)
        await operate(w, "park")
        await asyncio.sleep(10)
        on = w.bmc.power
        await w.fetch_script()
        await w.fetch_ignition()
        await w.until("Parked")
        await operate(w, "unpark")
        await w.until_true(lambda s: s.status.state == "Reserved" and s.status.power_state == "On")
    assert on is PowerState.ON
    assert (w.bmc.network_boots, w.bmc.last_boot) == (2, "disk")


async def test_parking_in_a_maintenance_waits_for_its_end() -> None:
    """A maintenance has the server for itself."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await maintain(w)
        await w.until("Maintenance")
        await operate(w, "park")
        await asyncio.sleep(30)
        held = await w.server()
        await maintain(w, on=False)
        await w.until("Parked")
    assert (held.status.state, condition(held, "Parked")) == ("Maintenance", ("False", "ParkDeferred"))


async def test_parking_can_be_called_off() -> None:
    """unpark before it happened: nothing happens."""
    async with world() as w:
        await claimed_and_booting(w)
        await operate(w, "park")
        await asyncio.sleep(5)
        await operate(w, "unpark")
        await w.fetch_script()
        await w.fetch_ignition()
        await asyncio.sleep(200)
        server = await w.server()
    assert (server.status.state, condition(server, "Parked")) == ("Reserved", ("False", "NotParked"))


@pytest.mark.behaviour("Server: parking", "Other operations are removed with an Event while a server is parked.")
@pytest.mark.parametrize(
    ("operation", "reason"),
    [("hard-restart-server", "ParkedOperationDropped"), ("sing", "UnsupportedOperation"), ("park", None)],
)
async def test_other_operations_are_removed_while_a_server_is_parked(operation: str, reason: str | None) -> None:
    """A reset is dropped with an Event, an unknown word refused; park again is nothing new."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await _park(w)
        before = await reasons(w)
        w.bmc.calls.clear()
        await operate(w, operation)
        server = await w.until_true(lambda s: KINDS.key("operation") not in s.metadata.annotations)
        told = await reasons(w)
    assert (server.status.state, server.metadata.annotations[MARKER]) == ("Parked", "true")
    assert told - before == ({reason} if reason else set())
    assert w.bmc.calls == []


@pytest.mark.behaviour("Server: parking", "A manager killed at any write while it parks a server ends in Parked.")
@pytest.mark.parametrize("number", range(0, 14, 2))
async def test_a_manager_killed_while_it_parks_ends_in_parked(number: int) -> None:
    """Before or after any write: the marker decides."""
    async with world() as w:
        await claimed_and_booted(w)
        reached, left = asyncio.Event(), number

        async def trap(what: str, when: str) -> None:
            nonlocal left
            left -= 1
            if left < 0 and not reached.is_set():
                reached.set()
                await asyncio.Event().wait()

        w.tap.trap = w.bmc.trap = trap
        await operate(w, "park")
        await asyncio.sleep(30)
        w.tap.trap = w.bmc.trap = None
        await w.restart()
        server = await w.until_true(lambda s: s.status.state == "Parked" and s.status.wait is not None)
    assert (w.bmc.power, w.bmc.network_boots) == (PowerState.OFF, 2)
    assert server.status.tenancy.uid


@pytest.mark.behaviour("Server: parking", "A server that the Go operator parked stays parked until it is unparked.")
async def test_a_parked_server_of_the_go_operator_stays_parked_until_it_is_unparked() -> None:
    """State and marker are what the Go operator wrote; the claim has its server back, unbooted by us."""
    async with world() as w:
        await claimed_and_booted(w)
        await w.runtime.stop(grace=0.0)
        left: dict[str, Any] = {**dict.fromkeys(_fields(await w.server())), "state": "Parked"}
        await w.client.patch_status(KINDS.server, "s1", {"status": left})
        await w.client.patch(KINDS.server, "s1", {"metadata": {"annotations": {MARKER: "true"}}})
        w.bmc.lose_power()
        w.bmc.calls.clear()
        await w.restart()
        await asyncio.sleep(300)
        parked, calls = await w.server(), list(w.bmc.calls)
        await operate(w, "unpark")
        await w.until_true(lambda s: s.status.state == "Reserved" and s.status.power_state == "On")
    assert (parked.status.state, calls) == ("Parked", [])
    assert (w.bmc.network_boots, w.bmc.last_boot) == (2, "disk")


async def test_parked_without_a_marker_is_parked_no_more() -> None:
    """The marker was removed manually; a claimed machine without a recorded boot counts as booted."""
    async with world() as w:
        await claimed_and_booted(w)
        await w.runtime.stop(grace=0.0)
        lost = {"state": "Parked", "tenancy": None, "bootWindow": None, "interruption": None}
        await w.client.patch_status(KINDS.server, "s1", {"status": lost})
        w.bmc.calls.clear()
        await w.restart()
        await w.until("Reserved")
        await asyncio.sleep(200)
    assert w.bmc.writes() == []
