"""Cleanup with evidence in virtual time: a tenant's data is erased with signed evidence, or the server is in Error."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from metal.api.core import CONFIG_MAP
from metal.api.sanitization import SanitizationEvidence
from metal.api.server import Server
from metal.config.options import Sanitization
from metal.evidence.keys import public_keys
from metal.evidence.signing import SignatureInvalid, verify
from metal.sim.machine.machine import Machine
from tests.sim.plane import KINDS, OPTIONS, Plane, is_ready, plane

pytestmark = [pytest.mark.looptime, pytest.mark.life]
ERASING = replace(OPTIONS, erase=60.0)


@asynccontextmanager
async def used(**options: Any) -> AsyncIterator[tuple[Plane, Machine]]:
    """A plane with the default policy, whose only machine has a tenant."""
    claim = options.pop("claim", {})
    async with plane(1, options=ERASING, sanitization=Sanitization(**options)) as world:
        await world.announce()
        await world.until_available(1)
        await occupy(world, **claim)
        yield world, world.fleet.machines[0]


async def occupy(world: Plane, name: str = "c1", **spec: Any) -> None:
    """A claim whose system runs, and has left its marker on the disk."""
    await world.add_claim(name, **spec)
    await world.until_claim(is_ready, name)
    await world.until_true(lambda: len(world.tenants()) == 1, what="the tenant")


async def release(world: Plane, name: str = "c1") -> None:
    await world.client.delete(KINDS.claim, name, "default")
    await world.until(lambda servers: servers[0].status.state == "Cleanup", what="Cleanup")


async def until_state(world: Plane, state: str, within: float = 3000) -> Server:
    await world.until(lambda servers: servers[0].status.state == state, within=within, what=state)
    (server,) = await world.servers()
    return server


async def evidence(world: Plane) -> list[SanitizationEvidence]:
    found = (await world.client.list(KINDS.evidence)).items
    return sorted(found, key=lambda one: one.status.started_at or one.metadata.creation_timestamp)  # type: ignore[arg-type,return-value]  # it has one


async def proof_of(world: Plane) -> SanitizationEvidence:
    """The evidence that the server names, after its signature was verified."""
    (server,) = await world.servers()
    found = await world.client.get(KINDS.evidence, server.status.sanitization_evidence)
    verify(found, public_keys((await world.client.list(CONFIG_MAP, "metal-system")).items))
    return found


async def operate(world: Plane, operation: str) -> None:
    (server,) = await world.servers()
    note = {"metadata": {"annotations": {KINDS.key("operation"): operation}}}
    await world.client.patch(KINDS.server, server.metadata.name, note)


def sanitized(server: Server) -> tuple[str, str]:
    return next((c.status, c.reason) for c in server.status.conditions if c.type == "Sanitized")


@pytest.mark.behaviour(
    "Cleanup", "A tenant's drives are erased and read back, and signed evidence names each drive with its method."
)
async def test_a_tenants_data_is_erased_and_evidence_says_so() -> None:
    """Off, erased, off, Available; the evidence is signed, of this tenant, and has each drive with its method."""
    async with used() as (world, machine):
        claim = await world.client.get(KINDS.claim, "c1", "default")
        assert machine.state.disk.marker
        await release(world)
        server = await until_state(world, "Available")
        proof = await proof_of(world)
        assert (machine.state.disk.marker, machine.state.power) == ("", "Off")
        assert (server.status.tenancy.sanitization, sanitized(server)) == ("Clear", ("True", "Clear"))
        assert (proof.status.phase, proof.status.owed, proof.spec.policy) == ("Succeeded", (), "Clear")
        assert (proof.spec.claim_uid, proof.spec.system_uuid) == (claim.metadata.uid, machine.identity.uuid)
        assert [d.serial_number for d in proof.status.drives] == [d.serial for d in machine.hardware.disks]
        assert all(d.samples_read and d.method and d.class_ == "Clear" for d in proof.status.drives)
        assert (server.status.tenancy.uid, server.spec.server_claim_ref, server.spec.boot_configuration_ref) == (
            "", None, None,
        )  # fmt: skip
        await occupy(world, "c2")


async def test_the_inventory_of_the_discovery_is_the_baseline() -> None:
    """The drives of the probe's report by serial number, with the slot that the BMC reports."""
    async with plane(1) as world:
        await world.announce()
        await world.until_available(1)
        (server,) = await world.servers()
        parts = world.fleet.machines[0].hardware
        assert [(d.serial_number, d.size) for d in server.status.drives] == [(d.serial, d.size) for d in parts.disks]
        assert all(d.slot and d.wwn and d.name.startswith("nvme") for d in server.status.drives)


