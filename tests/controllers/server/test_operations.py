"""The five reset operations: each asks for one Redfish reset, at most once, and never where the state forbids it."""

import asyncio

import pytest

from metal.bmc.boot import BootOverride
from metal.bmc.errors import BMCBusy, BMCNotSupported, BMCTimeout
from metal.bmc.power import PowerState
from metal.controllers.server.operations import KNOWN, RESETS
from tests.controllers.server.steps import claimed_and_booted, claimed_and_booting, maintain, operate, reasons
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime
TYPES = {
    "graceful-restart-server": "GracefulRestart",
    "hard-restart-server": "ForceRestart",
    "power-cycle-server": "PowerCycle",
    "force-off-server": "ForceOff",
    "force-on-server": "ForceOn",
}


async def _is_obeyed(w: World) -> bool:
    server = await w.server()
    return KINDS.key("operation") not in server.metadata.annotations and server.status.operation_request is None


def _resets(w: World) -> list[str]:
    return [call for call in w.bmc.calls if call.startswith("reset ")]


@pytest.mark.behaviour(
    "Server: power and resets",
    "Each of the five reset operations sends its Redfish reset once and is removed, with an Event.",
)
@pytest.mark.parametrize(("operation", "kind"), TYPES.items())
async def test_each_operation_is_its_redfish_reset_once(operation: str, kind: str) -> None:
    """A claimed server that has booted: one reset, the annotation is gone, an Event tells it, nothing is re-imaged."""
    async with world() as w:
        await claimed_and_booted(w)
        w.bmc.calls.clear()
        await operate(w, operation)
        await asyncio.sleep(400)
        server = await w.server()
        assert await _is_obeyed(w)
        told = await reasons(w)
    assert _resets(w) == [f"reset {kind}"]
    assert "OperationDone" in told
    assert (w.bmc.network_boots, server.status.state, w.bmc.power) == (2, "Reserved", "On")


def test_the_operations_are_those_of_the_go_operator() -> None:
    """Five words, and each is known."""
    assert set(TYPES) == set(RESETS) <= set(KNOWN)


async def test_a_forced_off_server_whose_claim_wants_it_on_comes_back_from_its_disk() -> None:
    """The Event says that it will be switched on again."""
    async with world() as w:
        await claimed_and_booted(w)
        await operate(w, "force-off-server")
        await w.until_true(lambda s: s.status.power_state == "Off")
        await w.until_true(lambda s: s.status.power_state == "On")
        messages = [e.message for e in await w.events() if e.reason == "OperationDone"]
    assert w.bmc.last_boot == "disk"
    assert "switched on again" in messages[0]


