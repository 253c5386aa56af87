"""Two Servers that describe one machine: one of them acts, the other sends nothing to the BMC."""

import asyncio

import pytest

from metal.api.core import LEASE
from metal.api.server import Server
from metal.bmc.errors import BMCUnreachable
from metal.kube.client.errors import NotFound
from metal.kube.meta import conditions
from metal.machine.uuids import spellings
from tests.controllers.fakebmc import UUID, FakeBMC
from tests.controllers.world import KINDS, NS, World, world

pytestmark = pytest.mark.looptime

OTHER = "11111111-2222-3333-4444-555555555502"
ASYMMETRIC = "1189d5f5-eca9-4fd2-87ce-98ef08a6bca7"
SHARED = "03000200-0400-0500-0006-000700080009"


def duplicate(server: Server, type: str = "DuplicateSystem") -> tuple[str, str, str]:
    """Status, reason and message of the condition."""
    found = conditions.find(server.status.conditions, type)
    return ("", "", "") if found is None else (found.status, found.reason, found.message)


async def claimed(w: World, uuid: str = UUID) -> None:
    """Server s1 runs the system of claim c1."""
    w.bmc.uuid = uuid
    await w.add_server(uuid=uuid)
    await w.discover()
    await w.add_claim()
    await w.boot_claim()
    await w.until_true(lambda s: not s.status.waiting_for)
    await asyncio.sleep(5)
    w.bmc.calls.clear()


@pytest.mark.behaviour(
    "Server: identity and inventory",
    "A second Server of a claimed machine sends nothing to the BMC and gets no claim; both have condition "
    "DuplicateSystem.",
)
@pytest.mark.parametrize("uuid", spellings(ASYMMETRIC), ids=["same", "bytes reversed"])
async def test_a_second_server_of_a_claimed_machine_does_nothing(uuid: str) -> None:
    """The tenant's machine keeps running; a second claim waits; the message says how to merge the two."""
    async with world() as w:
        await claimed(w, ASYMMETRIC)
        await w.add_server("s2", uuid=uuid.upper())
        await w.add_claim("c2", serverRef={"name": "s2"})
        second = await w.until_true(lambda s: duplicate(s)[0] == "True", "s2")
        await asyncio.sleep(900)
        first, second, claim = await w.server(), await w.server("s2"), await w.claim("c2")
    assert w.bmc.writes() == []
    assert (w.bmc.power.value, w.bmc.network_boots) == ("On", 2)
    assert duplicate(first)[:2] == ("True", "InCharge")
    assert "s2" in duplicate(first)[2]
    assert duplicate(second)[:2] == ("True", "OtherServerInCharge")
    assert "Server s1 describes the same machine" in duplicate(second)[2]
    assert "delete Server s2" in duplicate(second)[2]
    assert second.status.wait is not None
    assert (second.status.wait.for_, second.status.state) == ("DuplicateSystem", "")
    assert (claim.status.phase, first.status.state) == ("Unbound", "Reserved")


async def test_the_other_server_sends_no_reads() -> None:
    """Nothing at all reaches its BMC: it has one of its own here, so that its requests are told apart."""
    async with world() as w:
        await claimed(w)
        w.pool.bmcs["10.0.0.10"] = other = FakeBMC()
        await w.add_server("s2", address="10.0.0.10")
        await w.until_true(lambda s: duplicate(s)[0] == "True", "s2")
        await asyncio.sleep(3600)
    assert other.calls == []


