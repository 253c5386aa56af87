"""An outstanding erasure outlives its Server object: the next Server of that machine performs it."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from metal.api.core import SECRET
from metal.api.meta import ObjectMeta
from metal.api.sanitization import SanitizationEvidence
from metal.api.server import Server
from metal.api.tenancy import TenantRef
from metal.evidence import outstanding, record
from metal.evidence.keys import KeyStore
from metal.machine.uuids import spellings
from tests.controllers.fakebmc import FakeBMC
from tests.controllers.server.steps import claimed_and_booted, claimed_and_booting, condition, maintain
from tests.controllers.server.tenancy.test_sanitization import ERASE, begin_erasing, disks, erasing, released
from tests.controllers.world import KINDS, NS, World, world

pytestmark = pytest.mark.looptime
BOOTED: dict[str, Any] = {
    "status": {"conditions": [{"type": "Booted", "status": "True", "reason": "Booted", "message": "",
                               "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
}  # fmt: skip
"""What the operator writes to a claim that has booted."""

OTHER = "4c4c4544-0042-4410-8030-b4c04f4d3132"
SHARED = "03000200-0400-0500-0006-000700080009"


async def recreate(w: World) -> None:
    """Delete the Server and create it again."""
    await w.client.delete(KINDS.server, "s1")
    await w.until_gone(KINDS.server, "s1")
    await w.client.delete(KINDS.bmc_secret, "s1-secret")
    await w.add_server()


async def left(w: World) -> SanitizationEvidence:
    """What the deleted Server left behind."""
    (found,) = [one for one in await w.evidence() if one.metadata.name.startswith("owed-")]
    return found


async def in_cleanup(w: World) -> None:
    await released(w)
    await w.until("Cleanup")


async def while_it_is_erased(w: World) -> None:
    await erasing(w)


async def in_maintenance(w: World) -> None:
    disks(w, "sda")
    await claimed_and_booted(w)
    await maintain(w)
    await w.until("Maintenance")
    await w.client.delete(KINDS.claim, "c1", "default")
    await asyncio.sleep(60)


async def after_half_a_boot(w: World) -> None:
    disks(w, "sda")
    await claimed_and_booting(w)
    await w.fetch_script()
    await w.client.delete(KINDS.claim, "c1", "default")
    await w.until("Cleanup")


@pytest.mark.behaviour(
    "Cleanup", "Data that a deleted Server left is erased before the new Server of that machine is discovered."
)
@pytest.mark.parametrize("begin", [in_cleanup, while_it_is_erased, in_maintenance, after_half_a_boot])
async def test_what_a_deleted_server_owes_is_done_before_anything_else(
    begin: Callable[[World], Awaitable[None]],
) -> None:
    """Erased to the former tenant's policy, with its drives as they were known; it is discovered only then."""
    async with world(**ERASE) as w:
        await begin(w)
        await recreate(w)
        again = await w.until("Cleanup")
        record = await left(w)
        await maintain(w, on=False)
        await begin_erasing(w)
        await w.erase()
        erased = await w.until("Discovery", within=900)
        ended = await left(w)
        await w.discover()
        server = await w.until("Available")
    assert (again.status.tenancy.policy, [d.serial_number for d in again.status.drives]) == (
        "Clear",
        ["serial-sda"],
    )
    assert (record.status.phase, record.spec.claim_uid) == ("", again.status.tenancy.uid)
    assert (ended.status.phase, ended.status.signature is not None) == ("Succeeded", True)
    assert erased.status.tenancy.sanitization == "Clear"
    assert condition(server, "Sanitized") == ("True", "Clear")


async def test_a_drive_that_went_with_the_deleted_server_is_owed() -> None:
    """The new Server knows what the old one had."""
    async with world(**ERASE) as w:
        await in_cleanup(w)
        await recreate(w)
        await begin_erasing(w)
        disks(w)
        await w.erase()
        server = await w.until("Error", within=900)
    assert server.status.failure is not None
    assert "serial-sda) was in the server and is missing" in server.status.failure.message


async def test_what_was_done_is_not_done_again() -> None:
    """Once its cleanup has ended, another Server of that machine is a new one."""
    async with world(**ERASE) as w:
        await in_cleanup(w)
        await recreate(w)
        await begin_erasing(w)
        await w.erase()
        await w.until("Discovery", within=900)
        await recreate(w)
        await w.until("Discovery")
        evidence = await w.evidence()
    assert len(evidence) == 2


