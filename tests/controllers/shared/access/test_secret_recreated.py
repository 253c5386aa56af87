"""A BMCSecret is bound to objects, not to their names: what has the name of a deleted object is another one."""

import asyncio

import msgspec
import pytest

from tests.controllers.rack import KINDS, Rack, rack, ready, soon
from tests.controllers.shared.access.test_secret_use import BOUND, refer, until

pytestmark = pytest.mark.looptime
UIDS = KINDS.key("bound-uids")


async def _gone(r: Rack, name: str) -> bool:
    return not await r.exists(KINDS.bmc, name)


async def _delete(r: Rack, name: str) -> None:
    await r.user.delete(KINDS.bmc, name)
    await soon(lambda: _gone(r, name), within=60)


@pytest.mark.behaviour(
    "BMCSecret",
    "A BMC that is created with the name of a deleted one gets no password of its BMCSecret, unless `allowedBMCs` "
    "names it.",
)
async def test_a_bmc_with_the_name_of_a_deleted_one_gets_no_password() -> None:
    """The right to create BMCs is not enough; `allowedBMCs` is the way out, which the condition names."""
    async with rack() as r:
        r.plug(1)
        await r.add_bmc(1)
        await until(r, "b1", "Connected")
        await _delete(r, "b1")
        rogue = r.plug(9)
        await refer(r, "b1", 9, "b1", tls={"insecureSkipVerify": True})
        refused = await until(r, "b1", "SecretNotAllowed")
        await asyncio.sleep(600)
        before = list(rogue.calls)
        await r.user.patch(KINDS.bmc_secret, "b1", {"allowedBMCs": ["b1"]})
        await until(r, "b1", "Connected")
    assert before == []
    assert "bound to an earlier object b1, which was deleted" in refused.status.waiting_for
    assert "list b1 in allowedBMCs of the BMCSecret" in refused.status.waiting_for


async def test_a_bmc_that_was_connected_does_not_get_the_next_secret_of_the_same_name() -> None:
    """Its BMCSecret was deleted; the new one of this name may be for another BMC."""
    async with rack() as r:
        rogue = r.plug(9)
        await r.add_secret("b1", "pw-factory")
        await refer(r, "rogue", 9, "b1")
        await until(r, "rogue", "Connected")
        await asyncio.sleep(120)
        await r.user.delete(KINDS.bmc_secret, "b1")
        await until(r, "rogue", "SecretNotFound")
        rogue.offered = ""
        r.plug(1)
        await r.add_bmc(1)
        await until(r, "rogue", "SecretNotAllowed")
        await asyncio.sleep(600)
    assert rogue.offered == ""


async def test_the_uids_of_a_bound_secret_are_recorded_after_an_upgrade() -> None:
    """An earlier version wrote names only: the objects that exist then are bound."""
    async with rack() as r:
        r.plug(1)
        await r.add_bmc(1)
        await until(r, "b1", "Connected")
        await r.runtime.stop(grace=0.0)
        await r.user.patch(KINDS.bmc_secret, "b1", {"metadata": {"annotations": {UIDS: None}}})
        await r.start(2)
        await soon(lambda: _has_uids(r), within=60)
        secret, bmc = await r.secret("b1"), await r.bmc("b1")
    value = msgspec.json.decode(secret.metadata.annotations[UIDS])
    assert value == {"secret": secret.metadata.uid, "users": {"b1": bmc.metadata.uid}}
    assert secret.metadata.annotations[BOUND] == "b1"


async def _has_uids(r: Rack) -> bool:
    return UIDS in (await r.secret("b1")).metadata.annotations


async def test_a_secret_that_was_restored_with_its_users_is_bound_to_them_again() -> None:
    """Backup and move give all objects new UIDs; the names in the annotation count once more."""
    async with rack() as r:
        r.plug(1)
        await r.add_bmc(1)
        await until(r, "b1", "Connected")
        notes = (await r.secret("b1")).metadata.annotations
        await _delete(r, "b1")
        await r.user.delete(KINDS.bmc_secret, "b1")
        await asyncio.sleep(10)
        data = {"username": "factory", "password": "pw-factory"}
        body = {"metadata": {"name": "b1", "annotations": dict(notes)}, "stringData": data}
        await r.user.create(KINDS.bmc_secret, body)
        await refer(r, "b1", 1, "b1")
        await until(r, "b1", "Connected")
        await asyncio.sleep(300)
        found = await r.bmc("b1")
    assert ready(found)[1] == "Connected"