async def test_the_duplicate_goes_on_when_the_other_was_deleted() -> None:
    """The elder is deleted while nothing of a tenant is on the machine: the other one is discovered."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await w.add_server("s2")
        await w.until_true(lambda s: duplicate(s)[0] == "True", "s2")
        await w.client.delete(KINDS.server, "s1")
        await w.until_gone(KINDS.server, "s1")
        second = await w.discover("s2")
        lease = await w.client.get(LEASE, f"system-{UUID}", NS)
    assert duplicate(second)[:2] == ("False", "NoDuplicate")
    assert lease.spec.holder_identity == "s2"


async def test_an_available_server_that_lost_its_machine_is_not_available() -> None:
    """A Server with a tenancy appears, as from a backup: the one without leaves Available, and is not bound."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await w.add_claim("c0", serverRef={"name": "s2"})
        await w.add_server("s2", serverClaimRef={"namespace": "default", "name": "c0"})
        first = await w.until_true(lambda s: duplicate(s)[1] == "OtherServerInCharge")
        await w.add_claim("c2", serverRef={"name": "s1"})
        await asyncio.sleep(120)
        first, claim = await w.server(), await w.claim("c2")
        lease = await w.client.get(LEASE, f"system-{UUID}", NS)
    assert first.status.state == "Initial"
    assert claim.status.phase == "Unbound"
    assert lease.spec.holder_identity == "s2"


async def test_of_two_with_a_recorded_tenant_neither_acts() -> None:
    """Neither is switched or erased, also after the claims are gone, until one Server is deleted."""
    async with world() as w:
        await claimed(w)
        await w.runtime.stop(grace=0.0)
        await w.add_server("s2")
        status = {"state": "Reserved", "tenant": "somebody", "since": "2026-01-01T00:00:00Z"}
        await w.client.patch_status(KINDS.server, "s2", {"status": status})
        await w.restart()
        w.bmc.calls.clear()
        await w.until_true(lambda s: duplicate(s)[1] == "NoServerInCharge")
        await w.until_true(lambda s: duplicate(s)[1] == "NoServerInCharge", "s2")
        await w.client.delete(KINDS.claim, "c1", "default")
        await asyncio.sleep(900)
        untouched = list(w.bmc.calls)
        await w.client.delete(KINDS.server, "s2")
        freed = await w.until_true(lambda s: s.status.state == "Available")
    assert untouched == []
    assert duplicate(freed)[1] == "NoDuplicate"


async def test_a_server_that_the_cache_does_not_show_yet_is_found_by_the_lease() -> None:
    """The Lease names another Server that exists: this one does not go on, although its cache shows no other."""
    async with world() as w:
        await w.runtime.stop(grace=0.0)
        await w.add_server()
        await asyncio.sleep(2)
        await w.add_server("s2")
        spec = {"holderIdentity": "s1", "acquireTime": "2026-01-01T00:00:00.000000Z"}
        meta = {"name": f"system-{UUID}", "namespace": NS}
        await w.client.create(LEASE, {"metadata": meta, "spec": spec})
        w.tap.hidden.add("s1")
        await w.restart()
        second = await w.until_true(lambda s: duplicate(s)[0] == "True", "s2")
        await asyncio.sleep(60)
    assert duplicate(second)[1] == "OtherServerInCharge"
    assert w.bmc.writes() == []


@pytest.mark.behaviour(
    "Server: identity and inventory",
    "A machine whose UUID is that of many and that has no serial number is not booted: condition IdentityAmbiguous.",
)
async def test_a_machine_that_nothing_identifies_waits_for_an_administrator() -> None:
    """After the annotation, it is discovered."""
    async with world() as w:
        w.bmc.uuid, w.bmc.serial = SHARED, "To be filled by O.E.M."
        await w.add_server(uuid=SHARED)
        waiting = await w.until_true(lambda s: duplicate(s, "IdentityAmbiguous")[0] == "True")
        await asyncio.sleep(600)
        assert w.bmc.writes() == []
        note = {"metadata": {"annotations": {KINDS.key("machine-id"): "rack-7-unit-3"}}}
        await w.client.patch(KINDS.server, "s1", note)
        found = await w.discover()
    assert waiting.status.wait is not None
    assert waiting.status.wait.for_ == "MachineIdentity"
    assert "machine-id" in waiting.status.waiting_for
    assert duplicate(found, "IdentityAmbiguous")[:2] == ("False", "Identified")


