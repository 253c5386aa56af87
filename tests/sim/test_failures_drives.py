"""Drives that are put into another machine: rows of docs/failures.md."""

import pytest

from tests.sim.failing import FailingPlane
from tests.sim.failures import check, live
from tests.sim.plane import KINDS
from tests.sim.rows import Fault, Row

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


async def _keeps_its_data(world: FailingPlane) -> None:
    """The second machine has the drives with the tenant's data, and is neither erased nor Available."""
    _, second = world.fleet.machines
    server = await world.server_of(second)
    assert second.state.disk.marker
    assert server is not None
    assert server.status.state in ("Initial", "Discovery")


MOVED = Fault(
    _exchange, _return, what="The drives of a claimed machine are put into another one, which is discovered again.",
    remedy="Return the drives.",
)  # fmt: skip

ROWS = (
    Row("the drives are in another machine", "tenant", "DriveOwed", "DriveOwed=True ClaimExists, Event UnexpectedPower",
        inject=MOVED, also=_keeps_its_data, machines=2, message="may have data of claim … The machine is not changed"),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_drives_in_another_machine_are_recognized(row: Row) -> None:
    """Each row reports what it names and nothing worse, and ends as it says; no tenant's data is erased or given."""
    check(row, await live(row))
