"""Drives that are put into another machine: rows of docs/failures.md."""

import pytest

from metal.api.names import RETRY
from metal.controllers.server.tenancy import sanitization_policy, sanitization_result
from metal.sim.machine.machine import Machine
from tests.sim.failing import FailingPlane
from tests.sim.failures import check, live
from tests.sim.plane import KINDS
from tests.sim.rows import Fault, Row
from tests.sim.steps import operate

pytestmark = [pytest.mark.looptime, pytest.mark.life]


async def _exchange(world: FailingPlane) -> None:
    """The second machine gets the tenant's drives, and is discovered again."""
    first, second = world.fleet.machines
    server = await world.server_of(second)
    assert server is not None
    first.swap_drives(second)
    await world.client.delete(KINDS.server, server.metadata.name)


async def _return(world: FailingPlane) -> None:
    first, second = world.fleet.machines
    first.swap_drives(second)


async def _insert(world: FailingPlane) -> None:
    """The second machine, which is Available, gets the tenant's drives, and a claim."""
    first, second = world.fleet.machines
    server = await world.server_of(second)
    assert server is not None
    first.swap_drives(second)
    world.before = _network_boots(world)
    await world.add_claim("c2", serverRef={"name": server.metadata.name})


async def _return_unlisted(world: FailingPlane) -> None:
    """The BMC lists no drives, so an administrator has the probe look again."""
    await _return(world)
    server = await world.server_of(world.fleet.machines[1])
    assert server is not None
    await operate(world, server.metadata.name, RETRY)


async def _insert_unlisted(world: FailingPlane) -> None:
    """The second machine, whose BMC lists no drives, gets the tenant's drives, and an administrator has it erased."""
    first, second = world.fleet.machines
    server = await world.server_of(second)
    assert server is not None
    second.faults.switch("hides_drives")
    first.swap_drives(second)
    await operate(world, server.metadata.name, sanitization_policy.SANITIZE)


async def _discard(world: FailingPlane) -> None:
    """The Server is deleted before its drives are erased; both machines are discovered again."""
    first, second = world.fleet.machines
    await _forget(world, first)
    first.swap_drives(second)
    await _forget(world, second)


async def _accept(world: FailingPlane) -> None:
    server = await world.server_of(world.machine)
    assert server is not None
    await operate(world, server.metadata.name, sanitization_result.ACCEPT)


async def _forget(world: FailingPlane, machine: Machine) -> None:
    server = await world.server_of(machine)
    assert server is not None
    await world.client.delete(KINDS.server, server.metadata.name)


def _network_boots(world: FailingPlane) -> int:
    """How often the second machine was booted from the network."""
    _, second = world.fleet.machines
    return sum(entry.details["source"] == "network" for entry in world.fleet.history.of(second.identity.uuid, "os"))


async def _is_not_booted(world: FailingPlane) -> None:
    """The second machine is not booted from the network, and the drives keep the tenant's data."""
    _, second = world.fleet.machines
    assert _network_boots(world) == world.before
    assert second.state.disk.marker


async def _is_erased(world: FailingPlane) -> None:
    """The drives are erased in the second machine, which is Available."""
    first, second = world.fleet.machines
    server = await world.server_of(second)
    assert not first.state.disk.marker
    assert not second.state.disk.marker
    assert server is not None
    assert (server.status.state, server.status.tenancy.sanitization) == ("Available", "Clear")


async def _keeps_its_data(world: FailingPlane) -> None:
    """The second machine has the drives with the tenant's data, and is neither erased nor Available."""
    _, second = world.fleet.machines
    server = await world.server_of(second)
    assert second.state.disk.marker
    assert server is not None
    assert server.status.state in ("Initial", "Discovery")


async def _is_not_erased(world: FailingPlane) -> None:
    """The second machine is off in Cleanup, and the drives keep the tenant's data."""
    _, second = world.fleet.machines
    server = await world.server_of(second)
    assert second.state.disk.marker
    assert server is not None
    assert (server.status.state, second.state.power) == ("Cleanup", "Off")
    assert world.fleet.history.of(second.identity.uuid, "os")[-1].details["source"] == "network"


MOVED = Fault(
    _exchange, _return, what="The drives of a claimed machine are put into another one, which is discovered again.",
    remedy="Return the drives.",
)  # fmt: skip
INSERTED = Fault(
    _insert, _return, what="The drives of a claimed machine are put into an Available one, which is claimed then.",
    remedy="Return the drives.",
)  # fmt: skip
UNLISTED = Fault(
    _insert_unlisted, _return_unlisted,
    remedy="Return the drives, and set `operation=retry` on the Server that is to be erased.",
    what="The drives of a claimed machine are put into one that is erased and whose BMC lists no drives.",
)  # fmt: skip
DISCARDED = Fault(
    _discard, _accept, remedy="Set `operation=accept-owed-sanitization` on the Server whose drives are gone.",
    what="During an erasure the Server is deleted, and the drives are put into another machine.",
)  # fmt: skip

ROWS = (
    Row("the drives are in another machine", "tenant", "DriveOwed", "DriveOwed=True ClaimExists, Event UnexpectedPower",
        inject=MOVED, also=_keeps_its_data, machines=2, message="may have data of claim … The machine is not changed"),
    Row("the drives are in an Available machine", "tenant", "DriveOwed", "DriveOwed=True ClaimExists, "
        "Event UnexpectedPower", inject=INSERTED, also=_is_not_booted, machines=2,
        message="may have data of claim … The machine is not changed"),
    Row("hides_drives", "tenant", "DriveOwed", "DriveOwed=True ClaimExists, "
        "Event UnexpectedPower, Event ErasureRefused", inject=UNLISTED, also=_is_not_erased, machines=2,
        message="may have data of claim … The machine is not changed"),
    Row("drives of a deleted claim are in another machine", "erasure", reports="DriveOwed=True NotErased, "
        "DriveOwed=False Erased, Error SanitizationOwed, Sanitized=False SanitizationOwed",
        inject=DISCARDED, also=_is_erased, machines=2, minutes=30, sanitization="Accepted",
        may_report="Cleanup IdentityAmbiguous",
        message="may have data of a deleted claim … SanitizationEvidence owed-"),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_drives_in_another_machine_are_recognized(row: Row) -> None:
    """Each row reports what it names and nothing worse, and ends as it says; no tenant's data is erased or given."""
    check(row, await live(row))
