"""Servers that another operator left Available: what is on their drives is unknown."""

import asyncio
from typing import Any

import pytest

from tests.controllers.fakebmc import FakeBMC
from tests.controllers.server.steps import condition
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime
ERASE: dict[str, Any] = {"sanitization_policy": "Clear"}


async def left(w: World) -> None:
    """A server as the Go operator leaves it: Available, off, without a field of this operator."""
    await w.runtime.stop(grace=0.0)
    await w.add_server()
    await w.client.patch_status(KINDS.server, "s1", {"status": {"state": "Available", "powerState": "Off"}})


@pytest.mark.behaviour(
    "Cleanup", "A server that another operator left Available is erased before a claim gets it, a few at a time."
)
async def test_adopted_servers_are_erased_in_waves() -> None:
    """The one that waits says for what, and no claim binds it meanwhile."""
    async with world(**ERASE, adoption_wave=1) as w:
        await left(w)
        await w.restart()
        server = await w.until("Cleanup")
    assert server.status.tenancy.data in ("Unknown", "Erasing")


async def test_servers_that_decide_at_the_same_time_keep_to_the_wave() -> None:
    """The API takes its time for each write, so that none sees the others in Cleanup yet."""
    async with world(**ERASE, adoption_wave=2) as w:
        await w.runtime.stop(grace=0.0)
        for n in range(6):
            uuid, address = f"11111111-2222-3333-4444-55555555560{n}", f"10.0.1.{n}"
            w.pool.bmcs[address] = FakeBMC(uuid=uuid, serial=f"SN{n}")
            await w.add_server(f"s{n}", uuid=uuid, address=address)
            await w.client.patch_status(KINDS.server, f"s{n}", {"status": {"state": "Available", "powerState": "Off"}})

        async def slow(_: str, __: str) -> None:
            await asyncio.sleep(0.2)

        w.tap.trap = slow
        await w.restart()
        await asyncio.sleep(120)
        states = [(await w.server(f"s{n}")).status.state for n in range(6)]
    assert sorted(states) == ["Available"] * 4 + ["Cleanup"] * 2


async def test_a_server_waits_for_its_wave() -> None:
    """With no room in the wave nothing is erased, and a claim is not bound."""
    async with world(**ERASE, adoption_wave=0) as w:
        await left(w)
        await w.restart()
        server = await w.until_true(lambda s: s.status.wait is not None and s.status.wait.for_ == "ErasureWave")
        await w.add_claim(power="Off")
        await asyncio.sleep(60)
        claim = await w.claim()
    assert (server.status.state, server.status.tenancy.data) == ("Available", "Unknown")
    assert claim.status.phase == "Unbound"
    assert "not erased yet" in next(c.message for c in claim.status.conditions if c.type == "Bound")


async def test_a_site_may_trust_what_the_other_operator_left() -> None:
    """The decision is visible: data Accepted, and a condition that names the option."""
    async with world(**ERASE, unknown_data="Trust") as w:
        await left(w)
        await w.restart()
        server = await w.until_true(lambda s: s.status.tenancy.data == "Accepted")
        await w.add_claim(power="Off")
        await w.until_claim(lambda c: c.status.phase == "Bound")
    assert condition(server, "Sanitized") == ("False", "Trusted")
