"""The queue of maintenances for a server: which is next, which lacks approval, and what is cleaned up."""

import asyncio
from typing import Any

import pytest

from metal.api.core import NAMESPACE
from metal.api.maintenance import ServerMaintenance
from metal.kube.client.errors import NotFound
from metal.kube.meta.conditions import find
from tests.controllers.server.steps import claimed_and_booted, maintain, operate, reasons
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime
NEEDED, APPROVED = KINDS.key("maintenance-needed"), KINDS.key("maintenance-approved")
OWNER: dict[str, Any] = {"policy": "OwnerApproval"}


async def until(w: World, state: str, reason: str, name: str = "m1") -> ServerMaintenance:
    """Wait in virtual time for this state and reason."""
    for _ in range(1200):
        found = await w.client.get(KINDS.maintenance, name, "default")
        why = find(found.status.conditions, "InMaintenance")
        if why is not None and (found.status.state, why.reason) == (state, reason):
            return found
        await asyncio.sleep(0.25)
    raise AssertionError(found.status)


async def approve(w: World) -> None:
    await w.client.patch(KINDS.claim, "c1", {"metadata": {"labels": {APPROVED: "true"}}}, "default")


async def holder(w: World) -> str:
    ref = (await w.server()).spec.server_maintenance_ref
    return ref.name if ref else ""


@pytest.mark.behaviour(
    "ServerMaintenance", "A free server is taken at once with the default policy OwnerApproval and priority 0."
)
async def test_a_free_server_is_taken_at_once_whatever_the_policy() -> None:
    """The default policy is OwnerApproval, and a free server has no owner."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        body: dict[str, Any] = {
            "metadata": {"name": "m1", "namespace": "default"},
            "spec": {"serverRef": {"name": "s1"}},
        }
        made = await w.client.create(KINDS.maintenance, body)
        await until(w, "InMaintenance", "InMaintenance")
        server = await w.until("Maintenance")
    assert (made.spec.policy, made.spec.priority) == ("OwnerApproval", 0)
    assert server.spec.server_maintenance_ref is not None


@pytest.mark.behaviour(
    "ServerMaintenance",
    "A maintenance for a Server that does not exist is Pending, and takes the Server once it exists.",
)
async def test_a_maintenance_for_a_server_that_is_missing_waits_for_it() -> None:
    """It is Pending with the server's name, and is assigned the server when it is created."""
    async with world() as w:
        await maintain(w)
        waiting = await until(w, "Pending", "ServerNotFound")
        await w.add_server()
        await w.until("Maintenance")
        await until(w, "InMaintenance", "InMaintenance")
    assert "s1" in waiting.status.waiting_for


@pytest.mark.behaviour(
    "ServerMaintenance", "The owner of a claim is asked by a label with the reason; work starts after the approval."
)
async def test_the_owner_of_a_claim_is_asked_and_answers() -> None:
    """The claim is labelled with the reason; nothing happens before the approval; at the end the labels are removed."""
    async with world() as w:
        await claimed_and_booted(w)
        note = {"metadata": {"annotations": {KINDS.key("reason"): "new DIMM"}}}
        await maintain(w, **OWNER)
        await w.client.patch(KINDS.maintenance, "m1", note, "default")
        await until(w, "Pending", "ApprovalMissing")
        asked = await w.until_claim(lambda c: KINDS.key("maintenance-reason") in c.metadata.annotations)
        await asyncio.sleep(300)
        before = (await w.server()).status.state
        await approve(w)
        await until(w, "InMaintenance", "InMaintenance")
        await maintain(w, on=False)
        claim = await w.until_claim(lambda c: NEEDED not in c.metadata.labels)
        await w.until("Reserved")
    assert asked.metadata.labels[NEEDED] == "true"
    assert asked.metadata.annotations[KINDS.key("maintenance-reason")] == "new DIMM"
    assert before == "Reserved"
    assert APPROVED not in claim.metadata.labels
    assert KINDS.key("maintenance-reason") not in claim.metadata.annotations
    assert (w.bmc.network_boots, w.bmc.disk_boots) == (2, 0)


