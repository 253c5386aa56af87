"""A backup brings back the open record of an erasure that has ended since."""

import asyncio
from typing import Any

import msgspec
import pytest

from metal.api.sanitization import SanitizationEvidence
from tests.controllers.machine import Surroundings
from tests.controllers.server.tenancy.test_killed_in_cleanup import OneMachine, _deleted_while_dirty, _is_erased
from tests.controllers.server.tenancy.test_owed_drives import TRUSTED, other_server
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime
QUICK: dict[str, Any] = {**TRUSTED, "power_poll": 1.0, "resync": 60.0}


async def _restore(w: World, record: SanitizationEvidence) -> None:
    """Delete the record, and create it as it was."""
    whole, name = msgspec.to_builtins(record), record.metadata.name
    metadata = {key: whole["metadata"][key] for key in ("name", "labels", "annotations") if whole["metadata"].get(key)}
    await w.client.delete(KINDS.evidence, name)
    await w.client.create(KINDS.evidence, {"metadata": metadata, "spec": whole["spec"]})
    await w.client.patch_status(KINDS.evidence, name, {"status": whole["status"]})


async def _open_record(w: World) -> SanitizationEvidence:
    (record,) = await w.evidence()
    assert record.status.phase == ""
    return record


async def _is_closed(w: World, name: str) -> bool:
    record = await w.client.get(KINDS.evidence, name)
    return record.status.phase == "Succeeded" and KINDS.key("owed-by") not in record.metadata.labels


@pytest.mark.behaviour(
    "Cleanup", "The open record of an ended erasure, restored from a backup, changes no claimed machine, and is closed."
)
async def test_a_restored_record_of_an_erased_machine_leaves_its_next_tenant_alone() -> None:
    """The erasure after that tenant closes it."""
    async with world(**QUICK) as w:
        machine = OneMachine(w, "s1", w.bmc)
        await _deleted_while_dirty(w, machine)
        record = await _open_record(w)
        async with machine.acting():
            await w.client.delete(KINDS.bmc_secret, "s1-secret")
            await w.add_server(uuid=w.bmc.uuid)
            await w.until_true(_is_erased, within=1500)
        async with Surroundings(w).acting():
            await w.add_claim("c2")
            await w.until_true(lambda s: bool(s.status.tenancy.boot and not s.status.waiting_for), within=900)
            await _restore(w, record)
            writes = len(w.bmc.writes())
            await w.restart()
            await asyncio.sleep(900)
            server = await w.server()
            untouched = w.bmc.power == "On" and set(w.bmc.writes()[writes:]) <= {"clear_boot_override"}
        async with machine.acting():
            await w.client.delete(KINDS.claim, "c2", "default")
            await w.until("Cleanup")
            await w.until_true(_is_erased, within=1500)
            await asyncio.sleep(100)
            closed = await _is_closed(w, record.metadata.name)
    assert (server.status.state, server.status.waiting_for, untouched, closed) == ("Reserved", "", True, True)


async def test_a_restored_record_of_a_moved_drive_takes_no_machine_from_its_tenant() -> None:
    """The drive is in another server, which was erased and is claimed."""
    async with world(**QUICK) as w:
        await _deleted_while_dirty(w, OneMachine(w, "s1", w.bmc))
        record = await _open_record(w)
        bmc = await other_server(w)
        machine = OneMachine(w, "s2", bmc)
        async with machine.acting():
            await w.until_true(_is_erased, "s2", within=1500)
            await w.add_claim("c2")
            await w.until_true(lambda s: bool(s.status.tenancy.boot and not s.status.waiting_for), "s2", within=900)
            await _restore(w, record)
            writes = len(bmc.writes())
            await w.restart()
            await asyncio.sleep(900)
            server = await w.server("s2")
    assert (server.status.state, server.status.waiting_for) == ("Reserved", "")
    assert (bmc.power, set(bmc.writes()[writes:]) - {"clear_boot_override"}) == ("On", set())
