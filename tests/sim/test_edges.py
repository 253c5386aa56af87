"""The transitions between the states of a server, on simulated machines.

A test names the transitions that it shows with the marker `edge` and asserts exactly these; docs/behaviour.md prints
them. They are read from every version of the Server that the API has had.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

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


edge = pytest.mark.edge


def shown(request: pytest.FixtureRequest) -> list[tuple[str, str]]:
    """The transitions that the markers of this test name, in their order."""
    marks = [*request.node.iter_markers("edge")]
    return [(mark.args[0], mark.args[1]) for mark in reversed(marks)]


def edges(world: Plane) -> list[tuple[str, str]]:
    """The transitions of the only server, in order; the state before the first is empty."""
    states = [""]
    for entry in world.fleet.history:
        if isinstance(entry, ObjectChange) and isinstance(entry.obj, Server) and entry.obj.status.state != states[-1]:
            states.append(entry.obj.status.state)
    return list(pairwise(states))


async def _until(world: Plane, state: str) -> Server:
    await world.until(lambda found: any(s.status.state == state for s in found), within=LONG, what=state)
    await asyncio.sleep(1)  # the history has it a moment later
    (server,) = await world.servers()
    return server


@edge("", "Initial", "the BMC lists a system, or a Server is created")
@edge("Initial", "Discovery", "its inventory was read")
@edge("Discovery", "Available", "the probe reported in this boot, and the machine is off")
async def test_a_server_is_found_discovered_and_available(request: pytest.FixtureRequest) -> None:
    """A new server is discovered and Available, through no other state."""
    async with plane() as world:
        await discovered(world)
        await _until(world, "Available")
        assert edges(world) == shown(request)


@edge("Available", "Reserved", "a claim reserved it")
@edge("Reserved", "Cleanup", "the claim was deleted")
@edge("Cleanup", "Available", "it is off, and erased as the policy requires")
async def test_a_claimed_server_is_reserved_and_cleaned_up_afterwards(request: pytest.FixtureRequest) -> None:
    """A claimed server is Reserved; without its claim it goes through Cleanup, erased, to Available."""
    async with plane(options=ERASING, sanitization=Sanitization()) as world:
        machine = await claimed(world)
        await release(world)
        server = await _until(world, "Available")
        assert edges(world)[3:] == shown(request)
    assert (server.status.tenancy.sanitization, machine.state.disk.marker) == ("Clear", "")


@edge("Available", "Maintenance", "a maintenance holds it")
@edge("Maintenance", "Available", "the maintenance ended, and the machine was never on; else it is discovered again")
async def test_a_free_server_is_maintained_and_available_again(request: pytest.FixtureRequest) -> None:
    """A server that was not switched on during its maintenance is Available without another discovery."""
    async with plane() as world:
        machine = await discovered(world)
        await maintain(world, machine, on=True)
        await _until(world, "Maintenance")
        await maintain(world, machine, on=False)
        await _until(world, "Available")
        assert edges(world)[3:] == shown(request)


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


def _fails(state: str, trouble: Callable[[Plane], Awaitable[None]], reason: str, mark: pytest.MarkDecorator) -> Any:
    return pytest.param(state, trouble, reason, marks=mark, id=state)


@pytest.mark.parametrize(
    ("state", "trouble", "reason"),
    [
        _fails("Available", _available_without_bmc, "BMCConnectionFailed",
               edge("Available", "Error", "its BMC did not answer for `timeouts.bmc`")),
        _fails("Reserved", _reserved_and_never_booting, "NetworkBootFailed",
               edge("Reserved", "Error", "all network boots of the claim failed")),
        _fails("Discovery", _discovery_without_report, "NetworkBootFailed",
               edge("Discovery", "Error", "no boot of the probe led to a report")),
        _fails("Cleanup", _cleanup_of_a_lying_drive, "SanitizationOwed",
               edge("Cleanup", "Error", "a drive was not erased")),
        _fails("Maintenance", _maintenance_that_does_not_boot, "NetworkBootFailed",
               edge("Maintenance", "Error", "the boot that the maintenance requests failed")),
    ],
)  # fmt: skip
async def test_each_state_can_end_in_error(
    request: pytest.FixtureRequest, state: str, trouble: Callable[[Plane], Awaitable[None]], reason: str
) -> None:
    """`status.failure` holds the interrupted state, the reason and what to do."""
    async with plane(options=ERASING, sanitization=Sanitization()) as world:
        await trouble(world)
        server = await _until(world, "Error")
        assert edges(world)[-1:] == shown(request) == [(state, "Error")]
    assert server.status.failure is not None
    assert (server.status.failure.state, server.status.failure.reason) == (state, reason)
    assert server.status.failure.message


@edge("Error", "Maintenance", "a maintenance holds it, for the repair")
async def test_a_maintenance_leads_out_of_error(request: pytest.FixtureRequest) -> None:
    """A server in Error can be repaired in a maintenance; afterwards it is discovered again, and Available."""
    async with plane() as world:
        await _discovery_without_report(world)
        await _until(world, "Error")
        (machine,) = world.fleet.machines
        await maintain(world, machine, on=True)
        await _until(world, "Maintenance")
        assert edges(world)[-1:] == shown(request)
        machine.faults.never_reports = False
        await maintain(world, machine, on=False)
        await _until(world, "Available")


@edge("Available", "Error", "its BMC did not answer for `timeouts.bmc`")
@edge("Error", "Available", "the cause is gone, and Available was interrupted; other states continue where they were")
async def test_a_free_server_is_available_again_when_its_error_is_resolved(request: pytest.FixtureRequest) -> None:
    """A free server whose BMC answers again is Available at once."""
    async with plane() as world:
        await _available_without_bmc(world)
        await _until(world, "Error")
        world.fleet.machines[0].faults.dead = False
        server = await _until(world, "Available")
        assert edges(world)[-2:] == shown(request)
        assert server.status.failure is None


@edge("Error", "Cleanup", "an erasure failed, and is tried again; never straight to Available")
@edge("Cleanup", "Available", "it is off, and erased as the policy requires")
async def test_an_error_of_a_used_server_never_leads_to_available_without_cleanup(
    request: pytest.FixtureRequest,
) -> None:
    """A server whose erasure failed returns to Cleanup with retry, and is Available only after it."""
    async with plane(options=ERASING, sanitization=Sanitization()) as world:
        await _cleanup_of_a_lying_drive(world)
        server = await _until(world, "Error")
        world.fleet.machines[0].faults.lying_drive = False
        await steps.operate(world, server.metadata.name, "retry")
        await _until(world, "Available")
        assert edges(world)[-2:] == shown(request)
