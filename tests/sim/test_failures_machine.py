"""What a user sees when a machine fails, at each step of a server's life: rows of docs/failures.md."""

import asyncio

import pytest

from tests.sim.failing import FailingPlane, Fault, Row, at, reach
from tests.sim.failures import check, live
from tests.sim.plane import KINDS
from metal.config.options import Sanitization
import msgspec

pytestmark = pytest.mark.looptime

async def _lose_power(world):
    world.machine.lose_power()
async def _button(world):
    world.machine.press_the_button(); await asyncio.sleep(120)

async def _curious(world):
    """The neighbour asks for the boot script of a machine that is about to boot."""
    first, second = world.fleet.machines
    for path in (f"/ipxe/{first.identity.uuid}", f"/ignition/{first.identity.uuid}?token=guess"):
        reply = await world.network.request("GET", world.config.boot_url + path, headers={}, body=b"", source_ip=second.identity.host_ip)
        second.note("fetch", path=path.partition("?")[0], status=reply[0], bytes=len(reply[2]))

async def _quiet(world):
    world.machine.faults.unreported_lease = True
async def _contest(world):
    first, second = world.fleet.machines
    await world.network.request("GET", world.config.boot_url + f"/ipxe/{first.identity.uuid}", headers={}, body=b"", source_ip=second.identity.host_ip)

async def _old_report(world):
    for token in list(world.machine.secrets):
            body = msgspec.json.encode({"systemUUID": world.machine.identity.uuid, "data": {"networkInterfaces": []}})
            await world.network.request(
                "POST", f"{world.config.registry_url}/register", headers={"authorization": f"Bearer {token}"},
                body=body, source_ip=world.machine.identity.host_ip,
            )

ERASED = {"sanitization": Sanitization()}
ROWS = (
    *at("enrolment", "reports_late"),
    *at("enrolment claim", "loses_answers", minutes=5),
    *at("tenant", "loses its power", inject=Fault(_lose_power), minutes=10),
    *at("claim", "switched on by hand", inject=Fault(_button), minutes=5),
    *at("boot report", "another machine asks for its boot", inject=Fault(_curious), minutes=5, machines=2),
    *at("report boot", "another machine contests its boot", inject=Fault(_contest, prepare=_quiet), minutes=20, machines=2),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_fault_of_the_machine_is_seen_and_left_behind(row: Row) -> None:
    """It shows as the page says, and nothing worse does; mended, everything comes to rest."""
    check(row, await live(row))