async def test_serial_numbers_decide_where_the_uuid_is_that_of_many() -> None:
    """Two machines with one vendor's default UUID and serial numbers of their own are two machines."""
    async with world() as w:
        w.bmc.uuid = SHARED
        w.pool.bmcs["10.0.0.10"] = other = FakeBMC(uuid=SHARED, serial="S2")
        await w.add_server(uuid=SHARED)
        await w.discover()
        await w.add_server("s2", uuid=SHARED, address="10.0.0.10")
        second = await w.discover("s2")
    assert other.network_boots == 1
    assert duplicate(second) == ("", "", "")


async def test_a_replaced_mainboard_does_not_interrupt_the_tenant() -> None:
    """New UUID, new BMC, the old serial number; the old BMC is gone: the new Server reads the inventory and waits.

    The way out keeps the claim: the old Server gets the new UUID and the new BMC, the new Server is deleted.
    """
    async with world() as w:
        await claimed(w)
        w.bmc.uuid = OTHER
        w.pool.bmcs["10.0.0.10"] = w.bmc
        w.pool.bmcs["10.0.0.9"] = FakeBMC(failure=BMCUnreachable("No connection"))
        await w.until_true(lambda s: duplicate(s, "BMCReachable")[0] == "False")
        await w.add_server("s2", uuid=OTHER, address="10.0.0.10")
        waiting = await w.until_true(lambda s: duplicate(s, "IdentityAmbiguous")[0] == "True", "s2")
        await asyncio.sleep(3600)
        assert w.bmc.writes() == []
        inline = {"address": "10.0.0.10", "bmcSecretRef": {"name": "s1-secret"}}
        await w.client.patch(KINDS.server, "s1", {"spec": {"systemUUID": OTHER, "bmc": inline}})
        await w.client.delete(KINDS.server, "s2")
        await w.until_gone(KINDS.server, "s2")
        kept = await w.until_true(lambda s: s.status.state == "Reserved" and not s.status.waiting_for, within=900)
        claim = await w.claim()
    assert "spec.systemUUID of Server s1" in waiting.status.waiting_for
    assert w.bmc.writes() == []
    assert (kept.status.power_state, claim.status.phase) == ("On", "Bound")


async def test_a_deleted_server_gives_its_lease_back() -> None:
    """The Lease of its machine is deleted with it."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        assert (await w.client.get(LEASE, f"system-{UUID}", NS)).spec.holder_identity == "s1"
        await w.client.delete(KINDS.server, "s1")
        await w.until_gone(KINDS.server, "s1")
        with pytest.raises(NotFound):
            await w.client.get(LEASE, f"system-{UUID}", NS)


async def swapped(w: World) -> FakeBMC:
    """The BMC of s1 is gone, and one at another address shows its machine with a new UUID, as Server s2."""
    w.pool.bmcs["10.0.0.10"] = new = FakeBMC(uuid=OTHER, power=w.bmc.power)
    w.bmc.failure = BMCUnreachable("no route to host")
    await w.add_server("s2", uuid=OTHER, address="10.0.0.10")
    return new


async def test_a_machine_that_changes_uuid_and_address_between_two_readings_is_not_booted() -> None:
    """The conditions of the tenant's Server still say that its BMC shows it: they are older than the new Server."""
    async with world() as w:
        await claimed(w)
        new = await swapped(w)
        await asyncio.sleep(1800)
        first, second = await w.server(), await w.server("s2")
    assert new.writes() == []
    assert duplicate(second, "IdentityAmbiguous")[:2] == ("True", "PossiblyReplacedMainboard")
    assert duplicate(first, "BMCReachable")[0] == "False"


async def test_a_machine_with_the_serial_number_of_a_claimed_one_is_enrolled_once_both_were_read() -> None:
    """Nodes of one chassis: the claimed one is read again, then the new one is discovered."""
    async with world() as w:
        await claimed(w)
        w.pool.bmcs["10.0.0.10"] = FakeBMC(uuid=OTHER)
        before = w.bmc.reads()
        await w.add_server("s2", uuid=OTHER, address="10.0.0.10")
        await w.until("Discovery", "s2", within=30)
        second = await w.server("s2")
    assert w.bmc.reads() > before
    assert duplicate(second, "IdentityAmbiguous")[0] != "True"
