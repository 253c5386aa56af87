"""Parts of a Server are restored from an older backup while its claim's machine runs: the machine is not changed."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from metal.api.core import LEASE
from metal.api.server import Server
from metal.bmc.power import PowerState
from metal.kube.meta import conditions
from metal.machine.identity import identity_of, lease_name
from tests.controllers.killer import Killer
from tests.controllers.machine import Surroundings
from tests.controllers.server.steps import reasons
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime
SETTINGS: dict[str, Any] = {"power_poll": 1.0, "resync": 60.0, "sanitization_policy": "Clear"}
DISK = {"name": "sda", "serial": "DISK0001", "sizeBytes": 1 << 30, "type": "SSD"}
ALL = ("spec", "annotations", "status")
RETRY = {KINDS.key("operation"): "retry"}
Backup = dict[str, Any]


async def _backup(w: World) -> Backup:
    server: Backup = msgspec.to_builtins(await w.server())
    return {"spec": server["spec"], "annotations": server["metadata"]["annotations"], "status": server["status"]}


def _change(now: Any, old: Any) -> Any:
    """The merge patch that makes `old` of `now`."""
    if not isinstance(now, dict) or not isinstance(old, dict):
        return old
    return {**dict.fromkeys(now), **{key: _change(now.get(key), value) for key, value in old.items()}}


async def _restore(w: World, backup: Backup, parts: tuple[str, ...]) -> None:
    """No manager runs; these parts of the Server are those of the backup when the next one starts."""
    await w.runtime.stop(grace=0.0)
    await w.client.patch(KINDS.server, "s1", {"spec": {"serverClaimRef": None}} if "spec" in parts else {})
    now = await _backup(w)
    if "spec" in parts:
        await w.client.patch(KINDS.server, "s1", {"spec": _change(now["spec"], backup["spec"])})
    if "annotations" in parts:
        change = {"annotations": _change(now["annotations"], backup["annotations"])}
        await w.client.patch(KINDS.server, "s1", {"metadata": change})
    if "status" in parts:
        await w.client.patch_status(KINDS.server, "s1", {"status": _change(now["status"], backup["status"])})


async def _claimed(w: World, name: str = "c1") -> dict[str, Backup]:
    """A server whose claim has booted; backups of the Server on the way there."""
    taken: dict[str, Backup] = {}
    await w.until("Available")
    await w.until_true(lambda s: not s.status.waiting_for)
    taken["Available"] = await _backup(w)
    await w.add_claim(name)
    await w.until_true(lambda s: s.status.tenancy.claim_ref is not None)
    taken["Reserved"] = await _backup(w)
    await w.until_true(lambda s: s.status.boot_window is not None and s.status.power_state == "On")
    taken["booting"] = await _backup(w)
    await w.until_true(_runs, within=900)
    taken["booted"] = await _backup(w)
    return taken


def _runs(server: Server) -> bool:
    status = server.status
    return bool(status.tenancy.boot and status.power_state == "On" and not status.waiting_for)


async def _is_erased(w: World) -> None:
    """The server becomes Available, with the evidence of one erasure."""
    await w.until("Available", within=900)
    assert [one.status.phase for one in await w.evidence()] == ["Succeeded"]


def _is_untouched(w: World, requests: int) -> bool:
    """Nothing but a boot override was changed at the machine since then."""
    return w.bmc.power == "On" and set(w.bmc.writes()[requests:]) <= {"clear_boot_override"}


@pytest.mark.behaviour(
    "Cleanup",
    "A status that a backup brings back from before the boot of its claim is corrected; the machine is not changed.",
)
@pytest.mark.parametrize(
    ("point", "parts"),
    [("Available", ("status",)), ("Available", ("spec", "status")), ("Available", ALL), ("Reserved", ("status",)),
     ("booting", ALL)],
)  # fmt: skip
async def test_a_status_older_than_the_boot_of_its_claim_is_corrected(point: str, parts: tuple[str, ...]) -> None:
    """Neither switched off nor booted again; afterwards the deletion of the claim erases its data."""
    async with world(**SETTINGS) as w:
        around, w.disks = Surroundings(w), [DISK]
        await w.add_server()
        async with around.acting():
            backups = await _claimed(w)
            requests = len(w.bmc.writes())
            await _restore(w, backups[point], parts)
            await w.restart()
            await asyncio.sleep(1000)
            assert _is_untouched(w, requests)
            server, claim = await w.server(), await w.claim()
            assert (server.status.state, server.status.tenancy.uid) == ("Reserved", claim.metadata.uid)
            assert (claim.status.phase, server.status.waiting_for) == ("Bound", "")
            assert "StatusOutdated" in await reasons(w)
            await w.client.delete(KINDS.claim, "c1", "default")
            await _is_erased(w)


async def test_a_claim_stays_booted_while_its_server_does_not_know_it() -> None:
    """The manager is killed before it corrects the record, after the claim was looked at: the next one corrects it."""
    async with world(**SETTINGS) as w:
        around, w.disks = Surroundings(w), [DISK]
        await w.add_server()
        async with around.acting():
            backups = await _claimed(w)
            requests = len(w.bmc.writes())
            await _restore(w, backups["Available"], ("annotations", "status"))
            killer = Killer(w, 0)
            await w.restart()
            await killer.reached.wait()
            await asyncio.sleep(30)
            await w.restart()
            await asyncio.sleep(1000)
            server, claim = await w.server(), await w.claim()
            assert _is_untouched(w, requests)
            assert (server.status.state, server.status.tenancy.uid) == ("Reserved", claim.metadata.uid)


@pytest.mark.behaviour(
    "Cleanup",
    "A status from before a claim, restored when that claim is gone, is corrected from the annotation: erased first.",
)
@pytest.mark.parametrize(("point", "parts"), [("Available", ("spec", "status")), ("Reserved", ("status",))])
async def test_data_of_a_deleted_claim_is_erased_although_the_status_is_older(
    point: str, parts: tuple[str, ...]
) -> None:
    """The annotation knows of the boot that the restored status does not know."""
    async with world(**SETTINGS) as w:
        around, w.disks = Surroundings(w), [DISK]
        await w.add_server()
        async with around.acting():
            backups = await _claimed(w)
            await _restore(w, backups[point], parts)
            await w.client.delete(KINDS.claim, "c1", "default")
            await w.restart()
            await w.until_true(lambda s: s.status.tenancy.data == "Erasing", within=900)
            await _is_erased(w)


@pytest.mark.parametrize(("parts", "wait"), [(("spec",), None), (("status",), "FormerTenant"), (ALL, "FormerTenant")])
async def test_the_record_of_a_former_tenant_does_not_release_the_next_one(
    parts: tuple[str, ...], wait: str | None
) -> None:
    """The machine of c2 is not changed for the record of c1, which is gone; the record of data needs a decision."""
    async with world(**SETTINGS) as w:
        around, w.disks = Surroundings(w), [DISK]
        await w.add_server()
        async with around.acting():
            backups = await _claimed(w)
            await w.client.delete(KINDS.claim, "c1", "default")
            await w.until("Cleanup")
            await w.until("Available", within=900)
            await _claimed(w, "c2")
            requests = len(w.bmc.writes())
            await _restore(w, backups["booted"], parts)
            await w.restart()
            await asyncio.sleep(1000)
            server = await w.server()
            assert _is_untouched(w, requests)
            assert (server.status.wait.for_ if server.status.wait is not None else None) == wait
            if wait is None:
                assert server.spec.server_claim_ref is not None
                assert server.spec.server_claim_ref.name == "c2"


async def _by_the_former_version(w: World, _: Backup) -> None:
    """The status is that of the former version, which recorded the same in other fields."""
    known = (await w.server()).status.tenancy
    old = {"tenancy": None, "tenant": known.uid, "claimBoot": msgspec.to_builtins(known.boot), "tenantServed": True}
    await w.client.patch_status(KINDS.server, "s1", {"status": old})


async def _by_a_backup(w: World, backup: Backup) -> None:
    """Reference, annotation and status are those from before the claim."""
    now = await _backup(w)
    await w.client.patch(KINDS.server, "s1", {"spec": {"serverClaimRef": None}})
    change = _change(now["annotations"], backup["annotations"])
    await w.client.patch(KINDS.server, "s1", {"metadata": {"annotations": change}})
    await w.client.patch_status(KINDS.server, "s1", {"status": _change(now["status"], backup["status"])})


async def _by_hand(w: World, _: Backup) -> None:
    """A record without a tenant is written over the present one."""
    none = {"data": "Clean", "claimRef": None, "boot": None, "policy": ""}
    await w.client.patch_status(KINDS.server, "s1", {"status": {"tenancy": none}})


@pytest.mark.parametrize("write", [_by_the_former_version, _by_a_backup, _by_hand])
async def test_two_managers_at_once_correct_a_record_and_change_no_machine(
    write: Callable[[World, Backup], Awaitable[None]],
) -> None:
    """Each of their writes is guarded; the record names the claim afterwards, whose end erases the data."""
    async with world(**SETTINGS) as w:
        around, w.disks = Surroundings(w), [DISK]
        await w.add_server()
        async with around.acting():
            backups = await _claimed(w)
            requests, second = len(w.bmc.writes()), w._runtime(9)
            await second.start()
            await write(w, backups["Available"])
            await asyncio.sleep(1000)
            server, claim = await w.server(), await w.claim()
            assert _is_untouched(w, requests)
            assert (server.status.state, server.status.tenancy.uid) == ("Reserved", claim.metadata.uid)
            assert (server.spec.server_claim_ref is not None, claim.status.phase) == (True, "Bound")
            await second.stop(grace=0.0)
            await w.client.delete(KINDS.claim, "c1", "default")
            await _is_erased(w)


async def _restored_before(w: World, point: str, *, powered: PowerState = PowerState.ON) -> int:
    """The whole Server is from this point before the boot of c1, and c1 is gone. Returns the requests so far."""
    backups = await _claimed(w)
    w.bmc.power = powered
    requests = len(w.bmc.writes())
    await _restore(w, backups[point], ALL)
    await w.client.delete(KINDS.claim, "c1", "default")
    await w.restart()
    return requests


@pytest.mark.behaviour(
    "Cleanup",
    "A Server that is older than its last tenancy, annotations included, is corrected from the Lease of its machine, "
    "and an administrator decides.",
)
@pytest.mark.parametrize("powered", [PowerState.ON, PowerState.OFF])
async def test_a_server_restored_from_before_a_claim_that_is_gone_is_not_given_away(powered: PowerState) -> None:
    """It is in Error, untouched, with the claim named; operation=retry erases it."""
    async with world(**SETTINGS) as w:
        around, w.disks = Surroundings(w), [DISK]
        await w.add_server()
        async with around.acting():
            requests = await _restored_before(w, "Available", powered=powered)
            await w.until("Error")
            await w.add_claim("c2")
            await asyncio.sleep(1000)
            server = await w.server()
            assert w.bmc.power == powered
            assert set(w.bmc.writes()[requests:]) <= {"clear_boot_override"}
            assert (server.status.state, server.spec.server_claim_ref) == ("Error", None)
            assert server.status.failure is not None
            assert server.status.failure.reason == "StatusOutdated"
            assert "default/c1" in server.status.failure.message
            assert "To erase the data: kubectl annotate servers s1" in server.status.failure.message
            assert "To try again" not in server.status.failure.message
            assert server.status.waiting_for == (
                "StatusOutdated: the status was restored from before the claim default/c1, which does not exist"
            )
            assert server.status.tenancy.data == "Dirty"
            await w.client.delete(KINDS.claim, "c2", "default")
            await w.client.patch(KINDS.server, "s1", {"metadata": {"annotations": RETRY}})
            await w.until_true(lambda s: s.status.tenancy.data == "Erasing", within=900)
            await _is_erased(w)
            assert await _copy(w) is None


@pytest.mark.behaviour(
    "Cleanup",
    "When an administrator keeps the data of a restored Server for a new claim, that claim becomes Ready without a "
    "network boot.",
)
async def test_a_restored_server_is_kept_for_a_new_claim() -> None:
    """As the failure says: a claim, spec.serverClaimRef, the UID in the record, retry. The boot counts as assumed."""
    async with world(**SETTINGS) as w:
        around, w.disks = Surroundings(w), [DISK]
        await w.add_server()
        async with around.acting():
            requests = await _restored_before(w, "Available")
            await w.until("Error")
            await w.add_claim("c3", serverRef={"name": "s1"})
            await _is_kept_for(w, "c3", requests)


async def test_the_data_of_a_former_tenant_is_kept_for_the_claim_that_the_administrator_names() -> None:
    """The wait FormerTenant of a restored record says what to set; the claim is Ready then, without a network boot."""
    async with world(**SETTINGS) as w:
        around, w.disks = Surroundings(w), [DISK]
        await w.add_server()
        async with around.acting():
            backups = await _claimed(w)
            await w.client.delete(KINDS.claim, "c1", "default")
            await w.until("Cleanup")
            await w.until("Available", within=900)
            await _claimed(w, "c2")
            requests = len(w.bmc.writes())
            await _restore(w, backups["booted"], ("status",))
            await w.restart()
            await w.until_true(_awaits_decision)
            await _is_kept_for(w, "c2", requests)


async def test_the_data_of_a_claim_that_was_created_again_is_kept_as_its_server_says() -> None:
    """The claim has another UID after it was deleted and applied again while no manager ran: nothing is erased."""
    async with world(**SETTINGS) as w:
        around, w.disks = Surroundings(w), [DISK]
        await w.add_server()
        async with around.acting():
            await _claimed(w)
            requests = len(w.bmc.writes())
            await w.runtime.stop(grace=0.0)
            await w.client.patch(KINDS.claim, "c1", {"metadata": {"finalizers": None}}, "default")
            await w.client.delete(KINDS.claim, "c1", "default")
            await w.add_claim(serverRef={"name": "s1"})
            await w.restart()
            await w.until_true(_awaits_decision)
            await _is_kept_for(w, "c1", requests)


def _awaits_decision(server: Server) -> bool:
    return server.status.wait is not None and server.status.wait.for_ == "FormerTenant"


async def _is_kept_for(w: World, claim: str, requests: int) -> None:
    """An administrator writes the UID of the claim into the record: it is Ready, and the machine is not changed."""
    uid = (await w.claim(claim)).metadata.uid
    ref = {"namespace": "default", "name": claim}
    await w.client.patch(KINDS.server, "s1", {"spec": {"serverClaimRef": ref}})
    await w.client.patch_status(KINDS.server, "s1", {"status": {"tenancy": {"claimRef": {"uid": uid}}}})
    await w.client.patch(KINDS.server, "s1", {"metadata": {"annotations": RETRY}})
    await w.until_claim(lambda c: c.status.phase == "Bound" and conditions.is_true(c.status.conditions, "Ready"), claim)
    await asyncio.sleep(1000)
    server, evidence = await w.server(), await w.evidence()
    known = server.status.tenancy
    assert (server.status.state, _is_untouched(w, requests), len(evidence)) == ("Reserved", True, claim == "c2")
    assert conditions.is_true(server.status.conditions, "BootAssumed")
    assert known.claim_ref is not None
    assert (known.claim_ref.uid, known.claim_ref.name, known.data) == (uid, claim, "Dirty")
    assert uid in (await _copy(w) or "")


async def _copy(w: World) -> str | None:
    """What the Lease of the machine has of the tenancy."""
    server = await w.server()
    lease = await w.client.get(LEASE, lease_name(identity_of(server, KINDS).key), "metal-system")
    return lease.metadata.annotations.get(KINDS.key("tenancy"))


async def test_a_machine_that_runs_a_later_claim_is_not_reported_as_switched_on_by_others() -> None:
    """The manager ran during the restore, so that the record counts as compared; the power shows the difference."""
    async with world(**SETTINGS) as w:
        around, w.disks = Surroundings(w), [DISK]
        await w.add_server()
        async with around.acting():
            await w.until("Available")
            await asyncio.sleep(2000)
            lease, since = lease_name(identity_of(await w.server(), KINDS).key), "2026-01-01T00:20:00Z"
            later = {"data": "Dirty", "claimRef": {"namespace": "default", "name": "c1", "uid": "gone"}, "since": since}
            copy = {"metadata": {"annotations": {KINDS.key("tenancy"): json.dumps(later)}}}
            await w.client.patch(LEASE, lease, copy, "metal-system")
            w.bmc.power = PowerState.ON
            await w.until("Error", within=900)
            seen = await reasons(w)
            assert ("StatusOutdated" in seen, "UnexpectedPower" in seen) == (True, False)
            assert w.bmc.power == "On"


async def test_a_record_from_before_the_boot_of_its_claim_does_not_count_as_nothing_served() -> None:
    """The restored record names the claim and no boot; the Lease knows of the boot, so the data is erased."""
    async with world(**SETTINGS) as w:
        around, w.disks = Surroundings(w), [DISK]
        await w.add_server()
        async with around.acting():
            await _restored_before(w, "Reserved")
            await w.until_true(lambda s: s.status.tenancy.data == "Erasing", within=900)
            await _is_erased(w)


async def test_nothing_knows_of_a_claim_when_the_lease_is_restored_too() -> None:
    """Status, annotations and Lease are all older than the claim, which is gone: docs/backup.md says what to do."""
    async with world(**SETTINGS) as w:
        around, w.disks = Surroundings(w), [DISK]
        await w.add_server()
        async with around.acting():
            backups = await _claimed(w)
            await _restore(w, backups["Available"], ALL)
            lease = lease_name(identity_of(await w.server(), KINDS).key)
            old = {"metadata": {"annotations": {KINDS.key("tenancy"): None}}}
            await w.client.patch(LEASE, lease, old, "metal-system")
            await w.client.delete(KINDS.claim, "c1", "default")
            await w.restart()
            await asyncio.sleep(1000)
            assert (await w.server()).status.state == "Available"
            assert await w.evidence() == []


async def test_a_claim_that_exists_gets_its_server_back_from_the_lease() -> None:
    """Its boot had begun and is not in its condition Booted yet; nothing is erased, and the boot is done."""
    async with world(**SETTINGS) as w:
        around, w.disks = Surroundings(w), [DISK]
        await w.add_server()
        async with around.acting():
            await w.until("Available")
            await w.until_true(lambda s: not s.status.waiting_for)
            backup = await _backup(w)
            await w.add_claim()
            await w.until_true(lambda s: s.status.tenancy.data == "Dirty")
            await _restore(w, backup, ALL)
            await w.restart()
            await w.until_true(_runs, within=900)
            claim = await w.claim()
            assert "StatusOutdated" in await reasons(w)
            assert ((await w.server()).status.tenancy.uid, claim.status.phase) == (claim.metadata.uid, "Bound")
            assert await w.evidence() == []


async def test_the_lease_is_written_twice_in_a_tenancy() -> None:
    """Once before the machine is touched for the claim, and once when its data is erased."""
    async with world(**SETTINGS) as w:
        around, w.disks, writes = Surroundings(w), [DISK], list[tuple[bool, str]]()

        async def count(what: str, when: str) -> None:
            if "Lease" in what and when == "after":
                writes.append((bool(await _copy(w)), w.bmc.power))

        await w.add_server()
        async with around.acting():
            await w.until("Available")
            await w.until_true(lambda s: not s.status.waiting_for)
            w.tap.trap = count
            await w.add_claim()
            await w.until_true(_runs, within=900)
            await asyncio.sleep(1000)
            await w.client.delete(KINDS.claim, "c1", "default")
            await w.until("Cleanup")
            await _is_erased(w)
            await asyncio.sleep(1000)
        assert writes == [(True, "Off"), (False, "Off")]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("claim_exists", [True, False])
async def test_a_manager_killed_around_a_write_of_the_lease_loses_nothing(when: str, claim_exists: bool) -> None:
    """At the begin and at the end of a tenancy: the next manager continues, and no record counts as outdated."""
    async with world(**SETTINGS) as w:
        around, w.disks, reached = Surroundings(w), [DISK], asyncio.Event()

        async def kill(what: str, moment: str) -> None:
            if "Lease" in what and moment == when and not reached.is_set():
                reached.set()
                await asyncio.Event().wait()

        await w.add_server()
        async with around.acting():
            await w.until("Available")
            await w.until_true(lambda s: not s.status.waiting_for)
            await w.add_claim()
            if claim_exists:
                w.tap.trap = kill
                await reached.wait()
                await w.restart()
            await w.until_true(_runs, within=900)
            assert await _copy(w)
            await w.client.delete(KINDS.claim, "c1", "default")
            if not claim_exists:
                w.tap.trap = kill
                await reached.wait()
                await w.restart()
            await w.until("Available", within=900)
            assert await _copy(w) is None
            assert "StatusOutdated" not in await reasons(w)
            assert [one.status.phase for one in await w.evidence()] == ["Succeeded"]