async def test_progress_is_shown_while_drives_are_erased() -> None:
    """kubectl get shows the progress; the wait has a name and a deadline that follows from the drives' size."""
    async with used() as (world, machine):
        await release(world)
        await world.until(lambda servers: 20 <= _percent(servers[0]) <= 90, within=300, what="some progress")
        (server,) = await world.servers()
        wait = server.status.wait
        assert wait is not None
        assert (wait.for_, f"{_percent(server)} %" in server.status.waiting_for) == ("Sanitization", True)
        assert wait.until is not None
        largest = max(disk.size for disk in machine.hardware.disks)
        window = server.status.boot_window
        assert window is not None
        assert (window.expires_at - window.opened_at).total_seconds() == pytest.approx(7200 + largest / 50e6, abs=1)
        await until_state(world, "Available")


def _percent(server: Server) -> int:
    seen = server.status.sanitization_progress
    return seen.percent if seen is not None else 0


async def test_a_claim_may_ask_for_purge() -> None:
    """The claim's policy is applied although the claim is deleted by then."""
    async with used(claim={"sanitizationPolicy": "Purge"}) as (world, _):
        await release(world)
        server = await until_state(world, "Available")
        assert server.status.tenancy.sanitization == "Purge"
        assert {d.class_ for d in (await proof_of(world)).status.drives} == {"Purge"}


@pytest.mark.parametrize(("opt_out", "left"), [(True, True), (False, False)])
async def test_a_claim_may_opt_out_only_where_it_is_allowed(opt_out: bool, left: bool) -> None:
    """With optOut its data remains, visibly; without, the operator's policy applies."""
    async with used(opt_out=opt_out, claim={"sanitizationPolicy": "None"}) as (world, machine):
        await release(world)
        server = await until_state(world, "Available")
        assert bool(machine.state.disk.marker) is left
        assert sanitized(server) == (("False", "PolicyNone") if left else ("True", "Clear"))


async def test_the_servers_label_goes_before_the_setting() -> None:
    """An administrator can require Purge for a single server."""
    async with used() as (world, _):
        (server,) = await world.servers()
        label = {"metadata": {"labels": {KINDS.key("sanitization-policy"): "Purge"}}}
        await world.client.patch(KINDS.server, server.metadata.name, label)
        await asyncio.sleep(200)
        await release(world)
        assert (await until_state(world, "Available")).status.tenancy.sanitization == "Purge"


async def test_a_claim_that_never_booted_owes_nothing() -> None:
    """No system of it ran on the machine: Available at once, without a boot, and the condition has the reason."""
    async with plane(1, options=ERASING, sanitization=Sanitization()) as world:
        await world.announce()
        await world.until_available(1)
        await world.add_claim(power="Off")
        await world.until(lambda servers: servers[0].status.state == "Reserved", what="Reserved")
        await asyncio.sleep(30)
        await world.client.delete(KINDS.claim, "c1", "default")
        await world.until(lambda servers: servers[0].status.tenancy.sanitization != "", within=30, what="decided")
        server = await until_state(world, "Available", within=30)
        assert (server.status.tenancy.sanitization, sanitized(server)) == ("NotOwed", ("True", "NothingServed"))
        assert await evidence(world) == []


