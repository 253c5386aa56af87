"""Which BMCs may use a BMCSecret."""

import asyncio
from typing import Any

import pytest

from metal.api.bmc import BMC
from tests.controllers.rack import KINDS, Rack, condition, rack, ready, soon

pytestmark = pytest.mark.looptime
BOUND = KINDS.key("bound-to")
DECIDED = 660.0
"""After so many seconds a new object is not bound to a BMCSecret any more."""


async def refer(r: Rack, name: str, number: int, secret: str, **spec: Any) -> None:
    """A BMC object that refers to a BMCSecret."""
    access = {"ip": f"192.0.2.{number}", "macAddress": f"a0:b1:c2:00:00:{number:02x}"}
    whole = {"access": access, "bmcSecretRef": {"name": secret}, "protocol": {"name": "Redfish", "port": 443}, **spec}
    await r.user.create(KINDS.bmc, {"metadata": {"name": name}, "spec": whole})


async def until(r: Rack, name: str, reason: str) -> BMC:
    """Wait for the BMC's condition Ready to have this reason."""

    async def check() -> BMC | None:
        found = await r.bmc(name)
        return found if found.status.conditions and ready(found)[1] == reason else None

    found = await soon(check, within=300)
    assert isinstance(found, BMC)
    return found


@pytest.mark.behaviour(
    "BMCSecret", "A BMC that refers to a BMCSecret of another one gets no password: it is bound to its first user."
)
async def test_a_password_is_not_sent_to_the_address_of_another_bmc() -> None:
    """The right to create BMCs discloses no password; the condition names the field that allows it."""
    async with rack() as r:
        r.plug(1)
        await r.add_bmc(1)
        await until(r, "b1", "Connected")
        rogue = r.plug(9)
        await refer(r, "rogue", 9, "b1", tls={"insecureSkipVerify": True})
        refused = await until(r, "rogue", "SecretNotAllowed")
        await asyncio.sleep(600)
        bound = (await r.secret("b1")).metadata.annotations[BOUND]
    assert (rogue.calls, rogue.offered) == ([], "")
    assert bound == "b1"
    assert "BMCSecret b1 is bound to b1, so no password is sent for rogue: list all BMCs" in refused.status.waiting_for


async def test_the_rogue_object_may_wait_for_the_secret() -> None:
    """An object that is a minute older than the BMCSecret is bound to nothing."""
    async with rack() as r:
        rogue = r.plug(9)
        await refer(r, "rogue", 9, "b1")
        await asyncio.sleep(90)
        await r.add_secret("b1", "pw-factory")
        await until(r, "rogue", "SecretNotAllowed")
        await asyncio.sleep(300)
        annotations = (await r.secret("b1")).metadata.annotations
    assert rogue.calls == []
    assert BOUND not in annotations


@pytest.mark.behaviour(
    "BMCSecret",
    "A BMCSecret without `allowedBMCs` is bound only to an object that was created within ten minutes of it.",
)
async def test_an_old_secret_is_not_bound_to_the_first_bmc_that_names_it() -> None:
    """The right to create BMCs discloses no password of an unused BMCSecret; the condition has the command."""
    async with rack() as r:
        await r.add_secret("spare", "pw-factory")
        await asyncio.sleep(DECIDED)
        rogue = r.plug(9)
        await refer(r, "rogue", 9, "spare")
        refused = await until(r, "rogue", "SecretNotAllowed")
        await asyncio.sleep(600)
        annotations = (await r.secret("spare")).metadata.annotations
        before = list(rogue.calls)
        await r.user.patch(KINDS.bmc_secret, "spare", {"allowedBMCs": ["rogue"]})
        await until(r, "rogue", "Connected")
    assert (before, BOUND in annotations) == ([], False)
    command = 'kubectl patch bmcsecrets spare --type merge -p \'{"allowedBMCs":["rogue"]}\''
    assert command in refused.status.waiting_for
    assert command in condition(refused).message


async def test_a_secret_that_is_a_little_older_than_its_bmc_is_bound() -> None:
    """Objects of one roll-out are created within minutes, and bound also if no manager ran then."""
    async with rack(started=False) as r:
        r.plug(1)
        await r.add_secret("b1", "pw-factory")
        await asyncio.sleep(300)
        await refer(r, "b1", 1, "b1")
        await asyncio.sleep(DECIDED)
        await r.start()
        await until(r, "b1", "Connected")


async def test_an_old_bmc_that_is_connected_changes_to_no_old_secret() -> None:
    """The right to patch BMCs discloses no password of an unused BMCSecret either."""
    async with rack() as r:
        rogue = r.plug(9)
        await r.add_bmc(9)
        await until(r, "b9", "Connected")
        await r.add_secret("spare", "pw-spare")
        await asyncio.sleep(DECIDED)
        await r.user.patch(KINDS.bmc, "b9", {"spec": {"bmcSecretRef": {"name": "spare"}}})
        await until(r, "b9", "SecretNotAllowed")
        await asyncio.sleep(600)
    assert rogue.offered == "pw-factory"


