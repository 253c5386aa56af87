"""A Server can be deleted in every state, without a change of its machine."""

import asyncio

import pytest

from metal.bmc.errors import BMCTimeout
from tests.controllers.server.steps import claimed_and_booted, maintain, operate
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime


async def _initial(w: World) -> None:
    w.bmc.failure = BMCTimeout("gone")
    await w.add_server()


async def _discovery(w: World) -> None:
    await w.add_server()
    await w.until("Discovery")
    await w.config_ready("s1")
    await w.until_true(lambda s: s.status.power_state == "On")


async def _available(w: World) -> None:
    await w.add_server()
    await w.discover()


async def _reserved(w: World) -> None:
    await claimed_and_booted(w)


async def _cleanup(w: World) -> None:
    await claimed_and_booted(w)
    w.bmc.ignores_graceful = True
    await w.client.delete(KINDS.claim, "c1", "default")


async def _released(w: World) -> None:
    await w.add_server(reclaimPolicy="Retain")
    await w.discover()
    await w.add_claim()
    await w.boot_claim()
    await w.client.delete(KINDS.claim, "c1", "default")


async def _maintenance(w: World) -> None:
    await _available(w)
    await maintain(w)


async def _parked(w: World) -> None:
    await _available(w)
    await operate(w, "park")


async def _error(w: World) -> None:
    """The boot of the probe is not ready in time."""
    await w.add_server()


WAYS = {
    "Initial": _initial, "Discovery": _discovery, "Available": _available, "Reserved": _reserved, "Cleanup": _cleanup,
    "Released": _released, "Maintenance": _maintenance, "Parked": _parked, "Error": _error,
}  # fmt: skip


@pytest.mark.behaviour(
    "Server: errors and deletion", "A Server can be deleted in every state, without any power action."
)
@pytest.mark.parametrize("state", WAYS)
async def test_a_server_can_be_deleted_in_every_state_without_power_action(state: str) -> None:
    """Deletion does not wait, not even for a BMC that does not answer, and switches nothing."""
    async with world(boot_config_timeout=60.0) as w:
        await WAYS[state](w)
        await w.until(state)
        w.bmc.calls.clear()
        w.bmc.failure = BMCTimeout("gone")
        await w.client.delete(KINDS.server, "s1")
        await asyncio.sleep(5)
        left = await w.client.list(KINDS.server)
        w.bmc.failure = None
        await asyncio.sleep(300)
    assert left.items == ()
    assert w.bmc.writes() == []
