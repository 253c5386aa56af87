"""Servers that another operator left Available: what is on their drives is unknown."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, TypeVar

import pytest

from metal.api.names import TENANCY
from metal.kube.client.protocol import WatchEvent
from metal.kube.meta.objects import Kind, Object
from tests.controllers.fakebmc import UUID, FakeBMC
from tests.controllers.server.steps import condition
from tests.controllers.server.tenancy.test_owed_drives import erase
from tests.controllers.server.tenancy.test_sanitization import disks
from tests.controllers.tap import Tap
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime
T = TypeVar("T", bound=Object)
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
    """The one that waits says for what; the erased one goes to a claim, and the next wave begins."""
    async with world(**ERASE, race_window=1.0, adoption_wave=1) as w:
        disks(w, "sda")
        await many(w, 2)
        await w.restart()
        await w.add_claim(power="Off")
        await asyncio.sleep(60)
        (first,) = [name for name, state in (await states(w)).items() if state == "Cleanup"]
        (second,) = {"s1", "s2"} - {first}
        waiting, claim = await w.server(second), await w.claim()
        await erase(w, first)
        await w.until_claim(lambda c: c.status.phase == "Bound")
        erased = await w.until("Reserved", first)
        next_wave = await w.until("Cleanup", second)
    assert (waiting.status.state, waiting.status.tenancy.data) == ("Available", "Unknown")
    assert waiting.status.wait is not None
    assert waiting.status.wait.for_ == "ErasureWave"
    assert "the erasure of 1 other servers (adoption.wave)" in waiting.status.waiting_for
    assert claim.status.phase == "Unbound"
    assert (condition(erased, "Sanitized"), erased.status.tenancy.data) == (("True", "Clear"), "Clean")
    assert erased.spec.server_claim_ref is not None
    assert next_wave.status.tenancy.data in ("Unknown", "Erasing")


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


async def many(w: World, count: int) -> None:
    """Servers of different machines, as the Go operator leaves them."""
    await w.runtime.stop(grace=0.0)
    for number in range(1, count + 1):
        name, uuid, address = f"s{number}", f"{UUID[:-1]}{number}", f"10.0.1.{number}"
        w.pool.bmcs[address] = FakeBMC(uuid=uuid, serial=f"S{number}")
        await w.add_server(name, uuid=uuid, address=address)
        await w.client.patch_status(KINDS.server, name, {"status": {"state": "Available", "powerState": "Off"}})


async def states(w: World) -> dict[str, str]:
    return {one.metadata.name: one.status.state for one in (await w.client.list(KINDS.server)).items}


async def test_a_wave_is_never_exceeded_in_a_burst() -> None:
    """All servers appear at once and every write takes a second: no more than the wave are in Cleanup at a time."""
    erasing: set[str] = set()
    most: list[int] = []
    async with world(**ERASE, adoption_wave=2) as w:
        await many(w, 6)

        async def slow(what: str, when: str) -> None:
            if what.startswith("status Server"):
                await asyncio.sleep(1)
                now = await states(w)
                erasing.update(name for name, state in now.items() if state == "Cleanup")
                most.append(sum(state == "Cleanup" for state in now.values()))

        w.tap.trap = slow
        await w.restart()
        await asyncio.sleep(120)
    assert (max(most), len(erasing)) == (2, 2)


class Behind(Tap):
    """A client whose watches no longer show what happens to some objects."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.missed: set[str] = set()

    async def watch(self, kind: Kind[T], namespace: str = "", **options: Any) -> AsyncIterator[WatchEvent[T]]:
        async for event in super().watch(kind, namespace, **options):
            if event.object is None or event.object.metadata.name not in self.missed:
                yield event


@pytest.mark.behaviour(
    "Cleanup", "A new leader counts the servers that the former one erases; a wave is not exceeded after a failover."
)
async def test_a_wave_goes_on_after_a_change_of_the_leader() -> None:
    """The former leader's last write, with which a server joined the wave, is not in the cache of the new leader."""
    async with world(**ERASE, adoption_wave=1) as w:
        await many(w, 3)
        await w.restart()
        await w.settle()
        behind = w.tap = Behind(w.api.client())
        standby = w._runtime(3)
        await standby.hold("standby")
        await standby.start()
        await asyncio.sleep(60)
        (first,) = [name for name, state in (await states(w)).items() if state == "Cleanup"]
        others = {"s1", "s2", "s3"} - {first}
        behind.missed = others
        erased = {"state": "Available", "wait": None, "tenancy": {"data": "Clean"}, "bootWindow": None}
        await w.client.patch(KINDS.server, first, {"metadata": {"annotations": {KINDS.key(TENANCY): None}}})
        await w.client.patch_status(KINDS.server, first, {"status": erased})
        await asyncio.sleep(60)
        assert "Cleanup" in [(await states(w))[name] for name in others]
        await w.runtime.stop(grace=0.0)
        standby.release("standby")
        await asyncio.sleep(120)
        now = await states(w)
        passes = behind.count("status Server")
        await standby.stop(grace=0.0)
    assert (sorted(now.values()), passes > 0) == (["Available", "Available", "Cleanup"], True)
