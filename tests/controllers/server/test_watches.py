"""What a Server makes of its BMC's news: its restarts, and its events."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from metal.api.server import Server
from tests.controllers.fakebmc import MAC, URI, UUID
from tests.controllers.world import CLIENT, KINDS, World, world

pytestmark = pytest.mark.looptime
SLOW = {"event_slowdown": 5.0, "event_max_age": 900.0}


async def behind_a_bmc(w: World) -> None:
    """A discovered Server whose BMC is an object; no other client writes that object's status."""
    await w.client.create(KINDS.endpoint, {"metadata": {"name": "lease"}, "spec": {"macAddress": MAC, "ip": CLIENT}})
    data = {"username": "Zm9v", "password": "YmFy"}
    await w.client.create(KINDS.bmc_secret, {"metadata": {"name": "b1"}, "data": data})
    spec = {
        "access": {"ip": "10.0.0.9", "macAddress": "52:54:00:77:00:99"},
        "bmcSecretRef": {"name": "b1"},
        "protocol": {"name": "Redfish", "port": 443},
    }
    await w.client.create(KINDS.bmc, {"metadata": {"name": "b1"}, "spec": spec})
    body = {"systemUUID": UUID, "systemURI": URI, "bmcRef": {"name": "b1"}}
    await w.client.create(KINDS.server, {"metadata": {"name": "s1"}, "spec": body})
    await w.discover()
    await w.settle()


async def say(w: World, **status: Any) -> None:
    """Play the BMC's own controller, or the event receiver."""
    await w.client.patch_status(KINDS.bmc, "b1", {"status": status})


def stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


async def restart(w: World, seconds: float) -> None:
    """The BMC restarts and is waited for so long."""
    now = w.clock()
    reset = {
        "type": "Reset",
        "status": "True",
        "reason": "UserRequested",
        "message": "",
        "lastTransitionTime": stamp(now),
    }
    until = stamp(now + timedelta(seconds=seconds))
    await say(w, conditions=[reset, _ready(w)], restart={"reason": "UserRequested", "at": stamp(now), "until": until})


def _ready(w: World) -> dict[str, str]:
    """It was Ready all along: a restart may be over before anybody notices that it is away."""
    now = stamp(w.clock())
    return {"type": "Ready", "status": "True", "reason": "Connected", "message": "", "lastTransitionTime": now}


def reachable(server: Server) -> tuple[str, str]:
    """Status and reason of the condition BMCReachable."""
    (found,) = [c for c in server.status.conditions if c.type == "BMCReachable"]
    return found.status, found.reason


async def event(w: World) -> None:
    """The BMC sends an event through its subscription."""
    await say(w, lastEventTime=w.clock().strftime("%Y-%m-%dT%H:%M:%S.%fZ"), eventsSubscriptionLink="/s/1")


@pytest.mark.behaviour(
    "BMC", "Servers of a restarting BMC wait without requests and without an error, and continue when it is back."
)
async def test_servers_of_a_bmc_that_restarts_wait_without_a_request_and_without_an_error() -> None:
    """A named wait with the BMC's deadline; they go on at once when it is back."""
    async with world() as w:
        await behind_a_bmc(w)
        await restart(w, 600)
        await asyncio.sleep(150)
        w.bmc.calls.clear()
        await asyncio.sleep(300)
        waiting, calls = await w.server(), list(w.bmc.calls)
        back = {"type": "Reset", "status": "False", "reason": "ResetComplete", "lastTransitionTime": stamp(w.clock())}
        await say(w, conditions=[{**back, "message": ""}, _ready(w)])
        await asyncio.sleep(1)
        after = await w.server()
        events = [e for e in await w.events() if e.type == "Warning"]
    assert calls == []
    assert waiting.status.state == "Available"
    assert waiting.status.wait is not None
    assert (waiting.status.wait.for_, waiting.status.waiting_for) == (
        "BMCRestart", "BMC b1 to answer after its restart",
    )  # fmt: skip
    assert waiting.status.wait.until is not None
    assert reachable(waiting) == ("False", "BMCRestarting")
    assert (after.status.waiting_for, reachable(after)) == ("", ("True", "Connected"))
    assert events == []


