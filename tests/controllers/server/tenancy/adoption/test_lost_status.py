"""A status that another client wrote without the fields that it does not know: nothing dangerous is forgotten."""

import asyncio
from typing import Any

import msgspec
import pytest

from metal.api.core import CONFIG_MAP
from metal.api.server import Server
from metal.api.storage import Storage, StorageDrive
from metal.api.tenancy import ClaimBoot, Tenancy, TenantRef
from metal.bmc.errors import BMCUnreachable
from metal.machine import kept_tenancy
from tests.controllers.server.steps import claimed_and_booted, reasons, retry
from tests.controllers.server.tenancy.test_sanitization import ERASE, begin_erasing, disks, erasing
from tests.controllers.world import KINDS, NS, START, World, world

pytestmark = pytest.mark.looptime
GO = ("state", "powerState", "storages", "networkInterfaces", "manufacturer", "model", "conditions")
"""Fields of the status that the types of the Go operator, v0.7.0, have."""


async def wipe(w: World, *, keep: tuple[str, ...] = GO, running: bool = False, **changes: Any) -> None:
    """Write the status as a typed Update of a Go client does, while a manager runs or while none does."""
    if not running:
        await w.runtime.stop(grace=0.0)
    server = await w.server()
    plain: dict[str, Any] = msgspec.to_builtins(server.status)
    body = {name: None for name in plain if name not in keep} | changes
    await w.client.patch_status(KINDS.server, "s1", {"status": body})
    if not running:
        await w.restart()


async def release(w: World, *, running: bool) -> None:
    """The claim is deleted; without a manager nothing follows."""
    if not running:
        await w.runtime.stop(grace=0.0)
    await w.client.delete(KINDS.claim, "c1", "default")


def listed(server: Server) -> list[str]:
    return [drive.serial_number for drive in server.status.drives]


@pytest.mark.behaviour(
    "Cleanup", "A status that another client wiped is rebuilt: tenant, data, policy and known drives are not forgotten."
)
@pytest.mark.parametrize("running", [False, True])
async def test_a_status_wiped_before_cleanup_still_leads_to_the_erasure_of_every_drive(running: bool) -> None:
    """The drives come from the last report of the probe; the policy is the claim's, not the weaker setting."""
    async with world(**ERASE) as w:
        disks(w, "sda")
        await claimed_and_booted(w, sanitizationPolicy="Purge")
        await release(w, running=running)
        await wipe(w, running=running)
        await begin_erasing(w)
        server = await w.server()
    assert (server.status.tenancy.data, server.status.tenancy.policy) == ("Erasing", "Purge")
    assert listed(server) == ["serial-sda"]


@pytest.mark.parametrize("running", [False, True])
async def test_a_drive_that_only_the_inventory_lists_is_owed_when_no_report_names_it(running: bool) -> None:
    """Not "it has no drives": status.storages lists one, although without a serial number."""
    async with world(**ERASE) as w:
        await claimed_and_booted(w)
        await release(w, running=running)
        nameless = Storage(name="RAID", drives=(StorageDrive(name="Bay 1", state="Enabled"),))
        await wipe(w, running=running, storages=[msgspec.to_builtins(nameless)])
        await begin_erasing(w)
        await w.erase()
        server = await w.until("Error")
    assert server.status.failure is not None
    assert (server.status.failure.reason, server.status.tenancy.data) == ("SanitizationOwed", "Dirty")
    assert "Bay 1" in server.status.failure.message


@pytest.mark.parametrize("running", [False, True])
async def test_an_error_that_owes_a_drive_still_owes_it_after_a_wipe(running: bool) -> None:
    """A retry erases again, and the drive that is gone is missed again."""
    async with world(**ERASE) as w:
        await erasing(w)
        await w.client.delete(CONFIG_MAP, "inventory-s1", NS)
        disks(w)
        await w.erase()
        before = await w.until("Error")
        await wipe(w, running=running, storages=None)
        await retry(w)
        await w.until("Cleanup")
        await begin_erasing(w)
        await w.erase()
        server = await w.until("Error")
    assert before.status.failure is not None
    assert server.status.failure is not None
    assert (server.status.failure.reason, server.status.tenancy.data) == ("SanitizationOwed", "Dirty")
    assert listed(server) == ["serial-sda"]