@pytest.mark.behaviour(
    "Server: power and resets",
    "A reset that would switch on an Available server is refused with an Event and removed.",
)
@pytest.mark.parametrize("operation", [name for name in TYPES if name != "force-off-server"])
async def test_an_available_server_is_kept_off(operation: str) -> None:
    """What would switch it on is refused with an Event, and removed."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        w.bmc.calls.clear()
        await operate(w, operation)
        await asyncio.sleep(150)
        assert await _is_obeyed(w)
        told = await reasons(w)
    assert w.bmc.writes() == []
    assert "OperationRefused" in told


@pytest.mark.behaviour("Server: power and resets")
@pytest.mark.parametrize("operation", TYPES)
async def test_nothing_disturbs_an_open_boot_window(operation: str) -> None:
    """While a boot is served every reset is refused."""
    async with world() as w:
        await claimed_and_booting(w)
        w.bmc.calls.clear()
        await operate(w, operation)
        await asyncio.sleep(10)
        assert await _is_obeyed(w)
        told = await reasons(w)
    assert w.bmc.writes() == []
    assert "OperationRefused" in told


async def test_a_claim_that_wants_power_off_is_not_overruled() -> None:
    """The claim requests Off, so a restart would be undone."""
    async with world() as w:
        await claimed_and_booted(w)
        await w.client.patch(KINDS.claim, "c1", {"spec": {"power": "Off"}}, "default")
        await w.until_true(lambda s: s.status.power_state == "Off")
        w.bmc.calls.clear()
        await operate(w, "force-on-server")
        await asyncio.sleep(150)
        told = await reasons(w)
    assert w.bmc.writes() == []
    assert "OperationRefused" in told


@pytest.mark.behaviour(
    "Server: power and resets",
    "A restart never boots the network: the override is cleared first, or the restart is refused.",
)
async def test_a_restart_never_goes_to_the_network() -> None:
    """An override that the BMC holds is cleared first; one that it keeps is a reason not to restart."""
    async with world() as w:
        await claimed_and_booted(w)
        w.bmc.boot = BootOverride("Continuous", "Pxe")
        w.bmc.calls.clear()
        await operate(w, "power-cycle-server")
        await w.until_true(lambda s: KINDS.key("operation") not in s.metadata.annotations)
        await asyncio.sleep(60)
        first = w.bmc.writes()
        w.bmc.boot, w.bmc.keeps_override = BootOverride("Continuous", "Pxe"), True
        await operate(w, "power-cycle-server")
        await asyncio.sleep(60)
        told = await reasons(w)
    assert first == ["clear_boot_override", "reset PowerCycle"]
    assert _resets(w) == ["reset PowerCycle"]
    assert "OperationRefused" in told
    assert w.bmc.network_boots == 2


@pytest.mark.behaviour(
    "Server: power and resets",
    "A BMC that fails a reset is asked three times when busy, else once; an Event reports the end.",
)
@pytest.mark.parametrize(
    ("failure", "asked", "reason"),
    [
        (BMCBusy("try again later"), 3, "OperationFailed"),
        (BMCNotSupported("no such reset"), 1, "OperationFailed"),
        (BMCTimeout("no answer"), 1, "OperationUnconfirmed"),
    ],
)
async def test_a_bmc_that_fails_is_asked_a_bounded_number_of_times(failure: Exception, asked: int, reason: str) -> None:
    """Busy: three times. Refused: once. No answer: once, because it may have been heard. An Event tells the end."""
    async with world() as w:
        await claimed_and_booted(w)
        w.bmc.refuses["reset ForceRestart"] = failure  # type: ignore[assignment]  # each is a BMCError
        await operate(w, "hard-restart-server")
        await asyncio.sleep(600)
        server = await w.server()
        assert await _is_obeyed(w)
        told = await reasons(w)
    assert len(_resets(w)) == asked
    assert (server.status.state, reason in told) == ("Reserved", True)


async def test_a_reset_does_not_come_as_a_surprise_hours_later() -> None:
    """A dead BMC: the request is dropped after the time of a power change, also when the BMC answers afterwards."""
    async with world() as w:
        await claimed_and_booted(w)
        w.bmc.failure = BMCTimeout("no answer")
        await operate(w, "hard-restart-server")
        await w.until_true(lambda s: s.status.operation_request is not None)
        await asyncio.sleep(800)
        w.bmc.failure = None
        w.bmc.calls.clear()
        await w.until_true(lambda s: s.status.operation_request is None)
        await asyncio.sleep(200)
        told = await reasons(w)
    assert _resets(w) == []
    assert "OperationFailed" in told


async def test_in_a_maintenance_people_may_reset_the_machine() -> None:
    """Unless the maintenance itself wants it off."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await maintain(w)
        await w.until("Maintenance")
        await operate(w, "force-on-server")
        await asyncio.sleep(150)
        on = w.bmc.power
        await w.client.patch(KINDS.maintenance, "m1", {"spec": {"serverPower": "Off"}}, "default")
        await w.until_true(lambda s: s.status.power_state == "Off")
        await operate(w, "force-on-server")
        await asyncio.sleep(150)
        told = await reasons(w)
    assert (on, w.bmc.power) == (PowerState.ON, PowerState.OFF)
    assert "OperationRefused" in told


@pytest.mark.behaviour("Server: power and resets", "A manager killed at any write sends a reset at most once.")
@pytest.mark.parametrize("number", range(12))
async def test_a_manager_killed_at_any_write_resets_at_most_once(number: int) -> None:
    """Before or after each write to the API or the BMC: at most one reset; one that was lost is told."""
    async with world() as w:
        await claimed_and_booted(w)
        reached, left = asyncio.Event(), number

        async def trap(what: str, when: str) -> None:
            nonlocal left
            if reached.is_set():
                return
            left -= 1
            if left < 0:
                reached.set()
                await asyncio.Event().wait()

        w.bmc.calls.clear()
        w.tap.trap = w.bmc.trap = trap
        await operate(w, "hard-restart-server")
        await asyncio.sleep(30)
        if reached.is_set():
            await w.restart()
        await asyncio.sleep(400)
        assert await _is_obeyed(w)
        told = await reasons(w)
        heard = len(_resets(w))
    assert heard <= 1
    assert reached.is_set() or number > 6
    assert heard == 1 or "OperationUnconfirmed" in told