@pytest.mark.behaviour(
    "Cleanup", "A Server that is created again gets its machine back unerased when its claim still exists."
)
async def test_a_claim_that_is_still_there_has_its_machine_back_unerased() -> None:
    """A machine whose boot is not recorded counts as booted, so its disk is not overwritten."""
    async with world(**ERASE) as w:
        disks(w, "sda")
        await claimed_and_booting(w)
        await w.fetch_script()
        boots = w.bmc.network_boots
        await recreate(w)
        server = await w.until("Reserved")
        await asyncio.sleep(600)
    assert server.spec.server_claim_ref is not None
    assert w.bmc.network_boots == boots


async def test_a_claim_that_goes_while_its_server_is_away_leaves_an_erasure() -> None:
    """The claim is deleted before it gets its machine back; no claim holds it, and its data is still there."""
    async with world(**ERASE) as w:
        disks(w, "sda")
        await claimed_and_booted(w)
        await w.client.delete(KINDS.server, "s1")
        await w.until_gone(KINDS.server, "s1")
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until_gone(KINDS.claim, "c1", "default")
        await w.client.delete(KINDS.bmc_secret, "s1-secret")
        await w.add_server()
        server = await w.until("Cleanup")
    assert server.status.tenancy.data == "Dirty"


@pytest.mark.parametrize("policy", ["None", "Clear"])
async def test_a_server_that_owes_nothing_leaves_nothing(policy: str) -> None:
    """No record is kept for a machine with the policy None, nor for an unused one."""
    async with world(sanitization_policy=policy) as w:
        if policy == "None":
            await released(w)
        else:
            await w.add_server()
            await w.discover()
        await recreate(w)
        await w.until("Discovery")
        evidence = await w.evidence()
    assert evidence == []


async def test_leaving_it_twice_is_leaving_it_once() -> None:
    """A manager that was killed before the finalizer went comes by again."""
    async with world(**ERASE) as w:
        await in_cleanup(w)
        server: Server = await w.server()
        first = await outstanding.create(w.client, KINDS, server, server.uuid, "Clear")
        again = await outstanding.create(w.client, KINDS, server, server.uuid, "Clear")
        found = await outstanding.find(w.client, KINDS, server.uuid)
    assert first.metadata.uid == again.metadata.uid
    assert [one.metadata.uid for one in found] == [first.metadata.uid]


async def test_a_closed_record_of_a_server_that_was_restored_and_is_deleted_again_stays_as_it_is() -> None:
    """Its signature stays valid, and what is owed now has a record of its own."""
    async with world(**ERASE) as w:
        await in_cleanup(w)
        server: Server = await w.server()
        first = await outstanding.create(w.client, KINDS, server, server.uuid, "Clear")
        key = await KeyStore(w.client, KINDS, NS, "metal-evidence-key").signing_key()
        await outstanding.close(w.client, KINDS, first, "Clear", "proof", key, datetime.now(UTC))
        closed = await w.client.get(KINDS.evidence, first.metadata.name)
        second = await outstanding.create(w.client, KINDS, server, server.uuid, "Clear")
        again = await outstanding.create(w.client, KINDS, server, server.uuid, "Clear")
        found = await outstanding.find(w.client, KINDS, server.uuid)
        unchanged = await w.client.get(KINDS.evidence, first.metadata.name)
    assert unchanged == closed
    assert second.metadata.name == again.metadata.name == f"{first.metadata.name}-2"
    assert [one.metadata.name for one in found] == [second.metadata.name]


async def unusable_key(w: World) -> None:
    """The Secret with the signing key has another content."""
    await w.client.patch(SECRET, "metal-evidence-key", {"data": {"private.pem": "bm9uc2Vuc2U="}}, NS)


def key_lost_after_verdict(w: World, patch: pytest.MonkeyPatch) -> None:
    """The key becomes unusable when the evidence of an erasure is signed, before records are closed."""
    conclude = record.conclude

    async def concluded(*args: Any, **more: Any) -> SanitizationEvidence:
        found = await conclude(*args, **more)
        await unusable_key(w)
        return found

    patch.setattr(record, "conclude", concluded)


