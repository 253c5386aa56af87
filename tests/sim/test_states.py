"""Maintenance, parking, resets and readiness on simulated machines, with the invariants; tenants keep their server."""

import asyncio

import pytest

from metal.api.core import EVENT
from metal.api.server import Server
from metal.sim.machine.machine import Machine
from tests.sim.plane import Plane, is_ready, plane
from tests.sim.steps import TEMPLATE, approve, maintain, operate, rule, until_server

pytestmark = pytest.mark.looptime


async def _tenant(world: Plane) -> tuple[str, Machine]:
    """A server whose claim c1 is ready: its name and its machine."""
    await world.announce()
    await world.until_available(1)
    await world.add_claim()
    await world.until_claim(is_ready)
    await world.until_true(lambda: bool(world.tenants()), what="the tenant's system")
    (server,) = await world.servers()
    return server.metadata.name, world.fleet.machines[0]


def _runs(server: Server) -> bool:
    return server.status.state == "Reserved" and server.status.power_state == "On" and not server.status.waiting_for


@pytest.mark.behaviour(
    "ServerMaintenance", "After an approved maintenance the tenant's machine runs the system on its disk."
)
async def test_a_tenant_has_its_machine_back_after_an_approved_maintenance() -> None:
    """Powered off and on again: the claim's system boots from its disk."""
    async with plane() as world:
        name, machine = await _tenant(world)
        before = machine.state.os
        await maintain(world, name, serverPower="Off", locatorLED="Lit")
        await approve(world)
        await until_server(world, name, lambda s: s.status.state == "Maintenance" and s.status.power_state == "Off")
        await world.client.delete(world.kinds.maintenance, "m1", "default")
        await until_server(world, name, _runs)
        await world.until_true(lambda: machine.state.os is not None)
        after = machine.state.os
    assert before is not None
    assert after is not None
    assert (before.kind, after.kind, after.ignition) == ("tenant", "disk", before.ignition)


async def test_a_maintenance_boots_its_system_on_a_free_machine_and_discovery_follows() -> None:
    """In a boot window of its own, over the boot server; then the probe runs a discovery again."""
    async with plane() as world:
        await world.announce()
        await world.until_available(1)
        (server,) = await world.servers()
        await maintain(world, server.metadata.name, serverBootConfigurationTemplate=TEMPLATE)
        await world.until_true(lambda: len(world.tenants()) == 1, what="the maintenance's system")
        await until_server(world, server.metadata.name, _waits_for_its_end)
        await world.client.delete(world.kinds.maintenance, "m1", "default")
        await until_server(world, server.metadata.name, lambda s: s.status.state == "Discovery")
        await world.until_available(1)


def _waits_for_its_end(server: Server) -> bool:
    return server.status.wait is not None and server.status.wait.for_ == "Maintenance"


@pytest.mark.behaviour(
    "Server: power and resets",
    "Parking, restarts, power cycle and force-off leave a claim Ready; the machine runs from its disk.",
)
async def test_a_tenant_survives_parking_and_every_reset() -> None:
    """The claim stays Bound; the machine always comes back from its disk."""
    async with plane() as world:
        name, machine = await _tenant(world)
        await operate(world, name, "park")
        await until_server(world, name, lambda s: s.status.state == "Parked")
        await asyncio.sleep(300)
        await operate(world, name, "unpark")
        await until_server(world, name, _runs)
        for operation in ("graceful-restart-server", "hard-restart-server", "power-cycle-server", "force-off-server"):
            await operate(world, name, operation)
            await asyncio.sleep(300)
            await until_server(world, name, _runs)
        await world.until_claim(is_ready)
        system = machine.state.os
        surprises = [e.message for e in (await world.client.list(EVENT)).items if e.reason == "UnexpectedPower"]
    assert system is not None
    assert system.kind == "disk"
    assert not surprises, "all that was asked for"


async def test_a_rule_taints_a_fleet_and_lets_it_go() -> None:
    """Every server, in every state."""
    async with plane(3) as world:
        await world.announce()
        await world.until(lambda servers: len(servers) == 3)
        await rule(world)
        await world.until_available(3)


async def test_a_claim_that_asks_boots_its_new_image_once_more_and_then_comes_from_the_disk() -> None:
    """A raised spec.bootGeneration re-images the machine from the network; a power loss does not."""
    async with plane() as world:
        name, machine = await _tenant(world)
        first = machine.state.os
        spec = {"image": "images.sim/probe:latest", "bootGeneration": 1}
        await world.client.patch(world.kinds.claim, "c1", {"spec": spec}, "default")
        await until_server(world, name, lambda s: _answered(s) == 1 and _runs(s))
        await world.until_true(lambda: machine.state.os is not None)
        again = machine.state.os
        machine.lose_power()
        await asyncio.sleep(60)
        await until_server(world, name, _runs)
        await world.until_true(lambda: machine.state.os is not None)
        after = machine.state.os
        await world.until_claim(is_ready)
    assert first is not None
    assert again is not None
    assert after is not None
    assert (again.kind, after.kind) == ("tenant", "disk")
    assert again.image == after.image != first.image


def _answered(server: Server) -> int:
    return server.status.tenancy.boot.boot_generation if server.status.tenancy.boot is not None else -1