async def test_a_restart_that_nobody_ends_holds_no_server_longer_than_its_deadline() -> None:
    """A manager that is gone, a status that is never written again: the Server looks for itself."""
    async with world() as w:
        await behind_a_bmc(w)
        await restart(w, 300)
        await asyncio.sleep(400)
        after = await w.server()
        assert after.status.waiting_for == ""
    assert reachable(after) == ("True", "Connected")


async def test_a_server_can_be_deleted_while_its_bmc_restarts() -> None:
    """Deletion is possible in every state."""
    async with world() as w:
        await behind_a_bmc(w)
        await restart(w, 600)
        await w.settle()
        await w.client.delete(KINDS.server, "s1")
        await asyncio.sleep(2)
        assert [s.metadata.name for s in (await w.client.list(KINDS.server)).items] == []


async def test_an_event_causes_a_look_at_once() -> None:
    """What was read just before is worth nothing: power that changed by hand is seen within a second."""
    async with world() as w:
        await behind_a_bmc(w)
        await asyncio.sleep(10)
        w.bmc.calls.clear()
        w.bmc.power = type(w.bmc.power).ON
        await event(w)
        await asyncio.sleep(1)
        calls = list(w.bmc.calls)
    assert calls[0] == "system"
    assert "graceful_off" in calls


async def test_a_reading_from_just_before_the_event_is_worth_nothing() -> None:
    """Two events within a second are two looks: between them something happened."""
    async with world() as w:
        await behind_a_bmc(w)
        await asyncio.sleep(10)
        w.bmc.calls.clear()
        await event(w)
        await asyncio.sleep(0.3)
        once = w.bmc.reads()
        await event(w)
        await asyncio.sleep(0.3)
    assert (once, w.bmc.reads()) == (1, 2)


@pytest.mark.behaviour("BMC", "The content of an event is not trusted: it only causes a read of the BMC.")
async def test_an_event_is_never_believed() -> None:
    """It says nothing to the Server but that there is something to see: where nothing is, nothing happens."""
    async with world() as w:
        await behind_a_bmc(w)
        await asyncio.sleep(10)
        w.bmc.calls.clear()
        before = await w.server()
        for _ in range(5):
            await event(w)
            await asyncio.sleep(2)
        after = await w.server()
    assert set(w.bmc.calls) == {"system"}
    assert before.metadata.resource_version == after.metadata.resource_version


async def test_while_events_come_an_idle_server_is_looked_at_less_often() -> None:
    """Five times less, and as before once they have stopped."""
    async with world(**SLOW) as w:
        await behind_a_bmc(w)
        await event(w)
        await asyncio.sleep(1)
        w.bmc.calls.clear()
        await asyncio.sleep(550)
        few = w.bmc.reads()
        await asyncio.sleep(1200)
        w.bmc.calls.clear()
        await asyncio.sleep(1200)
        many = w.bmc.reads()
    assert few <= 1
    assert 8 <= many <= 13


async def test_a_bmc_whose_events_stopped_wakes_its_servers() -> None:
    """They need not sleep out the long pause that they began while events came."""
    async with world(**SLOW) as w:
        await behind_a_bmc(w)
        flowing = {"type": "Events", "reason": "X", "message": "", "lastTransitionTime": stamp(w.clock())}
        await say(w, conditions=[{**flowing, "status": "True"}])
        await event(w)
        await asyncio.sleep(10)
        w.bmc.calls.clear()
        await say(w, conditions=[{**flowing, "status": "False"}])
        await asyncio.sleep(2)
    assert w.bmc.reads() == 1