async def test_a_record_that_cannot_be_signed_stays_open_and_is_closed_by_the_next_erasure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One Event names the record, the Secret and the way out; the server is erased again and the record closed."""
    async with world(**ERASE) as w:
        await in_cleanup(w)
        await recreate(w)
        await begin_erasing(w)
        key_lost_after_verdict(w, monkeypatch)
        await w.erase()
        await w.until("Discovery", within=900)
        await asyncio.sleep(600)
        told = [one for one in await w.events() if one.reason == "SigningKeyUnusable"]
        still = await left(w)
        monkeypatch.undo()
        await w.client.delete(SECRET, "metal-evidence-key", NS)
        await w.boot_probe()
        await w.until("Cleanup")
        await begin_erasing(w)
        await w.erase()
        await w.until("Discovery", within=900)
        ended = await left(w)
    (event,) = told
    assert (event.count, event.type) == (1, "Warning")
    assert f"SanitizationEvidence {still.metadata.name} stays open" in event.message
    assert f"Secret {NS}/metal-evidence-key" in event.message
    assert "correct or delete it" in event.message
    assert (still.status.phase, ended.status.phase) == ("", "Succeeded")


async def gone(w: World) -> None:
    """Delete the Server; only the record of its outstanding erasure remains."""
    await w.client.delete(KINDS.server, "s1")
    await w.until_gone(KINDS.server, "s1")
    await w.client.delete(KINDS.bmc_secret, "s1-secret")


async def undisturbed(w: World, name: str) -> Server:
    """The machine is not changed for ten minutes."""
    before = list(w.bmc.writes())
    await asyncio.sleep(600)
    assert w.bmc.writes() == before
    return await w.server(name)


@pytest.mark.parametrize("policy", ["None", "Clear"])
async def test_a_tenants_machine_that_comes_back_under_another_name_is_left_alone(policy: str) -> None:
    """Its claim exists and names another Server: an administrator has to decide."""
    async with world(sanitization_policy=policy) as w:
        disks(w, "sda")
        await claimed_and_booted(w)
        await gone(w)
        await w.add_server("s2")
        server = await undisturbed(w, "s2")
        assert (server.status.state, server.status.wait and server.status.wait.for_) == ("", "FormerTenant")
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until("Cleanup" if policy == "Clear" else "Discovery", "s2")
    assert "default/c1" in server.status.waiting_for


@pytest.mark.behaviour(
    "Cleanup",
    "A claim that only names a Server in `spec.serverRef` does not hold the erasure of its machine up, and gets it "
    "erased.",
)
async def test_a_claim_that_names_the_server_and_never_had_it_gets_it_erased() -> None:
    """Any tenant can write spec.serverRef; what the operator wrote decides."""
    async with world(**ERASE) as w:
        await in_cleanup(w)
        await gone(w)
        await w.add_claim("c2", serverRef={"name": "s1"})
        await w.add_server()
        server = await w.until("Cleanup")
        assert server.spec.server_claim_ref is None
        assert server.status.tenancy.data == "Dirty"


@pytest.mark.parametrize("forged", [False, True])
async def test_without_a_record_the_status_of_a_claim_decides_and_its_spec_does_not(forged: bool) -> None:
    """docs/rbac.md: the right to write the status of claims is the right to have such a Server."""
    async with world(**ERASE) as w:
        await w.add_claim("c2", serverRef={"name": "s1"})
        if forged:
            await w.client.patch_status(KINDS.claim, "c2", BOOTED, "default")
        await w.add_server()
        server = await w.until("Reserved" if forged else "Discovery")
    assert (server.spec.server_claim_ref is not None) is forged


async def test_a_claim_that_reports_the_server_holds_its_erasure_up() -> None:
    """Status is written by the operator: it may be a claim that was restored, so nothing is erased until a decision."""
    async with world(**ERASE) as w:
        await in_cleanup(w)
        await gone(w)
        await w.add_claim("c2", serverRef={"name": "s1"})
        await w.client.patch_status(KINDS.claim, "c2", BOOTED, "default")
        await w.add_server()
        server = await undisturbed(w, "s1")
        assert (server.status.state, server.status.wait and server.status.wait.for_) == ("", "FormerTenant")
        await w.client.delete(KINDS.claim, "c2", "default")
        await w.until("Cleanup")


async def test_of_several_tenants_the_strictest_policy_and_all_drives_count() -> None:
    """One erasure is for all of them, and ends what each has left."""
    async with world(**ERASE) as w:
        await in_cleanup(w)
        server = await w.server()
        drive = msgspec.structs.replace(server.status.drives[0], name="sdb", serial_number="gone")
        left = msgspec.structs.replace(server.status.tenancy, claim_ref=TenantRef(uid="another"))
        status = msgspec.structs.replace(server.status, tenancy=left, drives=(drive,))
        other = msgspec.structs.replace(
            server, status=status, metadata=msgspec.structs.replace(server.metadata, uid="another")
        )
        await outstanding.create(w.client, KINDS, other, server.uuid, "Purge")
        await recreate(w)
        again = await w.until("Cleanup")
    assert again.status.tenancy.policy == "Purge"
    assert {drive.serial_number for drive in again.status.drives} == {"serial-sda", "gone"}


async def test_a_server_that_was_there_before_the_other_was_deleted_does_not_become_available() -> None:
    """It asked too early whether anything is owed, and asks again."""
    async with world(**ERASE) as w:
        await w.add_server()
        await w.until("Discovery")
        former = msgspec.structs.replace(await w.server(), metadata=ObjectMeta(name="s0", uid="former"))
        await outstanding.create(w.client, KINDS, former, former.uuid, "Clear")
        await w.boot_probe()
        server = await w.until("Cleanup")
    assert server.status.tenancy.policy == "Clear"


async def test_the_other_spelling_of_a_uuid_is_the_same_machine() -> None:
    """Firmware of before SMBIOS 2.6 shows three groups with their bytes swapped."""
    async with world(**ERASE) as w:
        await w.add_server(uuid=OTHER)
        await w.until_true(lambda s: bool(s.status.state))
        former = msgspec.structs.replace(await w.server(), metadata=ObjectMeta(name="s0", uid="former"))
        await outstanding.create(w.client, KINDS, former, min(spellings(OTHER)), "Clear")
        await w.client.delete(KINDS.server, "s1")
        await w.until_gone(KINDS.server, "s1")
        await w.client.delete(KINDS.bmc_secret, "s1-secret")
        await w.add_server(uuid=spellings(OTHER)[1])
        server = await w.until_true(lambda s: bool(s.status.state))
    assert (server.status.state, server.status.tenancy.data) == ("Cleanup", "Dirty")


async def test_a_server_with_a_uuid_that_is_none_can_be_deleted() -> None:
    """No record can be kept for a machine without a valid UUID."""
    async with world(**ERASE) as w:
        disks(w, "sda")
        await claimed_and_booted(w)
        await w.client.patch(KINDS.server, "s1", {"spec": {"systemUUID": "not a uuid!"}})
        await w.client.delete(KINDS.server, "s1")
        await w.until_gone(KINDS.server, "s1")
        evidence = await w.evidence()
    assert evidence == []


async def test_a_server_of_another_operator_that_waits_for_a_word_owes_nothing() -> None:
    """No tenant is recorded for the machine: its next Server is a new one."""
    async with world(**ERASE) as w:
        await w.add_server()
        await w.discover()
        told = {"type": "TakenOver", "status": "False", "reason": "Undecided", "message": "m",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
        await w.client.patch_status(KINDS.server, "s1", {"status": {"conditions": [told]}})
        await gone(w)
        evidence = await w.evidence()
    assert evidence == []


@pytest.mark.behaviour(
    "Cleanup",
    "A UUID that many machines have finds no data of a deleted Server: the serial number does, once the BMC shows it.",
)
async def test_a_machine_with_the_same_default_uuid_does_not_get_the_record_of_another() -> None:
    """Its record stays open, and is found by the next Server of the machine with that serial number."""
    async with world(**ERASE) as w:
        w.bmc.uuid = SHARED
        w.pool.bmcs["10.0.0.10"] = FakeBMC(uuid=SHARED, serial="S2")
        await released(w, uuid=SHARED)
        await w.until("Cleanup")
        await w.client.delete(KINDS.server, "s1")
        await w.until_gone(KINDS.server, "s1")
        disks(w, "sdb")
        await w.add_server("s2", uuid=SHARED, address="10.0.0.10")
        await w.discover("s2")
        other = await w.until("Available", "s2")
        record = await left(w)
        await w.client.delete(KINDS.bmc_secret, "s1-secret")
        await w.add_server(uuid=SHARED)
        again = await w.until("Cleanup")
    assert (other.status.tenancy.data, record.status.phase) == ("Clean", "")
    assert [drive.serial_number for drive in again.status.drives] == ["serial-sda"]


async def test_a_recreated_server_with_a_default_uuid_returns_to_its_claim_without_a_reboot() -> None:
    """The serial number is read before anything is sent to the BMC."""
    async with world() as w:
        w.bmc.uuid = SHARED
        await claimed_and_booted(w, uuid=SHARED)
        await w.client.delete(KINDS.server, "s1")
        await w.until_gone(KINDS.server, "s1")
        writes = len(w.bmc.writes())
        await w.client.delete(KINDS.bmc_secret, "s1-secret")
        await w.add_server(uuid=SHARED)
        server = await w.until("Reserved")
        await asyncio.sleep(600)
        after = w.bmc.writes()[writes:]
    assert server.spec.server_claim_ref is not None
    assert after == []


async def decision_awaited(w: World, names: str) -> Server:
    """A Server of the machine was deleted during the discovery of this one; claim c1 may own the data."""
    await w.add_server()
    await w.until("Discovery")
    claim = await w.add_claim(serverRef={"name": names})
    server = await w.server()
    tenant = TenantRef(uid=claim.metadata.uid)
    status = msgspec.structs.replace(
        server.status, tenancy=msgspec.structs.replace(server.status.tenancy, claim_ref=tenant)
    )
    former = msgspec.structs.replace(server, metadata=ObjectMeta(name="s0", uid="former"), status=status)
    await outstanding.create(w.client, KINDS, former, former.uuid, "Clear")
    await w.boot_probe()
    return await w.until_true(lambda s: s.status.wait is not None and s.status.wait.for_ == "FormerTenant")


@pytest.mark.behaviour(
    "Cleanup",
    "A discovery that ends while a claim may own the data waits (`FormerTenant`) until claim or record is gone.",
)
@pytest.mark.parametrize(("removed", "state"), [("claim", "Cleanup"), ("record", "Available"), ("server", "Reserved")])
async def test_a_decision_at_the_end_of_a_discovery_is_awaited(removed: str, state: str) -> None:
    """Where the claim names this Server, its text says that deleting this Server is enough, and it is."""
    async with world(**ERASE) as w:
        server = await decision_awaited(w, "s1" if removed == "server" else "s0")
        assert (server.status.state, server.status.failure) == ("Discovery", None)
        if removed == "claim":
            await w.client.delete(KINDS.claim, "c1", "default")
        elif removed == "record":
            await w.client.delete(KINDS.evidence, (await left(w)).metadata.name)
        else:
            await recreate(w)
        after = await w.until(state)
    named = "To keep the claim, delete Server s1: " in server.status.waiting_for
    assert named is (removed == "server")
    assert ("create a Server with the name in its spec.serverRef (s0)" in server.status.waiting_for) is not named
    assert (after.spec.server_claim_ref is not None) is named


async def test_a_claim_that_is_not_recorded_gets_the_machine_by_the_steps_that_the_wait_names() -> None:
    """It reports this Server and has another UID than the record: it was restored."""
    async with world(**ERASE) as w:
        await in_cleanup(w)
        await gone(w)
        await w.add_claim("c2", serverRef={"name": "s1"})
        await w.client.patch_status(KINDS.claim, "c2", BOOTED, "default")
        await w.add_server()
        server = await undisturbed(w, "s1")
        await w.client.delete(KINDS.evidence, (await left(w)).metadata.name)
        await recreate(w)
        after = await w.until("Reserved")
    assert "delete the others and that evidence, then Server s1" in server.status.waiting_for
    assert after.spec.server_claim_ref is not None


async def test_an_error_of_an_earlier_version_becomes_the_wait() -> None:
    """A discovery ended in Error FormerTenant before; it continues there and waits."""
    async with world(**ERASE) as w:
        await decision_awaited(w, "s0")
        failure = {"state": "Discovery", "reason": "FormerTenant", "message": "m"}
        await w.client.patch_status(KINDS.server, "s1", {"status": {"state": "Error", "failure": failure}})
        server = await w.until("Discovery")
        await asyncio.sleep(60)
        server = await w.server()
    assert server.status.wait is not None
    assert (server.status.state, server.status.wait.for_) == ("Discovery", "FormerTenant")
