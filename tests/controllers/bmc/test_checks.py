"""The status of a BMC, and how often the BMC is contacted."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from metal.api.core import SECRET
from metal.bmc.errors import (
    BMCBusy,
    BMCError,
    BMCForbidden,
    BMCManagerNotFound,
    BMCNotFound,
    BMCProtocolError,
    BMCServerError,
    BMCTimeout,
    BMCTLSError,
    BMCUnreachable,
)
from metal.kube.client.errors import Conflict
from tests.controllers.rack import KINDS, NS, START, Rack, condition, rack, ready, soon, system

pytestmark = pytest.mark.looptime


async def until_ready(r: Rack, status: str = "True", name: str = "b1", *, within: float = 10.0) -> Any:
    """The BMC, once its Ready condition has this status."""

    async def check() -> Any:
        found = await r.bmc(name)
        return found if found.status.conditions and ready(found)[0] == status else None

    return await soon(check, within=within)


@pytest.mark.behaviour("BMC", "A BMC with inline `spec.access` is Ready and Enrolled, with the same status.")
async def test_a_bmc_with_inline_access_is_described() -> None:
    """Status shows address, identity, firmware, power and state; Ready and Enrolled are True."""
    async with rack() as r:
        r.plug(1)
        await r.add_bmc(1)
        bmc = await until_ready(r)
        events = await r.events()
    status = bmc.status
    assert (status.ip, status.mac_address) == ("192.0.2.1", "a0:b1:c2:00:00:01")
    assert (status.manufacturer, status.model, status.sku, status.serial_number, status.firmware_version) == (
        "Contoso", "Joo Janta 200", "PN-1", "SN-1", "1.45",
    )  # fmt: skip
    assert (status.state, status.power_state, status.waiting_for) == ("Enabled", "On", "")
    assert status.since is not None
    assert START <= status.since <= START + timedelta(seconds=2)
    assert status.last_reset_time == datetime(2025, 12, 31, 23, tzinfo=UTC)
    assert ready(bmc) == ("True", "Connected")
    assert condition(bmc, "Enrolled").message == "1 system has a Server"
    assert {("b1", "Connected"), ("b1", "ServerCreated")} <= set(events)


@pytest.mark.behaviour(
    "BMC", "A BMC with `spec.endpointRef` is Ready; its status shows identity, firmware, power and state."
)
async def test_a_bmc_behind_an_endpoint_is_described() -> None:
    """With endpointRef the address is that of the lease; the rest is what the BMC reports."""
    async with rack() as r:
        r.plug(7)
        await r.lease(7, name="lease")
        await r.add_bmc(7, access=None, endpointRef={"name": "lease"})
        bmc = await until_ready(r, name="b7")
    status = bmc.status
    assert (status.ip, status.mac_address) == ("192.0.2.7", "a0:b1:c2:00:00:07")
    assert (status.manufacturer, status.model, status.sku, status.serial_number, status.firmware_version) == (
        "Contoso", "Joo Janta 200", "PN-1", "SN-7", "1.45",
    )  # fmt: skip
    assert (status.state, status.power_state, ready(bmc)) == ("Enabled", "On", ("True", "Connected"))


@pytest.mark.behaviour(
    "BMC", "A healthy BMC is read once a minute with jitter; an hour of health costs no write to the API."
)
async def test_a_healthy_bmc_is_asked_at_a_jittered_interval_and_never_written() -> None:
    """It is checked about once a minute; an hour of health causes no write."""
    async with rack() as r:
        bmc = r.plug(1)
        await r.add_bmc(1)
        before = await until_ready(r)
        await asyncio.sleep(5)
        settled = await r.bmc()
        bmc.calls.clear()
        await asyncio.sleep(3600)
        after = await r.bmc()
    assert after.metadata.resource_version == settled.metadata.resource_version
    assert before.metadata.uid == after.metadata.uid
    assert 50 <= bmc.calls.count("systems") <= 75


@pytest.mark.behaviour(
    "BMC", "Each failure of a BMC sets Ready=False with its own reason; recovery is noticed within one interval."
)
@pytest.mark.parametrize(
    "failure",
    [
        BMCUnreachable("connection refused"), BMCTimeout("no answer within 20 s"), BMCTLSError("self-signed"),
        BMCServerError("500"), BMCBusy("503"), BMCProtocolError("not JSON"), BMCForbidden("no privilege"),
    ],
    ids=lambda failure: type(failure).__name__,
)  # fmt: skip
async def test_each_failure_has_its_reason_and_recovery_is_noticed(failure: BMCError) -> None:
    """Ready is False with reason and message, and True again within one interval after the BMC recovers."""
    async with rack() as r:
        bmc = r.plug(1)
        await r.add_bmc(1)
        await until_ready(r)
        bmc.failure = failure
        failed = await until_ready(r, "False", within=75)
        await asyncio.sleep(1000)
        bmc.failure = None
        back = await until_ready(r, within=75)
        events = await r.events()
    assert ready(failed) == ("False", failure.reason)
    assert str(failure) in condition(failed).message
    assert failed.status.state == "Error"
    assert "192.0.2.1" in failed.status.waiting_for
    assert (back.status.state, back.status.waiting_for) == ("Enabled", "")
    assert [event for event in events if event == ("b1", failure.reason)] == [("b1", failure.reason)]
    assert failed.status.serial_number == "SN-1"


async def test_a_bmc_that_hangs_ends_in_a_condition() -> None:
    """A BMC that accepts the connection and never answers ends the check with reason Timeout."""
    async with rack() as r:
        r.plug(1, hangs=True)
        await r.add_bmc(1)
        bmc = await until_ready(r, "False", within=60)
    assert ready(bmc) == ("False", "Timeout")


@pytest.mark.behaviour(
    "BMC", "BMCs that hang do not delay others: with four of forty hanging, the others have Servers within two seconds."
)
async def test_dead_bmcs_delay_nobody() -> None:
    """One BMC in ten hangs from the start: all others are Ready within two seconds."""
    async with rack() as r:
        for number in range(1, 41):
            r.plug(number, hangs=number % 10 == 0, present=(system(number),))
            await r.add_bmc(number)

        async def enrolled() -> bool:
            return len(await r.servers()) == 36

        await soon(enrolled, within=2.0)


@pytest.mark.behaviour(
    "BMC", "Wrong credentials are offered once until the BMCSecret changes; new ones are used within a second."
)
async def test_wrong_credentials_are_offered_once_until_they_change() -> None:
    """One login, then no further request; the right password is used within a second."""
    async with rack() as r:
        bmc = r.plug(1, password="right")
        await r.add_bmc(1, password="wrong")
        failed = await until_ready(r, "False")
        await asyncio.sleep(1800)
        await r.operate(KINDS.bmc, "b1", "whatever")
        await r.restart()
        await asyncio.sleep(1000)
        offered = list(bmc.logins)
        await r.user.patch(KINDS.bmc_secret, "b1", {"stringData": {"password": "right"}})
        await until_ready(r, within=1.0)
    assert ready(failed) == ("False", "AuthenticationFailed")
    assert "BMCSecret b1" in failed.status.waiting_for
    assert offered == ["wrong"]
    assert bmc.logins == ["wrong"]


async def test_wrong_credentials_get_another_chance_after_the_rest() -> None:
    """The account may have changed on the BMC: after an hour they are tried once more."""
    async with rack() as r:
        bmc = r.plug(1, password="right")
        await r.add_bmc(1, password="wrong")
        await asyncio.sleep(3600 * 5.5)
        assert 4 <= len(bmc.logins) <= 7
        bmc.password = "wrong"
        await asyncio.sleep(3600 * 1.3)
        assert ready(await r.bmc()) == ("True", "Connected")


async def test_retry_offers_them_at_once() -> None:
    """operation=retry serves administrators who changed the password on the BMC itself."""
    async with rack() as r:
        bmc = r.plug(1, password="right")
        await r.add_bmc(1, password="mine")
        await until_ready(r, "False")
        bmc.password = "mine"
        await r.operate(KINDS.bmc, "b1", "retry")
        back = await until_ready(r, within=1.0)
    assert KINDS.key("operation") not in back.metadata.annotations


async def test_a_missing_secret_is_awaited() -> None:
    """The condition names the BMCSecret; creating it is enough."""
    async with rack() as r:
        r.plug(1)
        await r.add_bmc(1, bmcSecretRef={"name": "later"})
        bmc = await until_ready(r, "False")
        await r.add_secret("later", "pw-factory")
        await until_ready(r)
    assert ready(bmc) == ("False", "SecretNotFound")
    assert bmc.status.state == "Pending"
    assert "BMCSecret later" in bmc.status.waiting_for


async def test_a_certificate_authority_is_read_from_its_secret() -> None:
    """tls.caSecretRef: when the Secret is created, its certificates reach every endpoint that names it."""
    async with rack(interval=10.0) as r:
        r.plug(1)
        await r.add_bmc(1, tls={"caSecretRef": {"name": "ca"}})
        bmc = await until_ready(r, "False")
        body = {"metadata": {"name": "ca", "namespace": NS}, "data": {"ca.crt": "UEVN"}}
        await r.user.create(SECRET, body)
        await until_ready(r, within=15)
    assert ready(bmc) == ("False", "CANotFound")
    assert r.defaults.authorities == {"ca": "PEM"}


@pytest.mark.behaviour("BMC", "A BMC without a readable manager still has Servers.", go="Reports an error.")
@pytest.mark.parametrize("failure", [BMCNotFound("no manager"), BMCForbidden("no privilege")])
async def test_a_bmc_without_a_readable_manager_still_has_systems(failure: BMCError) -> None:
    """Its Servers are there; the manufacturer is that of a system."""
    async with rack() as r:
        r.plug(1, manager_failure=failure)
        await r.add_bmc(1)
        bmc = await until_ready(r)
        assert await r.exists(KINDS.server, "b1-system-0")
    assert (bmc.status.manufacturer, bmc.status.state) == ("Contoso", "Enabled")


async def test_a_manager_that_is_asked_for_by_name_must_be_there() -> None:
    """A bmcUUID that no manager of the BMC has is a failure; no other manager is used."""
    async with rack() as r:
        r.plug(1, manager_failure=BMCManagerNotFound("no manager with UUID x"))
        await r.add_bmc(1, bmcUUID="x")
        bmc = await until_ready(r, "False")
        await asyncio.sleep(5)
        servers = await r.servers()
    assert ready(bmc) == ("False", "ManagerNotFound")
    assert servers == {}


@pytest.mark.parametrize("text", ["", "00:00:00", "yesterday"])
async def test_an_odd_time_of_the_last_reset_is_left_out(text: str) -> None:
    """Some BMCs report no date or an invalid one; the check succeeds without it."""
    async with rack() as r:
        bmc = r.plug(1)
        bmc.info = type(bmc.info)(uri="m", last_reset_time=text)
        await r.add_bmc(1)
        assert (await until_ready(r)).status.last_reset_time is None


async def test_ignored_bmcs_are_left_alone() -> None:
    """operation=ignore: no request is sent and nothing is written."""
    async with rack(started=False) as r:
        bmc = r.plug(1)
        await r.add_bmc(1)
        await r.operate(KINDS.bmc, "b1", "ignore")
        await r.start()
        await asyncio.sleep(600)
        left = await r.bmc()
    assert bmc.calls == []
    assert left.metadata.finalizers == ()
    assert left.status.state == ""


@pytest.mark.behaviour(
    "BMC", "Deleting a BMC deletes its Servers and drops its session; a hanging BMC does not block it."
)
@pytest.mark.parametrize("dead", [False, True])
async def test_deletion_logs_out_and_is_always_possible(dead: bool) -> None:
    """The session ends and the Servers are deleted with the BMC, also when the BMC hangs or the object is ignored."""
    async with rack() as r:
        bmc = r.plug(1)
        await r.add_bmc(1)
        await until_ready(r)
        assert KINDS.key("bmc") in (await r.bmc()).metadata.finalizers
        if dead:
            bmc.hangs = r.pool.drop_hangs = True
            await r.operate(KINDS.bmc, "b1", "ignore")
        await r.user.delete(KINDS.bmc, "b1")

        async def gone() -> bool:
            return not await r.exists(KINDS.bmc, "b1") and not await r.servers()

        await soon(gone, within=20)
    assert r.pool.dropped == ["b1"]


@pytest.mark.behaviour(
    "BMC", "`operation=graceful-restart-bmc` sends one reset, is removed, and is followed by Reset=False."
)
async def test_a_restart_is_asked_for_once_and_waited_for() -> None:
    """graceful-restart-bmc: one reset, the annotation is removed, no requests during the restart, then Reset=False."""
    async with rack() as r:
        bmc = r.plug(1)
        await r.add_bmc(1)
        await until_ready(r)
        await r.operate(KINDS.bmc, "b1", "graceful-restart-bmc")

        async def resetting() -> Any:
            found = await r.bmc()
            return found if found.status.state == "Pending" else None

        pending = await soon(resetting)
        await asyncio.sleep(1)
        asked = bmc.calls.count("reset_manager")
        bmc.calls.clear()
        bmc.failure = BMCUnreachable("restarting")
        await asyncio.sleep(25)
        quiet = list(bmc.calls)
        await asyncio.sleep(30)
        bmc.failure = None
        await until_ready(r, within=75)
        after = await r.bmc()
    assert (condition(pending, "Reset").status, condition(pending, "Reset").reason) == ("True", "UserRequested")
    assert KINDS.key("operation") not in pending.metadata.annotations
    assert quiet == []
    assert (condition(after, "Reset").status, condition(after, "Reset").reason) == ("False", "ResetComplete")
    assert (asked, bmc.calls.count("reset_manager")) == (1, 0)


async def test_a_restart_that_the_bmc_cannot_do_is_said_and_dropped() -> None:
    """A Warning Event is recorded, the annotation is removed, and there is no retry."""
    async with rack() as r:
        bmc = r.plug(1)
        await r.add_bmc(1)
        await until_ready(r)
        bmc.failure = BMCForbidden("the account may not reset")
        await r.operate(KINDS.bmc, "b1", "graceful-restart-bmc")
        await asyncio.sleep(5)
        after, events = await r.bmc(), await r.events()
    assert KINDS.key("operation") not in after.metadata.annotations
    assert ("b1", "ResetFailed") in events


async def test_a_conflict_is_tried_again() -> None:
    """Another client writes the BMC while its status is written: nothing is lost or overwritten."""
    async with rack() as r:
        r.plug(1)
        write, failures = r.client.patch_status, [Conflict("changed")]

        async def contested(kind: Any, *arguments: Any, **options: Any) -> Any:
            if failures and kind.kind == "BMC":
                raise failures.pop()
            return await write(kind, *arguments, **options)

        r.client.patch_status = contested  # type: ignore[method-assign]  # the API is busy
        await r.add_bmc(1)
        await until_ready(r)
        servers = await r.servers()
    assert failures == []
    assert list(servers) == ["b1-system-0"]