@pytest.mark.parametrize("running", [False, True])
async def test_a_wipe_during_the_first_boot_of_a_claim_does_not_count_as_booted(running: bool) -> None:
    """The boot starts again; the claim is ready only once its image has really booted."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await w.add_claim()
        await w.until_true(lambda s: s.spec.boot_configuration_ref is not None and s.status.state == "Reserved")
        await w.config_ready("c1", "default")
        await w.until_true(lambda s: s.status.boot_window is not None and s.status.power_state == "On")
        await w.fetch_script()
        await wipe(w, running=running)
        await asyncio.sleep(30)
        claim, between = await w.claim(), await w.server()
        await w.until_true(lambda s: s.status.boot_window is not None and s.status.boot_window.phase == "Open")
        await w.boot_claim()
        said = await reasons(w)
    assert [c.status for c in claim.status.conditions if c.type == "Booted"] == ["False"]
    assert (between.status.tenancy.boot, between.status.tenancy.data) == (None, "Dirty")
    assert "StatusLost" in said


@pytest.mark.parametrize("claim_too", [False, True])
async def test_a_wipe_after_the_boot_of_a_claim_boots_nothing_again(claim_too: bool) -> None:
    """The annotation knows the boot, also when the claim's status was wiped at the same time."""
    async with world() as w:
        await claimed_and_booted(w)
        await w.until_claim(lambda c: any(x.type == "Ready" and x.status == "True" for x in c.status.conditions))
        await w.runtime.stop(grace=0.0)
        if claim_too:
            nothing = {"conditions": None, "bootGeneration": None}
            await w.client.patch_status(KINDS.claim, "c1", {"status": nothing}, "default")
        w.bmc.calls.clear()
        await wipe(w)
        await asyncio.sleep(600)
        server = await w.server()
    assert (server.status.state, server.status.tenancy.data, w.bmc.writes()) == ("Reserved", "Dirty", [])
    assert not [c for c in server.status.conditions if c.type == "TakenOver"]


async def test_a_server_restored_without_status_keeps_its_tenant() -> None:
    """The annotation is in the backup; the machine is not discovered, but cleaned up once the claim is gone."""
    async with world(**ERASE) as w:
        disks(w, "sda")
        await claimed_and_booted(w)
        w.bmc.calls.clear()
        await wipe(w, keep=())
        server = await w.until("Reserved")
        await asyncio.sleep(300)
        assert w.bmc.writes() == []
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until("Cleanup")
    assert server.status.tenancy.uid


@pytest.mark.parametrize("state", ["Initial", "Discovery"])
async def test_a_new_server_wiped_before_its_discovery_is_not_another_operators(state: str) -> None:
    """Its first write marked it; the discovery goes on, and nothing waits for an administrator or an erasure."""
    async with world(**ERASE) as w:
        if state == "Initial":
            w.bmc.failure = BMCUnreachable("off the network")
        await w.add_server()
        await w.until_true(lambda s: s.status.state == state)
        await wipe(w)
        w.bmc.failure = None
        await w.discover()
        server, said = await w.server(), await reasons(w)
    assert (server.status.state, server.status.tenancy.data) == ("Available", "Clean")
    assert not [c for c in server.status.conditions if c.type == "TakenOver"]
    assert "StatusLost" in said


RECORDS = [
    (Tenancy(data="Clean"), "Clean"),
    (Tenancy(data="Clean", claim_ref=TenantRef(uid="u")), "Dirty"),
    (Tenancy(data="Clean", claim_ref=TenantRef(uid="u"), sanitization="Clear"), "Clean"),
    (Tenancy(data="Accepted", claim_ref=TenantRef(uid="u")), "Dirty"),
    (Tenancy(data="Unknown", claim_ref=TenantRef(uid="u")), "Unknown"),
    (Tenancy(data="Erasing"), "Dirty"),
    (Tenancy(data="Dirty", policy="Purge", boot=ClaimBoot(claim_uid="u", booted_at=START, boot_generation=3),
             claim_ref=TenantRef(namespace="d", name="c", uid="u")), "Dirty"),
]  # fmt: skip


@pytest.mark.parametrize(("record", "data"), RECORDS)
def test_a_record_survives_the_annotation(record: Tenancy, data: str) -> None:
    """A copy is at least as dangerous as its record."""
    found = kept_tenancy.rebuilt(kept_tenancy.of(record), START)
    assert (found.data, found.claim_ref, found.policy) == (data, record.claim_ref, record.policy)
    assert (found.boot and found.boot.boot_generation) == (record.boot and record.boot.boot_generation)


@pytest.mark.parametrize("value", ["", "{", '{"data":"Tidy"}', "[]"])
def test_an_annotation_that_cannot_be_read_means_unknown_data(value: str) -> None:
    """It is never taken for clean."""
    assert kept_tenancy.rebuilt(value, START).data == "Unknown"
