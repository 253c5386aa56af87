"""Events from simulated BMCs to the Servers, in virtual time."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from metal.api.core import EVENT
from metal.config import BMCOptions, Listen, Timeouts
from tests.sim.plane import KINDS, OPTIONS, Plane, plane

pytestmark = [pytest.mark.looptime, pytest.mark.life]
EVENTS: dict[str, Any] = {
    "listen": Listen(events="192.0.2.100:10001"),
    "timeouts": Timeouts(resync=600.0),
    "bmc": BMCOptions(check_interval=300.0),
}
"""Polling so seldom that only an event can be the reason for a quick look."""


async def bmc_of(world: Plane) -> Any:
    """The only BMC."""
    (bmc,) = (await world.client.list(KINDS.bmc)).items
    return bmc


def events_condition(bmc: Any) -> tuple[str, str]:
    """Status and reason of the condition Events."""
    (found,) = [c for c in bmc.status.conditions if c.type == "Events"]
    return found.status, found.reason


async def until(world: Plane, check: Callable[[Any], bool], within: float) -> float:
    """Wait until the check holds for the BMC; returns the seconds that it took."""
    loop = asyncio.get_running_loop()
    begin = loop.time()
    while not check(await bmc_of(world)):
        assert loop.time() - begin < within, (await bmc_of(world)).status.conditions
        await asyncio.sleep(0.25)
    return loop.time() - begin


async def switched_off_again(world: Plane, within: float) -> float:
    """The only machine is powered on manually; returns the seconds until the Available server's machine is off."""
    (machine,) = world.fleet.machines
    loop = asyncio.get_running_loop()
    begin = loop.time()
    machine.reset("On")
    await asyncio.sleep(1)
    while machine.state.power != "Off":
        assert loop.time() - begin < within, "it is still on"
        await asyncio.sleep(0.25)
    return loop.time() - begin


async def test_power_that_changes_by_hand_is_seen_at_once_through_an_event() -> None:
    """With a poll every ten minutes; the BMC's event arrives earlier."""
    async with plane(1, **EVENTS) as world:
        await world.announce()
        await world.until_available(1)
        await asyncio.sleep(30)
        took = await switched_off_again(world, within=60.0)
        bmc = await bmc_of(world)
    assert took < 15
    assert bmc.status.last_event_time is not None


async def test_without_events_it_is_seen_by_the_next_poll() -> None:
    """The same BMC, whose events are lost: nothing depends on them."""
    async with plane(1, **EVENTS) as world:
        world.fleet.machines[0].faults.loses_events = True
        await world.announce()
        await world.until_available(1)
        await asyncio.sleep(30)
        took = await switched_off_again(world, within=800.0)
    assert took > 60


@pytest.mark.behaviour(
    "BMC", "While events arrive BMCs receive less than half of the requests that they receive when events stop."
)
async def test_polling_is_rare_while_events_come_and_comes_back_when_they_stop() -> None:
    """Heartbeats keep polls rare on an idle machine; a broken delivery path is detected and reported."""
    async with plane(1, listen=EVENTS["listen"]) as world:
        await world.announce()
        await world.until_available(1)
        await until(world, lambda bmc: events_condition(bmc) == ("True", "EventsArrive"), within=400)
        await asyncio.sleep(400)
        before = world.fleet.requests
        await asyncio.sleep(7200)
        rare = world.fleet.requests - before
        world.fleet.machines[0].faults.loses_events = True
        await until(world, lambda bmc: events_condition(bmc) == ("False", "EventsStopped"), within=1300)
        before = world.fleet.requests
        await asyncio.sleep(7200)
        often = world.fleet.requests - before
    assert rare * 2 < often


async def test_a_bmc_that_forgot_us_subscribes_again_and_a_deleted_one_forgets_us() -> None:
    """A factory reset of the BMC, then the end of the BMC object: one subscription, and then none."""
    async with plane(1, **EVENTS) as world:
        (sim,) = world.fleet.bmcs.values()
        await world.announce()
        await world.until_available(1)
        first = sim.events.all()
        sim.events.clear()
        await world.until_true(lambda: len(sim.events.all()) == 1, within=2000, what="subscribed again")
        second = sim.events.all()
        await asyncio.sleep(5)
        for endpoint in (await world.client.list(KINDS.endpoint)).items:
            await world.client.delete(KINDS.endpoint, endpoint.metadata.name)
        await world.client.delete(KINDS.bmc, (await bmc_of(world)).metadata.name)
        await world.until_true(lambda: second[0] not in sim.events.all(), within=20, what="unsubscribed")
    assert len(first) == 1
    assert first[0]["Destination"] != second[0]["Destination"]


async def test_tokens_of_events_are_in_no_object_and_no_event() -> None:
    """Only the BMC has the URL that its events are sent to."""
    async with plane(1, **EVENTS) as world:
        (sim,) = world.fleet.bmcs.values()
        await world.announce()
        await world.until_available(1)
        (held,) = sim.events.all()
        world.fleet.machines[0].secrets.add(held["Destination"].rpartition("/")[2])
        await asyncio.sleep(60)


async def test_a_bmc_that_restarts_sends_its_servers_to_wait_and_is_back() -> None:
    """graceful-restart-bmc on a whole plane: no Warning on the Server, and its state is unchanged."""
    async with plane(1, options=replace(OPTIONS, bmc_reset=250.0)) as world:
        await world.announce()
        await world.until_available(1)
        name = (await bmc_of(world)).metadata.name
        note = {"metadata": {"annotations": {KINDS.key("operation"): "graceful-restart-bmc"}}}
        await world.client.patch(KINDS.bmc, name, note)
        await until(world, lambda bmc: _reset(bmc) == "True", within=10)
        await world.until(lambda servers: servers[0].status.waiting_for.startswith(f"BMC {name}"), within=200)
        await until(world, lambda bmc: _reset(bmc) == "False", within=400)
        await world.until(lambda servers: not servers[0].status.waiting_for, within=5)
        (server,) = await world.servers()
        events = [e for e in (await world.client.list(EVENT)).items if e.involved_object.kind == "Server"]
    assert server.status.state == "Available"
    assert [e.reason for e in events if e.type == "Warning"] == []


def _reset(bmc: Any) -> str:
    return next((c.status for c in bmc.status.conditions if c.type == "Reset"), "")