@pytest.mark.behaviour(
    "Cleanup",
    "A drive that keeps its data keeps its server in Error, with serial number and slot, until retry succeeds.",
)
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("lying_drive", "the drive reports success and keeps its data"),
        ("dying_drive", "input/output error"),
        ("missing_drive", "is missing"),
    ],
)
async def test_a_drive_that_keeps_its_data_keeps_its_server(fault: str, said: str) -> None:
    """Error with serial number and slot, never Available; when the drive works again, retry leads out."""
    async with used() as (world, machine):
        machine.faults.switch(fault)
        await release(world)
        server = await until_state(world, "Error")
        assert server.status.failure is not None
        told = server.status.failure.message
        assert server.status.failure.reason == "SanitizationOwed"
        assert said in told
        assert f"serial {machine.hardware.disks[0].serial}, slot Disk 0" in told
        assert (sanitized(server), machine.state.power) == (("False", "SanitizationOwed"), "Off")
        assert (await proof_of(world)).status.phase == "Failed"
        await asyncio.sleep(4000)
        await until_state(world, "Error", within=1)
        machine.faults.switch(fault, False)
        await operate(world, "retry")
        server = await until_state(world, "Available")
        assert (server.status.tenancy.sanitization, machine.state.disk.marker) == ("Clear", "")
        assert [one.status.phase for one in await evidence(world)] == ["Failed", "Succeeded"]


@pytest.mark.behaviour(
    "Cleanup", "An accepted sanitization failure is kept in the evidence, and the server is rediscovered."
)
async def test_what_is_owed_may_be_accepted_and_the_evidence_keeps_that() -> None:
    """The drive was removed: after the operation the server is rediscovered with its present drives."""
    async with used() as (world, machine):
        machine.faults.switch("missing_drive")
        await release(world)
        await until_state(world, "Error")
        await operate(world, "accept-owed-sanitization")
        await world.until(lambda servers: servers[0].status.state == "Discovery", what="Discovery")
        server = await until_state(world, "Available")
        proof = await proof_of(world)
        assert proof.status.accepted_at is not None
        assert (proof.status.phase, len(proof.status.owed)) == ("Failed", 1)
        assert (server.status.tenancy.sanitization, sanitized(server)) == ("Accepted", ("False", "LossAccepted"))
        assert machine.state.disk.marker


async def test_nothing_else_makes_a_server_with_owed_data_available() -> None:
    """After a maintenance, a new manager or another retry it returns to its erasure."""
    async with used() as (world, machine):
        machine.faults.switch("dying_drive")
        await release(world)
        server = await until_state(world, "Error")
        name = server.metadata.name
        await world.restart_manager()
        for ref in ({"namespace": "default", "name": "m1"}, None):
            await world.client.patch(KINDS.server, name, {"spec": {"serverMaintenanceRef": ref}})
            await asyncio.sleep(60)
        await until_state(world, "Error")
        await operate(world, "accept-nothing")
        await asyncio.sleep(600)
        await until_state(world, "Error", within=1)
        assert machine.state.disk.marker


async def test_a_power_loss_half_way_begins_anew_with_fresh_evidence() -> None:
    """An interrupted erasure proves nothing; the evidence of the interrupted boot records that."""
    async with used() as (world, machine):
        machine.faults.switch("power_loss_in_sanitization")
        await release(world)
        await world.until_true(lambda: _lost_power(world, machine), what="the power loss")
        machine.faults.switch("power_loss_in_sanitization", False)
        server = await until_state(world, "Available")
        phases = [(one.status.phase, bool(one.status.owed)) for one in await evidence(world)]
        assert phases == [("Failed", True), ("Succeeded", False)]
        assert (server.status.tenancy.sanitization, machine.state.disk.marker) == ("Clear", "")


def _lost_power(world: Plane, machine: Machine) -> bool:
    powers = world.fleet.history.of(machine.identity.uuid, "power")
    return powers[-1].details["state"] == "Off" and machine.state.power == "Off" and powers[-2].details["state"] == "On"


async def test_power_that_is_lost_every_time_ends_in_error() -> None:
    """After some attempts manual action is required; with power again, retry leads out."""
    async with used() as (world, machine):
        machine.faults.switch("power_loss_in_sanitization")
        await release(world)
        server = await until_state(world, "Error")
        assert server.status.failure is not None
        assert server.status.failure.reason == "NetworkBootFailed"
        assert [one.status.phase for one in await evidence(world)] == ["Failed"] * 3
        machine.faults.switch("power_loss_in_sanitization", False)
        await operate(world, "retry")
        await until_state(world, "Available")


