"""The whole chain with simulated machines, in virtual time: from a BMC's lease to a tenant's system and back."""

import asyncio
from pathlib import Path

import pytest

from metal.api.core import CONFIG_MAP, SECRET
from metal.sim.options import Options
from tests.sim.plane import IGNITION, KINDS, OPTIONS, Plane, is_ready, plane

pytestmark = pytest.mark.looptime
SPEC_2 = IGNITION.replace("3.2.0", "2.3.0")


@pytest.mark.behaviour(
    "Server: discovery", "A DHCP lease of a BMC is enough: its server is discovered, switched off and Available."
)
async def test_a_lease_becomes_an_available_server() -> None:
    """A BMC's lease is enough: the server is found, discovered by the probe, and powered off."""
    async with plane(3) as world:
        await world.announce()
        await world.until_available(3)
        servers = await world.servers()
        assert {s.uuid for s in servers} == {m.identity.uuid for m in world.fleet.machines}
        assert [m.state.power for m in world.fleet.machines] == ["Off"] * 3
        assert all(s.status.network_interfaces[0].neighbors for s in servers)


async def test_the_configured_template_gives_each_bmc_its_dns_record(tmp_path: Path) -> None:
    """From the file that dnsRecordTemplate names, for BMCs that were found by their leases."""
    file = tmp_path / "dns.yaml"
    file.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'dns-{{ .Name }}'}\ndata: {A: {{ .IP }}}\n")
    async with plane(2, dns_record_template=str(file)) as world:
        await world.announce()
        await world.until_available(2)
        bmcs = (await world.client.list(KINDS.bmc)).items
        found = (await world.client.list(CONFIG_MAP, "metal-system")).items
    records = {one.metadata.name: one.data["A"] for one in found if one.metadata.name.startswith("dns-")}
    assert len(bmcs) == 2
    assert records == {f"dns-{bmc.metadata.name}": str(bmc.status.ip) for bmc in bmcs}


async def test_a_claim_gets_its_system_and_gives_the_server_back() -> None:
    """A claim's image and Ignition run on a server; without the claim the server is off and Available again."""
    async with plane(2) as world:
        await _claimed(world)
        (machine,) = world.tenants()
        await world.client.delete(KINDS.claim, "c1", "default")
        await world.until_available(2)
        assert machine.state.power == "Off"
        assert machine.state.disk.marker, "the policy None leaves the disk alone"


async def test_a_claim_boots_with_an_ignition_of_spec_2() -> None:
    """As Cluster API's kubeadm bootstrap provider writes it; before, such a server stayed off."""
    async with plane(1) as world:
        await world.announce()
        await world.until_available(1)
        body = {"metadata": {"name": "old", "namespace": "default"}, "stringData": {"ignition": SPEC_2}}
        await world.client.apply(SECRET, body, manager="test")
        await world.add_claim(ignitionSecretRef={"name": "old"})
        await world.until_claim(is_ready)
        await world.until_true(lambda: bool(world.tenants()), what="the tenant's system")


async def test_the_next_claim_gets_its_own_system() -> None:
    """A server that was given back runs the next claim's system, from the network, and not the last one's."""
    async with plane(1) as world:
        await _claimed(world)
        await world.client.delete(KINDS.claim, "c1", "default")
        await world.until_available(1)
        await world.add_claim("c2", image="images.sim/probe:latest")
        await world.until_claim(is_ready, "c2")
        await world.until_true(lambda: len(world.tenants()) == 1, what="the second tenant")
        boots = world.fleet.history.of(world.fleet.machines[0].identity.uuid, "os")
        images = [b.details["image"] for b in boots if b.details["kind"] == "tenant"]
        assert len(set(images)) == len(images) == 2


@pytest.mark.behaviour("Server: power and resets")
async def test_power_of_a_claim_goes_off_and_on_from_the_disk() -> None:
    """A claim that goes off and on again finds its system on the disk; the network serves it nothing more."""
    async with plane(1) as world:
        await _claimed(world)
        machine = world.fleet.machines[0]
        await world.client.patch(KINDS.claim, "c1", {"spec": {"power": "Off"}}, "default")
        await world.until_true(lambda: machine.state.power == "Off", what="off")
        await world.client.patch(KINDS.claim, "c1", {"spec": {"power": "On"}}, "default")
        await world.until_true(lambda: bool(world.tenants()), what="back from the disk")
        assert machine.state.os is not None
        assert machine.state.os.kind == "disk"


async def test_a_manager_that_is_killed_is_replaced_without_a_trace() -> None:
    """The manager is killed repeatedly during discovery and during a claim's boot; its successors finish the work."""
    async with plane(2) as world:
        await world.announce()
        for _ in range(6):
            await asyncio.sleep(7)
            await world.restart_manager()
        await world.until_available(2, within=4000)
        await world.add_claim()
        for _ in range(4):
            await asyncio.sleep(7)
            await world.restart_manager()
        await world.until_claim(is_ready, within=4000)