async def test_an_enforced_maintenance_asks_nobody_and_tells_the_claim() -> None:
    """The claim has label and condition; no approval is needed."""
    async with world() as w:
        await claimed_and_booted(w)
        await maintain(w)
        found = await until(w, "InMaintenance", "InMaintenance")
        claim = await w.claim()
    approved = find(found.status.conditions, "Approved")
    assert approved is not None
    assert (approved.status, approved.reason) == ("True", "Enforced")
    assert claim.metadata.labels[NEEDED] == "true"


@pytest.mark.behaviour(
    "ServerMaintenance",
    "Enforced counts as OwnerApproval in a namespace that the configuration does not name.",
)
async def test_enforced_from_a_namespace_that_is_not_named_does_not_touch_another_tenants_machine() -> None:
    """The running machine is not rebooted; the condition Approved says why and what helps; with approval it goes on."""
    async with world() as w:
        await claimed_and_booted(w)
        boots = w.bmc.network_boots
        await w.client.create(NAMESPACE, {"metadata": {"name": "team"}})
        template = {"name": "x", "spec": {"serverRef": {"name": "s1"}, "image": "ghcr.io/evil/os:1"}}
        spec = {
            "policy": "Enforced", "serverRef": {"name": "s1"}, "priority": 100,
            "serverBootConfigurationTemplate": template,
        }  # fmt: skip
        await w.client.create(KINDS.maintenance, {"metadata": {"name": "m1", "namespace": "team"}, "spec": spec})
        await asyncio.sleep(300)
        found = await w.client.get(KINDS.maintenance, "m1", "team")
        state, after = (await w.server()).status.state, w.bmc.network_boots
        await approve(w)
        await w.until("Maintenance")
    approved = find(found.status.conditions, "Approved")
    assert approved is not None
    assert (approved.status, approved.reason, found.status.state) == ("False", "EnforcedNotAllowed", "Pending")
    assert "add team to maintenance.enforcedNamespaces" in approved.message
    assert (state, after) == ("Reserved", boots)


@pytest.mark.behaviour(
    "ServerMaintenance", "Maintenances of a server run one at a time; Enforced does not displace a running one."
)
async def test_an_enforced_one_does_not_steal_a_server_that_is_being_maintained() -> None:
    """One maintenance at a time, regardless of priority; those that wait report which one is ahead."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await maintain(w, **OWNER)
        await until(w, "InMaintenance", "InMaintenance")
        await maintain(w, name="m2", priority=100)
        waiting = await until(w, "Pending", "Queued", "m2")
        held = await holder(w)
    assert held == "m1"
    assert "default/m1" in waiting.status.waiting_for


@pytest.mark.behaviour(
    "ServerMaintenance", "A server stays in Maintenance while queued maintenances follow, highest priority first."
)
async def test_the_server_stays_in_maintenance_across_the_queue_in_its_order() -> None:
    """It is reassigned in one write, highest priority first, without a state in between; at the end it is free."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await maintain(w)
        await until(w, "InMaintenance", "InMaintenance")
        await maintain(w, name="low")
        await maintain(w, name="high", priority=5)
        await until(w, "Pending", "Queued", "high")
        entered = (await w.server()).status.since
        await maintain(w, on=False)
        await until(w, "InMaintenance", "InMaintenance", "high")
        await maintain(w, on=False, name="high")
        await until(w, "InMaintenance", "InMaintenance", "low")
        between = (await w.server()).status.since
        await maintain(w, on=False, name="low")
        await w.until("Available")
    assert between == entered


@pytest.mark.behaviour(
    "ServerMaintenance", "A claimed server returns to its claim after the last approved maintenance."
)
async def test_a_claimed_server_returns_only_after_the_last_approved_maintenance() -> None:
    """One approval applies to all that wait; the label is removed with the last one."""
    async with world() as w:
        await claimed_and_booted(w)
        await maintain(w, **OWNER)
        await maintain(w, name="m2", **OWNER)
        await until(w, "Pending", "ApprovalMissing", "m2")
        await approve(w)
        await until(w, "InMaintenance", "InMaintenance")
        await until(w, "Pending", "Queued", "m2")
        entered = (await w.server()).status.since
        await maintain(w, on=False)
        await until(w, "InMaintenance", "InMaintenance", "m2")
        second, labels = await w.server(), (await w.claim()).metadata.labels
        await maintain(w, on=False, name="m2")
        await w.until("Reserved")
    assert second.status.since == entered
    assert APPROVED in labels