async def test_an_erasure_that_takes_too_long_is_owed() -> None:
    """Past its deadline: powered off, Error, and each drive that is not erased is named."""
    async with used(timeout=30.0, rate=1 << 40) as (world, machine):
        await release(world)
        server = await until_state(world, "Error")
        assert server.status.failure is not None
        assert server.status.failure.reason == "SanitizationOwed"
        for disk in machine.hardware.disks:
            assert disk.serial in server.status.failure.message
        assert "were not sufficient" in server.status.failure.message
        assert (await proof_of(world)).status.phase == "Failed"
        assert machine.state.power == "Off"


async def test_a_machine_that_never_begins_does_not_wait_for_days() -> None:
    """The boot of the probe has the same deadline as for a discovery, independent of the drives' size."""
    async with used() as (world, machine):
        machine.faults.switch("dies_after_script")
        began = world.clock()
        await release(world)
        server = await until_state(world, "Error", within=12_000)
        assert server.status.failure is not None
        assert server.status.failure.reason == "NetworkBootFailed"
        assert "did not begin" in server.status.failure.message
        assert (world.clock() - began).total_seconds() < 3 * 1800 + 600


async def test_a_machine_that_reports_nothing_does_not_become_available() -> None:
    """A missing report is no evidence, and the deadline is shorter than that of an erasure."""
    async with used() as (world, machine):
        machine.faults.switch("never_reports")
        began = world.clock()
        await release(world)
        server = await until_state(world, "Error", within=12_000)
        assert server.status.failure is not None
        assert "does not report" in server.status.failure.message
        assert (world.clock() - began).total_seconds() < 3 * 1800 + 900
        assert machine.state.disk.marker


async def test_a_drive_that_discovery_did_not_find_and_the_bmc_lists_is_erased() -> None:
    """It is known from then on; the evidence names it."""
    async with used() as (world, machine):
        (server,) = await world.servers()
        first, *rest = server.status.drives
        plain = [{"name": d.name, "serialNumber": d.serial_number, "size": d.size} for d in rest]
        await world.client.patch_status(KINDS.server, server.metadata.name, {"status": {"drives": plain}})
        await release(world)
        server = await until_state(world, "Available")
        proof = await proof_of(world)
        assert first.serial_number in {drive.serial_number for drive in proof.status.drives}
        assert first.serial_number in {drive.serial_number for drive in server.status.drives}
        assert proof.status.phase == "Succeeded"
        assert not machine.state.disk.marker


@pytest.mark.parametrize("pause", [3, 7, 11, 17])
async def test_a_manager_that_is_killed_all_the_time_gets_there(pause: float) -> None:
    """Each successor continues where the last one stopped; the machine is not erased twice."""
    async with used() as (world, machine):
        await world.client.delete(KINDS.claim, "c1", "default")
        for _ in range(12):
            await asyncio.sleep(pause)
            await world.restart_manager()
        server = await until_state(world, "Available")
        assert (server.status.tenancy.sanitization, machine.state.disk.marker) == ("Clear", "")
        assert [one.status.phase for one in await evidence(world)] == ["Succeeded"]


async def test_evidence_outlives_the_server_and_does_not_hold_once_changed() -> None:
    """It has no owner that would delete it with itself; a change invalidates its signature."""
    async with used() as (world, _):
        await release(world)
        server = await until_state(world, "Available")
        proof = await proof_of(world)
        await world.client.delete(KINDS.server, server.metadata.name)
        await asyncio.sleep(60)
        (kept,) = await evidence(world)
        assert kept.status == proof.status
        drives = [{"serialNumber": "other", "result": "Succeeded"}]
        await world.client.patch_status(KINDS.evidence, kept.metadata.name, {"status": {"drives": drives}})
        (changed,) = await evidence(world)
        with pytest.raises(SignatureInvalid, match="changed after it was signed"):
            verify(changed, public_keys((await world.client.list(CONFIG_MAP, "metal-system")).items))


