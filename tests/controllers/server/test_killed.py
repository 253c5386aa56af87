"""Killed between any two lines: before or after each write to the API or to the BMC."""

import asyncio

import pytest

from metal.api.server import Server
from tests.controllers.killer import Killer
from tests.controllers.machine import Surroundings
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime
QUICK = {"power_poll": 1.0, "resync": 60.0}


async def _life(w: World, around: Surroundings, number: int) -> str:
    """Enrolment, claim, boot, release; killed at the n-th moment. Where it was, or nothing when it never came."""
    killer = Killer(w, number)
    restarts = asyncio.create_task(_restart_when(w, killer))
    await w.until("Available", within=600)
    await w.until_true(lambda s: not s.status.waiting_for)
    claim = await w.add_claim()
    server = await w.until_true(_at_rest, within=900)
    await asyncio.sleep(200)
    assert around.served[claim.metadata.uid] == 1, killer.where
    assert server.status.tenancy.uid == claim.metadata.uid
    assert (w.bmc.network_boots, w.bmc.disk_boots) == (2, 0), killer.where
    await w.client.delete(KINDS.claim, "c1", "default")
    free = await w.until_true(lambda s: s.status.state == "Available" and s.spec.server_claim_ref is None, within=900)
    assert (free.status.tenancy.uid, free.status.tenancy.sanitization) == ("", "None")
    await asyncio.sleep(200)
    assert w.bmc.power == "Off", killer.where
    assert not w.bmc.boot.is_network
    restarts.cancel()
    await asyncio.gather(restarts, return_exceptions=True)
    return killer.where


def _at_rest(server: Server) -> bool:
    status = server.status
    return bool(status.tenancy.boot and status.power_state == "On" and not status.waiting_for)


async def _restart_when(w: World, killer: Killer) -> None:
    await killer.reached.wait()
    await asyncio.sleep(0.1)
    await w.restart()


@pytest.mark.behaviour("Server: network boot", "A manager killed at any write boots a claim over the network once.")
@pytest.mark.parametrize("number", range(0, 90, 5))
async def test_a_manager_killed_at_any_write_boots_the_claim_once_and_owes_nothing(number: int) -> None:
    """Every fifth moment of a server's life: one network boot for the probe, one for the claim, none from the disk."""
    async with world(**QUICK) as w:
        around = Surroundings(w)
        await w.add_server()
        async with around.acting():
            where = await _life(w, around, number)
    assert where or number > 80, "a life has become shorter: look at the parameters"