async def test_a_bmc_that_was_connected_before_an_upgrade_keeps_a_secret_that_is_much_older() -> None:
    """The earlier version bound nothing, and its BMCs go on."""
    async with rack(started=False) as r:
        r.plug(1)
        await r.add_secret("b1", "pw-factory")
        await asyncio.sleep(DECIDED)
        await refer(r, "b1", 1, "b1")
        await r.user.patch_status(KINDS.bmc, "b1", {"status": {"manufacturer": "Contoso", "state": "Enabled"}})
        await r.start()
        await until(r, "b1", "Connected")


async def test_two_new_bmcs_with_one_secret_wait_for_a_decision() -> None:
    """Neither gets the password; `allowedBMCs` with both names solves it."""
    async with rack(started=False) as r:
        one, two = r.plug(1), r.plug(2)
        await r.add_secret("shared", "pw-factory")
        await refer(r, "b1", 1, "shared")
        await refer(r, "b2", 2, "shared")
        await r.start()
        await until(r, "b1", "SecretNotAllowed")
        await until(r, "b2", "SecretNotAllowed")
        before = one.calls + two.calls
        await r.user.patch(KINDS.bmc_secret, "shared", {"allowedBMCs": ["b1", "b2"]})
        await until(r, "b1", "Connected")
        await until(r, "b2", "Connected")
        await r.user.patch(KINDS.bmc_secret, "shared", {"allowedBMCs": ["b2"]})
        refused = await until(r, "b1", "SecretNotAllowed")
    assert before == []
    assert "allowedBMCs of BMCSecret shared does not name b1" in refused.status.waiting_for


@pytest.mark.behaviour(
    "BMCSecret", "BMCs that were connected before an upgrade, or by the Go operator, keep their common BMCSecret."
)
async def test_bmcs_that_were_connected_before_share_their_secret() -> None:
    """All of them are bound; one that was never connected is not."""
    async with rack(started=False) as r:
        r.plug(1), r.plug(2)
        rogue = r.plug(9)
        await r.add_secret("shared", "pw-factory")
        for name, number in (("b1", 1), ("b2", 2), ("rogue", 9)):
            await refer(r, name, number, "shared")
        for name in ("b1", "b2"):
            await r.user.patch_status(KINDS.bmc, name, {"status": {"manufacturer": "Contoso", "state": "Enabled"}})
        await r.start()
        await until(r, "b1", "Connected")
        await until(r, "b2", "Connected")
        await until(r, "rogue", "SecretNotAllowed")
        bound = (await r.secret("shared")).metadata.annotations[BOUND]
    assert bound == "b1,b2"
    assert rogue.calls == []


async def test_a_secret_may_be_open_to_all() -> None:
    """With "*", as before."""
    async with rack() as r:
        r.plug(1), r.plug(2)
        await r.add_secret("shared", "pw-factory")
        await r.user.patch(KINDS.bmc_secret, "shared", {"allowedBMCs": ["*"]})
        await refer(r, "b1", 1, "shared")
        await refer(r, "b2", 2, "shared")
        await until(r, "b1", "Connected")
        await until(r, "b2", "Connected")


async def test_the_secret_of_an_enrolled_bmc_names_it() -> None:
    """Enrolment by DHCP writes the field."""
    async with rack() as r:
        r.plug(1)
        await r.lease(1)
        await soon(lambda: r.exists(KINDS.bmc, "e1"))
        found = await r.secret("e1")
    assert found.allowed_bmcs == ("e1",)


async def test_a_connected_bmc_does_not_wait_for_the_secret_of_another() -> None:
    """It was connected with a BMCSecret of its own, which proves nothing about one that it names in advance."""
    async with rack() as r:
        rogue = r.plug(9)
        await r.add_bmc(9)
        await until(r, "b9", "Connected")
        await r.user.patch(KINDS.bmc, "b9", {"spec": {"bmcSecretRef": {"name": "b1"}}})
        await until(r, "b9", "SecretNotFound")
        rogue.offered = ""
        r.plug(1)
        await r.add_bmc(1)
        await until(r, "b9", "SecretNotAllowed")
        await asyncio.sleep(600)
        before = (await r.secret("b1")).metadata.annotations
        await r.user.patch(KINDS.bmc_secret, "b1", {"allowedBMCs": ["b1"]})
        await until(r, "b1", "Connected")
    assert rogue.offered == ""
    assert BOUND not in before


async def test_a_connected_bmc_may_change_to_a_new_secret() -> None:
    """Credentials are rotated with a BMCSecret of another name, which exists when the BMC names it."""
    async with rack() as r:
        r.plug(1)
        await r.add_bmc(1)
        await until(r, "b1", "Connected")
        await asyncio.sleep(3600)
        await r.add_secret("b1-new", "pw-factory")
        await r.user.patch(KINDS.bmc, "b1", {"spec": {"bmcSecretRef": {"name": "b1-new"}}})
        await soon(lambda: _is_bound(r, "b1-new"), within=300)
        await asyncio.sleep(60)
        found = await r.bmc("b1")
    assert ready(found)[1] == "Connected"
    assert found.status.connected_secret == "b1-new"


async def _is_bound(r: Rack, name: str) -> bool:
    return (await r.secret(name)).metadata.annotations.get(BOUND) == "b1"
