"""Two BMC objects for one BMC: one is in charge, the other sends nothing."""

import asyncio
from dataclasses import replace

import pytest

from metal.kube.meta.conditions import find
from tests.controllers.rack import KINDS, Rack, condition, rack, ready, soon, system

pytestmark = pytest.mark.looptime


async def _second_object(r: Rack) -> None:
    """BMC b2 with the address of b1."""
    await r.add_secret("b2", "pw-factory")
    spec = {
        "access": {"ip": "192.0.2.1", "macAddress": "a0:b1:c2:00:00:01"}, "bmcSecretRef": {"name": "b2"},
        "protocol": {"name": "Redfish", "port": 443},
    }  # fmt: skip
    await r.user.create(KINDS.bmc, {"metadata": {"name": "b2"}, "spec": spec})


@pytest.mark.behaviour(
    "BMC", "Of two BMC objects for one BMC one is in charge; the other has condition DuplicateBMC and sends nothing."
)
async def test_a_second_object_with_the_same_address_sends_nothing() -> None:
    """It names the first one, which names it; it goes on once the first one is deleted."""
    async with rack(interval=10.0) as r:
        bmc = r.plug(1)
        await r.add_bmc(1)
        await soon(r.servers)
        await asyncio.sleep(2)
        used = len(r.pool.keys)
        await _second_object(r)
        await asyncio.sleep(60)
        first, second = await r.bmc("b1"), await r.bmc("b2")
        keys = set(r.pool.keys[used:])
        await r.user.delete(KINDS.bmc, "b1")
        await asyncio.sleep(90)
        freed, servers = await r.bmc("b2"), await r.servers()
    assert keys == {"b1"}
    assert (condition(second, "DuplicateBMC").status, condition(second, "DuplicateBMC").reason) == (
        "True", "OtherBMCInCharge",
    )  # fmt: skip
    assert "BMC b1 describes the same BMC" in condition(second, "DuplicateBMC").message
    assert ready(second) == ("False", "DuplicateBMC")
    assert condition(first, "DuplicateBMC").reason == "InCharge"
    assert "BMC b2" in condition(first, "DuplicateBMC").message
    assert ready(freed)[0] == "True"
    assert condition(freed, "DuplicateBMC").status == "False"
    assert "b2-system-0" in servers
    assert bmc.calls


async def test_the_object_whose_server_has_a_tenant_is_in_charge() -> None:
    """The address of an older object, whose Server has no tenant, leads to the other's BMC: it is not in charge."""
    async with rack(interval=10.0) as r:
        first_bmc = r.plug(1)
        second_bmc = r.plug(2, present=(system(2),))
        await r.add_bmc(1)
        await asyncio.sleep(5)
        await r.add_bmc(2)
        await asyncio.sleep(5)
        claim = {"spec": {"serverClaimRef": {"namespace": "default", "name": "c1"}}}
        await r.user.patch(KINDS.server, "b2-system-0", claim)
        first_bmc.info, first_bmc.present = replace(second_bmc.info), second_bmc.present
        await asyncio.sleep(60)
        first, second = await r.bmc("b1"), await r.bmc("b2")
    assert condition(first, "DuplicateBMC").reason == "OtherBMCInCharge"
    assert condition(second, "DuplicateBMC").reason == "InCharge"


async def test_an_object_whose_credentials_are_refused_does_not_keep_the_bmc_from_another() -> None:
    """It is the older one, so without a refusal it would be in charge."""
    async with rack(interval=10.0) as r:
        r.plug(1)
        await r.add_secret("b2", "wrong")
        spec = {
            "access": {"ip": "192.0.2.1", "macAddress": "a0:b1:c2:00:00:09"}, "bmcSecretRef": {"name": "b2"},
            "protocol": {"name": "Redfish", "port": 443},
        }  # fmt: skip
        await r.user.create(KINDS.bmc, {"metadata": {"name": "b2"}, "spec": spec})
        await asyncio.sleep(30)
        refused = await r.bmc("b2")
        await r.add_bmc(1)
        await asyncio.sleep(60)
        first, second = await r.bmc("b1"), await r.bmc("b2")
    assert ready(refused) == ("False", "AuthenticationFailed")
    assert ready(first)[0] == "True"
    assert ready(second)[0] == "False"


async def test_a_bmc_with_two_addresses_is_recognised_by_its_manager() -> None:
    """The same serial number and the same system; it is asked again after ten minutes only."""
    async with rack(interval=10.0) as r:
        first = r.plug(1)
        second = r.plug(2)
        second.info = replace(first.info)
        await r.add_bmc(1)
        await soon(r.servers)
        await r.add_bmc(2)
        await asyncio.sleep(5)
        said = condition(await r.bmc("b2"), "DuplicateBMC")
        asked = len(second.calls)
        await asyncio.sleep(500)
        rested = len(second.calls)
        second.info = replace(first.info, serial_number="other")
        second.present = (system(2),)
        await asyncio.sleep(200)
        freed, servers = await r.bmc("b2"), await r.servers()
    assert (said.status, said.reason) == ("True", "OtherBMCInCharge")
    assert rested == asked
    assert condition(freed, "DuplicateBMC").status == "False"
    assert "b2-system-0" in servers


async def test_managers_that_share_an_identity_and_show_different_systems_are_two() -> None:
    """Vendors ship managers with equal UUIDs or serial numbers."""
    async with rack(interval=10.0) as r:
        first, second = r.plug(1), r.plug(2, present=(system(2),))
        second.info = replace(first.info)
        await r.add_bmc(1)
        await r.add_bmc(2)
        await asyncio.sleep(60)
        servers, said = await r.servers(), await r.bmc("b2")
    assert len(servers) == 2
    assert find(said.status.conditions, "DuplicateBMC") is None
