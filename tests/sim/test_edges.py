"""The fifteen edges of the state diagram that users were promised, each walked by a simulated machine.

docs/behaviour.md lists them; what a server went through is read from every version of it that the API has had.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from metal.api.server import Server
from metal.config.options import Sanitization
from metal.sim.history import ObjectChange
from tests.mutants.stories import claimed, discovered, maintain, release
from tests.sim import steps
from tests.sim.plane import OPTIONS, Plane, plane

pytestmark = pytest.mark.looptime
ERASING = replace(OPTIONS, erase=60.0)
LONG = 12_000.0
"""Seconds of virtual time in which every deadline of a boot has passed three times."""


def edges(world: Plane) -> list[tuple[str, str]]:
    """What the only server has gone through, in order; the state before the first is empty."""
    states = [""]
    for entry in world.fleet.history:
        if isinstance(entry, ObjectChange) and isinstance(entry.obj, Server) and entry.obj.status.state != states[-1]:
            states.append(entry.obj.status.state)
    return list(pairwise(states))


async def _until(world: Plane, state: str) -> Server:
    await world.until(lambda found: any(s.status.state == state for s in found), within=LONG, what=state)
    await asyncio.sleep(1)  # the history hears of it a moment later
    (server,) = await world.servers()
    return server


async def test_a_server_is_found_discovered_and_available() -> None:
    """From nothing to Initial, Discovery and Available, with nothing in between."""
    async with plane() as world:
        await discovered(world)
        await _until(world, "Available")
        assert edges(world) == [("", "Initial"), ("Initial", "Discovery"), ("Discovery", "Available")]


async def test_a_claimed_server_is_reserved_and_cleaned_up_afterwards() -> None:
    """A claim takes it; without its claim it goes through Cleanup, erased, to Available."""
    async with plane(options=ERASING, sanitization=Sanitization()) as world:
        machine = await claimed(world)
        await release(world)
        server = await _until(world, "Available")
        assert edges(world)[3:] == [("Available", "Reserved"), ("Reserved", "Cleanup"), ("Cleanup", "Available")]
    assert (server.status.sanitization, machine.state.disk.marker) == ("Clear", "")


async def test_a_free_server_is_maintained_and_available_again() -> None:
    """There and back; what nobody switched on is not discovered again."""
    async with plane() as world:
        machine = await discovered(world)
        await maintain(world, machine, on=True)
        await _until(world, "Maintenance")
        await maintain(world, machine, on=False)
        await _until(world, "Available")
        assert edges(world)[3:] == [("Available", "Maintenance"), ("Maintenance", "Available")]


async def _available_without_bmc(world: Plane) -> None:
    machine = await discovered(world)
    machine.faults.dead = True


async def _reserved_and_never_booting(world: Plane) -> None:
    machine = await discovered(world)
    machine.faults.drops_override = True
    await world.add_claim()


async def _discovery_without_report(world: Plane) -> None:
    world.fleet.machines[0].faults.never_reports = True
    await world.announce()


async def _cleanup_of_a_lying_drive(world: Plane) -> None:
    machine = await claimed(world)
    machine.faults.lying_drive = True
    await release(world)


async def _maintenance_that_does_not_boot(world: Plane) -> None:
    machine = await discovered(world)
    machine.faults.drops_override = True
    (server,) = await world.servers()
    await steps.maintain(world, server.metadata.name, serverBootConfigurationTemplate=steps.TEMPLATE)


@pytest.mark.parametrize(
    ("state", "trouble", "reason"),
    [
        ("Available", _available_without_bmc, "BMCConnectionFailed"),
        ("Reserved", _reserved_and_never_booting, "NetworkBootFailed"),
        ("Discovery", _discovery_without_report, "NetworkBootFailed"),
        ("Cleanup", _cleanup_of_a_lying_drive, "SanitizationOwed"),
        ("Maintenance", _maintenance_that_does_not_boot, "NetworkBootFailed"),
    ],
)
async def test_each_state_can_end_in_error(
    state: str, trouble: Callable[[Plane], Awaitable[None]], reason: str
) -> None:
    """What was interrupted, why, and what to do are in status.failure."""
    async with plane(options=ERASING, sanitization=Sanitization()) as world:
        await trouble(world)
        server = await _until(world, "Error")
        assert edges(world)[-1] == (state, "Error")
    assert server.status.failure is not None
    assert (server.status.failure.state, server.status.failure.reason) == (state, reason)
    assert server.status.failure.message


async def test_a_maintenance_leads_out_of_error() -> None:
    """Somebody repairs the machine under a maintenance; afterwards it is discovered anew, and Available."""
    async with plane() as world:
        await _discovery_without_report(world)
        await _until(world, "Error")
        (machine,) = world.fleet.machines
        await maintain(world, machine, on=True)
        await _until(world, "Maintenance")
        assert edges(world)[-1] == ("Error", "Maintenance")
        machine.faults.never_reports = False
        await maintain(world, machine, on=False)
        await _until(world, "Available")


async def test_a_free_server_is_available_again_when_its_error_is_resolved() -> None:
    """The BMC answers again: straight back, with nothing owed to anybody."""
    async with plane() as world:
        await _available_without_bmc(world)
        await _until(world, "Error")
        world.fleet.machines[0].faults.dead = False
        server = await _until(world, "Available")
        assert edges(world)[-2:] == [("Available", "Error"), ("Error", "Available")]
        assert server.status.failure is None


async def test_an_error_of_a_used_server_never_leads_to_available_without_cleanup() -> None:
    """What is erased wrongly stays owed: retry goes back to Cleanup, and only from there to Available."""
    async with plane(options=ERASING, sanitization=Sanitization()) as world:
        await _cleanup_of_a_lying_drive(world)
        server = await _until(world, "Error")
        world.fleet.machines[0].faults.lying_drive = False
        await steps.operate(world, server.metadata.name, "retry")
        await _until(world, "Available")
        assert edges(world)[-2:] == [("Error", "Cleanup"), ("Cleanup", "Available")]