@pytest.mark.behaviour("ServerMaintenance", "A Cleanup is completed before a new maintenance starts.")
async def test_a_cleanup_that_is_owed_comes_before_a_new_maintenance() -> None:
    """The maintenance waits, and reports for what."""
    async with world() as w:
        await claimed_and_booted(w)
        w.bmc.ignores_graceful = True
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until("Cleanup")
        await maintain(w)
        await until(w, "Pending", "ServerInCleanup")
        await w.until("Maintenance")
        server = await w.server()
    assert server.status.tenancy.uid == ""


async def test_a_parked_server_is_not_maintained_before_it_is_unparked() -> None:
    """The operator does not manage a parked server, which includes maintenances."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await operate(w, "park")
        await w.until("Parked")
        await maintain(w)
        await until(w, "Pending", "ServerParked")
        await operate(w, "unpark")
        await until(w, "InMaintenance", "InMaintenance")


async def test_a_server_with_a_maintenance_is_not_bound() -> None:
    """A claim that waits gets it afterwards."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await maintain(w)
        await w.until("Maintenance")
        await w.add_claim()
        await asyncio.sleep(60)
        unbound = await w.claim()
        await maintain(w, on=False)
        await w.until_claim(lambda c: c.status.phase == "Bound")
    assert unbound.status.phase == "Unbound"


@pytest.mark.behaviour("ServerMaintenance", "A maintenance whose Server is gone can be deleted.")
async def test_a_maintenance_whose_server_is_gone_can_be_deleted() -> None:
    """Its finalizer is removed."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await maintain(w)
        await until(w, "InMaintenance", "InMaintenance")
        await w.client.delete(KINDS.server, "s1")
        await until(w, "Pending", "ServerNotFound")
        await maintain(w, on=False)
        await w.settle()
        with pytest.raises(NotFound):
            await w.client.get(KINDS.maintenance, "m1", "default")


@pytest.mark.behaviour(
    "ServerMaintenance", "A maintenance that was deleted without its finalizer does not hold its server.", issues=(528,)
)
@pytest.mark.parametrize("down", [False, True])
async def test_a_maintenance_that_went_without_its_finalizer_holds_nobody(down: bool) -> None:
    """Reference and labels are removed, also when no manager was running at its deletion."""
    async with world() as w:
        await claimed_and_booted(w)
        await maintain(w)
        await until(w, "InMaintenance", "InMaintenance")
        if down:
            await w.runtime.stop(grace=0.0)
        await w.client.patch(KINDS.maintenance, "m1", {"metadata": {"finalizers": None}}, "default")
        await maintain(w, on=False)
        if down:
            await w.restart()
        await w.until("Reserved")
        await w.until_claim(lambda c: NEEDED not in c.metadata.labels)


@pytest.mark.behaviour(
    "ServerMaintenance", "After eight hours a maintenance gets the condition Overdue and an Event, and continues."
)
async def test_an_overdue_maintenance_raises_an_alert_and_goes_on() -> None:
    """After eight hours there is a condition and an Event; only its deletion ends it."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await maintain(w)
        await until(w, "InMaintenance", "InMaintenance")
        await asyncio.sleep(8 * 3600 - 60)
        early, before = await w.client.get(KINDS.maintenance, "m1", "default"), await reasons(w)
        await asyncio.sleep(120)
        found = await w.client.get(KINDS.maintenance, "m1", "default")
        server, told = await w.server(), await reasons(w)
    assert find(early.status.conditions, "Overdue") is None
    assert "Overdue" not in before
    overdue = find(found.status.conditions, "Overdue")
    assert overdue is not None
    assert (overdue.status, "Overdue" in told, server.status.state) == ("True", True, "Maintenance")


async def test_an_ignored_maintenance_is_left_alone() -> None:
    """operation=ignore keeps it from being assigned a server, not from deletion."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        body = {
            "metadata": {"name": "m1", "namespace": "default", "annotations": {KINDS.key("operation"): "ignore"}},
            "spec": {"serverRef": {"name": "s1"}},
        }
        await w.client.create(KINDS.maintenance, body)
        await asyncio.sleep(60)
        assert await holder(w) == ""