async def test_a_retained_server_is_erased_before_it_is_released() -> None:
    """Retain keeps the server from other claims, but not its data."""
    async with used() as (world, machine):
        (server,) = await world.servers()
        await world.client.patch(KINDS.server, server.metadata.name, {"spec": {"reclaimPolicy": "Retain"}})
        await release(world)
        server = await until_state(world, "Released")
        assert (server.status.tenancy.sanitization, machine.state.disk.marker) == ("Clear", "")
        boots = len(world.fleet.history.of(machine.identity.uuid, "os"))
        await world.client.patch(KINDS.server, server.metadata.name, {"spec": {"reclaimPolicy": "Recycle"}})
        await until_state(world, "Available")
        assert len(world.fleet.history.of(machine.identity.uuid, "os")) == boots


def firmware(proof: SanitizationEvidence) -> list[tuple[str, str]]:
    return [(one.action, one.result) for one in proof.status.firmware]


@pytest.mark.behaviour("Cleanup", "The sanitization boot resets TPM or BIOS; the evidence holds the result.")
@pytest.mark.parametrize("action", ["ClearTPM", "ResetBIOS"])
async def test_the_firmware_is_put_back_by_the_boot_that_erases(action: str) -> None:
    """Requested before, applied as the machine starts, read back after, and recorded in the signed evidence."""
    async with used(firmware=action, firmware_required=True) as (world, machine):
        machine.state.bios.attributes["ProcVirtualization"] = "Disabled"
        kept = machine.state.bios.tpm
        await release(world)
        server = await until_state(world, "Available")
        proof = await proof_of(world)
        bios = machine.state.bios
        assert firmware(proof) == [(action, "Succeeded")]
        assert server.status.firmware_reset is None
        assert kept
        assert (bios.tpm == "") is (action == "ClearTPM")
        assert bios.attributes["ProcVirtualization"] == ("Enabled" if action == "ResetBIOS" else "Disabled")
        assert len(machine.site.history.of(machine.identity.uuid, "bios")) == 1


async def test_by_default_the_firmware_is_left_as_it_is() -> None:
    """A BIOS with its defaults may not support a network boot any more."""
    async with used() as (world, machine):
        await release(world)
        await until_state(world, "Available")
        proof = await proof_of(world)
        assert proof.status.firmware == ()
        assert machine.site.history.of(machine.identity.uuid, "bios") == []


@pytest.mark.behaviour(
    "Cleanup",
    "A firmware reset that was refused, dropped or not executed keeps the server in Error until retry succeeds.",
)
@pytest.mark.parametrize("action", ["ClearTPM", "ResetBIOS"])
@pytest.mark.parametrize("fault", ["refuses_bios", "forgets_bios", "keeps_bios"])
async def test_firmware_that_was_not_put_back_is_found_out(fault: str, action: str) -> None:
    """Where it is required the server is held back until it is verified; the BMC's response is not sufficient."""
    async with used(firmware=action, firmware_required=True) as (world, machine):
        machine.faults.switch(fault)
        await release(world)
        server = await until_state(world, "Error")
        proof = await proof_of(world)
        assert server.status.failure is not None
        assert server.status.failure.reason == "SanitizationOwed"
        assert firmware(proof) == [(action, "Failed")]
        assert "(Failed)" in server.status.failure.message
        machine.faults.switch(fault, False)
        await operate(world, "retry")
        await until_state(world, "Available")
        assert firmware(await proof_of(world)) == [(action, "Succeeded")]


async def test_firmware_that_is_not_required_is_a_remark() -> None:
    """The server can be claimed; its evidence and its condition say what was not done."""
    async with used(firmware="ClearTPM") as (world, machine):
        machine.faults.refuses_bios = True
        await release(world)
        server = await until_state(world, "Available")
        proof = await proof_of(world)
        assert firmware(proof) == [("ClearTPM", "Failed")]
        assert any("the TPM is not cleared (Failed)" in remark for remark in proof.status.remarks)
        assert sanitized(server) == ("True", "Clear")
