"""A manager is killed in the middle of an erasure: records are closed, the chain holds, and nothing is stuck."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from metal.api.boot_window import Phase, Purpose
from metal.api.core import CONFIG_MAP
from metal.api.server import Server
from metal.evidence import chain
from metal.evidence.keys import public_keys
from metal.evidence.signing import verify
from tests.controllers.fakebmc import UUID, FakeBMC
from tests.controllers.killer import Killer
from tests.controllers.machine import Surroundings
from tests.controllers.server.steps import operate
from tests.controllers.server.tenancy.adoption.test_unknown_data import many
from tests.controllers.server.tenancy.test_owed_drives import TRUSTED, gone, other_server
from tests.controllers.server.tenancy.test_sanitization import disks
from tests.controllers.world import KINDS, NS, World, world

pytestmark = pytest.mark.looptime
QUICK: dict[str, Any] = {**TRUSTED, "power_poll": 1.0, "resync": 60.0}
SHARED = "03000200-0400-0500-0006-000700080009"
WRITTEN, UNLABELLED, NAMED = (
    "after status SanitizationEvidence owed-", "before patch SanitizationEvidence owed-",
    "before apply ConfigMap evidence-head-",
)  # fmt: skip
"""Writes that close a record: its drives, then its result; the removal of its label; its name as the last one."""


class KilledAt(Killer):
    """Killed at the n-th write, counted from 0, among those that begin like this."""

    def __init__(self, w: World, moment: str, number: int) -> None:
        self.moment = moment
        super().__init__(w, number)

    async def _trap(self, what: str, when: str) -> None:
        if f"{when} {what}".startswith(self.moment):
            await super()._trap(what, when)


class OneMachine(Surroundings):
    """What is around one of several machines. `erasures` counts the erasures that it has reported."""

    def __init__(self, w: World, name: str, bmc: FakeBMC) -> None:
        super().__init__(w)
        self.name, self.bmc, self.erasures = name, bmc, 0
        self._boots = bmc.network_boots

    async def _boot(self) -> None:
        bmc, w = self.bmc, self.world
        if bmc.network_boots == self._boots or bmc.power != "On" or bmc.last_boot != "network":
            return
        window = (await w.server(self.name)).status.boot_window
        phase = window.phase if window is not None else ""
        if phase == Phase.OPEN:
            await w.fetch_script(self.name)
        elif phase == Phase.SCRIPT_SERVED:
            await w.fetch_ignition(self.name)
        elif window is not None and phase == Phase.IGNITION_SERVED and window.purpose == Purpose.SANITIZATION:
            self.erasures += 1
            await w.erase(self.name)
        elif window is not None and phase == Phase.IGNITION_SERVED and not window.claim_uid:
            await w.report(self.name)
        else:
            self._boots = bmc.network_boots


@asynccontextmanager
async def killed(w: World, killer: Killer, *machines: OneMachine) -> AsyncIterator[None]:
    """The machines act; the manager is killed once, and another one starts."""

    async def restart() -> None:
        await killer.reached.wait()
        await asyncio.sleep(0.1)
        await w.restart()

    restarts = asyncio.create_task(restart())
    async with AsyncExitStack() as stack:
        for one in machines:
            one.bmc.trap = w.tap.trap
            await stack.enter_async_context(one.acting())
        yield
    restarts.cancel()
    await asyncio.gather(restarts, return_exceptions=True)


def _is_erased(server: Server) -> bool:
    known, status = server.status.tenancy, server.status
    return (status.state, status.waiting_for, known.data, known.sanitization) == ("Available", "", "Clean", "Clear")


async def _deleted_while_dirty(w: World, machine: OneMachine) -> None:
    """Server s1 is deleted after its claim, before the erasure."""
    disks(w, "sda")
    async with machine.acting():
        await w.add_server(uuid=w.bmc.uuid)
        await w.until("Available")
        await w.add_claim()
        await w.until_true(lambda s: bool(s.status.tenancy.boot and not s.status.waiting_for), within=900)
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until("Cleanup")
        await gone(w)


async def _require_closed(w: World) -> None:
    """Each record has a result and no label of an open one, all signatures hold, and none is missing."""
    maps, records = (await w.client.list(CONFIG_MAP, NS)).items, await w.evidence()
    assert chain.problems(records, chain.heads(maps)) == {}
    for one in records:
        verify(one, public_keys(maps))
        assert one.status.phase in ("Succeeded", "Failed")
        assert KINDS.key("owed-by") not in one.metadata.labels


@pytest.mark.behaviour(
    "Cleanup", "A manager that is killed while it closes the record of a moved drive leaves no open record behind."
)
@pytest.mark.parametrize(("moment", "number"), [(WRITTEN, 0), (WRITTEN, 1), (UNLABELLED, 0), (NAMED, 1)])
async def test_the_record_of_a_moved_drive_is_closed_after_a_kill(moment: str, number: int) -> None:
    """Drive settled, record signed, label removed: the next manager continues after each of these writes."""
    async with world(**QUICK) as w:
        await _deleted_while_dirty(w, OneMachine(w, "s1", w.bmc))
        machine = OneMachine(w, "s2", await other_server(w, "serial-sda"))
        killer = KilledAt(w, moment, number)
        async with killed(w, killer, machine):
            await w.until_true(_is_erased, "s2", within=1500)
            await asyncio.sleep(100)
        await _require_closed(w)
    assert killer.where


@pytest.mark.parametrize("uuid", [UUID, SHARED], ids=["its own UUID", "the UUID of many"])
@pytest.mark.parametrize(("moment", "number"), [(WRITTEN, 0), (UNLABELLED, 0), (NAMED, 1)])
async def test_the_record_of_a_deleted_server_is_closed_after_a_kill(uuid: str, moment: str, number: int) -> None:
    """The next record of the machine has the next number, also where the last one was not named as the last."""
    async with world(**QUICK) as w:
        w.bmc.uuid = uuid
        machine = OneMachine(w, "s1", w.bmc)
        await _deleted_while_dirty(w, machine)
        killer = KilledAt(w, moment, number)
        async with killed(w, killer, machine):
            await w.client.delete(KINDS.bmc_secret, "s1-secret")
            await w.add_server(uuid=uuid)
            await w.until_true(_is_erased, within=1500)
            await operate(w, "sanitize")
            await w.until("Cleanup")
            await w.until_true(_is_erased, within=1500)
            await asyncio.sleep(100)
        await _require_closed(w)
    assert killer.where


@pytest.mark.parametrize("number", range(0, 120, 15))
async def test_a_manager_killed_during_a_wave_erases_every_adopted_server(number: int) -> None:
    """At any write to the API or to a BMC: no server is Available with unknown data and claimable, or stuck."""
    async with world(**QUICK) as w:
        disks(w, "sda")
        await many(w, 2)
        machines = [OneMachine(w, f"s{n}", w.pool.bmcs[f"10.0.1.{n}"]) for n in (1, 2)]
        killer = Killer(w, number)
        async with killed(w, killer, *machines):
            await w.restart()
            for one in machines:
                await w.until_true(_is_erased, one.name, within=1500)
            await asyncio.sleep(300)
            assert [_is_erased(await w.server(one.name)) for one in machines] == [True, True]
        await _require_closed(w)
    assert killer.where, "an erasure has become shorter: look at the parameters"
    assert all(1 <= one.erasures <= 2 and one.bmc.power == "Off" for one in machines)


@pytest.mark.parametrize("number", range(0, 20, 5))
async def test_a_kill_while_a_duplicate_is_resolved_never_touches_a_living_claims_machine(number: int) -> None:
    """The Server of the claim is deleted, its duplicate stays: it waits with a reason, and the machine runs on."""
    async with world(**QUICK) as w:
        disks(w, "sda")
        machine = OneMachine(w, "s1", w.bmc)
        async with machine.acting():
            await w.add_server()
            await w.until("Available")
            await w.add_claim()
            await w.until_true(lambda s: bool(s.status.tenancy.boot and not s.status.waiting_for), within=900)
        boots, killer = w.bmc.network_boots, Killer(w, number)
        async with killed(w, killer, machine):
            await w.add_server("s2")
            await asyncio.sleep(30)
            await gone(w)
            await asyncio.sleep(900)
            second = await w.server("s2")
    assert killer.where
    assert (w.bmc.power, w.bmc.network_boots) == ("On", boots)
    assert second.status.waiting_for