@pytest.mark.parametrize(
    "fault", ["stale_power", "ignores_graceful", "ignores_once", "http_5xx", "slow", "reports_late", "second_fetch"]
)
async def test_a_faulty_machine_gets_there_all_the_same(fault: str) -> None:
    """A transient fault costs time only: the machine is discovered, serves a claim, and is released."""
    async with plane(1, options=_with(stale=4.0, late=60.0)) as world:
        world.fleet.machines[0].faults.switch(fault)
        await world.announce()
        await world.until_available(1, within=4000)
        await world.add_claim()
        await world.until_claim(is_ready, within=4000)
        await world.until_true(lambda: len(world.tenants()) == 1, what="the tenant")
        await world.client.delete(KINDS.claim, "c1", "default")
        await world.until_available(1, within=4000)


@pytest.mark.parametrize(
    "fault", ["never_reports", "dies_after_script", "boots_disk", "drops_override", "ignores_reset"]
)
async def test_a_broken_machine_ends_in_error(fault: str) -> None:
    """A machine that never boots as requested ends in Error with a message, and another one is Available meanwhile."""
    async with plane(2) as world:
        broken, _ = world.fleet.machines
        broken.faults.switch(fault)
        await world.announce()
        await world.until_available(1, within=300)
        await world.until(lambda servers: any(s.status.state == "Error" for s in servers), within=12_000, what="Error")
        server = await world.server_of(broken)
        assert server is not None
        assert server.status.failure is not None
        assert server.status.failure.message


@pytest.mark.parametrize("fault", ["dead", "hangs", "wrong_password"])
async def test_a_silent_bmc_delays_nobody(fault: str) -> None:
    """One unusable BMC in ten does not affect the others."""
    async with plane(10) as world:
        world.fleet.machines[3].faults.switch(fault)
        await world.announce()
        await world.until_available(9, within=200)


async def test_a_bmc_that_dies_under_a_claim_leaves_the_tenant_alone() -> None:
    """A BMC that fails and recovers does not affect the tenant: no power change is sent to the machine."""
    async with plane(1) as world:
        await _claimed(world)
        machine = world.fleet.machines[0]
        before = len(world.fleet.history.of(machine.identity.uuid, "reset", "power"))
        machine.faults.dead = True
        await asyncio.sleep(3000)
        machine.faults.dead = False
        await asyncio.sleep(3000)
        assert len(world.fleet.history.of(machine.identity.uuid, "reset", "power")) == before
        assert world.tenants() == [machine]


async def test_an_off_from_before_the_power_on_is_not_believed() -> None:
    """A claim that is deleted while its machine is powered on leaves it off, although the BMC's Off is outdated."""
    async with plane(1, options=_with(stale=10.0)) as world:
        await world.announce()
        await world.until_available(1)
        await asyncio.sleep(60)
        machine = world.fleet.machines[0]
        machine.faults.stale_power = True
        await world.add_claim()
        await world.until_true(lambda: machine.state.power != "Off", what="switched on")
        await asyncio.sleep(2)
        await world.client.delete(KINDS.claim, "c1", "default")
        await world.until(lambda servers: servers[0].spec.server_claim_ref is None, what="released")
        await asyncio.sleep(200)
        assert machine.state.power == "Off"


async def test_the_same_seed_tells_the_same_story() -> None:
    """Two runs with one seed have the same history of machines, to the microsecond; another seed differs."""
    first, again, other = [await _story(seed) for seed in (1, 1, 2)]
    assert first == again
    assert first != other


async def _story(seed: int) -> list[str]:
    """The events of machines without the digest of the discovery Ignition, which contains a random token."""
    async with plane(3, seed=seed) as world:
        await world.announce()
        await world.until_available(3)
        entries = [entry for machine in world.fleet.machines for entry in world.fleet.history.of(machine.identity.uuid)]
    return [str(entry).replace(str(entry.details.get("ignition")), "") for entry in entries]


async def _claimed(world: Plane) -> None:
    await world.announce()
    await world.until_available(len(world.fleet.machines))
    await world.add_claim()
    await world.until_claim(is_ready)
    await world.until_true(lambda: len(world.tenants()) == 1, what="the tenant's system")


def _with(**options: float) -> Options:
    fields = {name: getattr(OPTIONS, name) for name in OPTIONS.__dataclass_fields__}
    return Options(**{**fields, **options})


async def test_another_api_group_changes_names_and_nothing_else() -> None:
    """A distribution under metal.openkcm.dev walks the whole chain: lease, Available, claim, system, and back."""
    async with plane(api_group="metal.openkcm.dev") as world:
        assert world.kinds.server.api_version == "metal.openkcm.dev/v1alpha1"
        await world.announce()
        await world.until_available(1)
        await world.add_claim()
        await world.until_claim(is_ready)
        await world.until_true(lambda: len(world.tenants()) == 1)
        await world.client.delete(world.kinds.claim, "c1", "default")
        await world.until_available(1)
