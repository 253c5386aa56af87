"""A server's life from Initial to Available, through a claim, and back."""

import asyncio
import json

import pytest

from metal.api.common import LocalRef, ObjectRef
from metal.api.core import SECRET
from metal.api.server import Server
from metal.bmc.inventory import Drive, Storage
from tests.controllers.fakebmc import MAC, UUID
from tests.controllers.world import KINDS, NS, world

pytestmark = pytest.mark.looptime


@pytest.mark.behaviour(
    "Server: discovery",
    "A Server with inline `spec.bmc` is inventoried and gets the boot configuration of its discovery.",
)
async def test_a_new_server_is_inventoried_and_gets_its_discovery_boot_configuration() -> None:
    """Initial reads the BMC's inventory into status and asks for the probe's boot."""
    async with world() as w:
        await w.add_server()
        server = await w.until("Discovery")
        config = await w.config("s1")
    assert server.status.manufacturer == "Contoso"
    assert server.status.total_system_memory == "96Gi"
    assert server.status.processors[0].total_cores == 8
    assert server.status.network_interfaces[0].mac_address == MAC
    assert config.spec.image == "reg/probe:1"
    assert config.metadata.annotations["metal.ironcore.dev/type"] == "Internal"
    assert server.spec.boot_configuration_ref is not None


@pytest.mark.behaviour(
    "Server: discovery",
    "The Ignition of the discovery is generated once and holds no account and no SSH key.",
    go="Renders a template with an SSH key.",
)
async def test_the_discovery_ignition_runs_the_probe_and_holds_no_credentials() -> None:
    """It is generated, once for a discovery: no template, no account, no key that would have to be kept secret."""
    async with world() as w:
        await w.add_server()
        await w.until("Discovery")
        config = await w.config("s1")
        first = await w.client.get(SECRET, "s1", NS)
        await w.restart()
        await asyncio.sleep(600)
        later = await w.client.get(SECRET, "s1", NS)
    ignition = json.loads(first.data["ignition"])
    (unit,) = ignition["systemd"]["units"]
    assert config.spec.ignition_secret_ref is not None
    assert config.spec.ignition_secret_ref.name == "s1"
    assert f"--registry-url http://10.0.0.1:10000 --server-uuid {UUID}" in unit["contents"]
    assert ignition.keys() == {"ignition", "storage", "systemd"}
    assert first.metadata.resource_version == later.metadata.resource_version


@pytest.mark.behaviour(
    "Server: network boot", "A claimed machine is not touched until the boot configuration is Ready.", issues=(247,)
)
async def test_a_claims_machine_is_left_alone_until_its_boot_configuration_is_ready() -> None:
    """Reserved, but neither the power nor the boot override is touched before there is something to serve."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        w.bmc.calls.clear()
        await w.add_claim()
        await w.until("Reserved")
        await asyncio.sleep(120)
        waiting, writes = await w.server(), w.bmc.writes()
        await w.boot_claim()
    assert writes == []
    assert waiting.status.wait is not None
    assert waiting.status.wait.for_ == "BootConfiguration"


@pytest.mark.behaviour(
    "Server: discovery",
    "A discovery does not touch the machine until the boot configuration is Ready; the wait has a deadline.",
)
async def test_discovery_waits_for_the_boot_configuration_before_any_power_action() -> None:
    """While the boot configuration is not Ready the machine is left alone, and the wait has a name and a deadline."""
    async with world() as w:
        await w.add_server()
        await w.until("Discovery")
        await asyncio.sleep(60)
        server = await w.server()
        writes = w.bmc.writes()
    assert writes == []
    assert server.status.wait is not None
    assert server.status.wait.for_ == "BootConfiguration"
    assert server.status.wait.until is not None
    assert "ready" in server.status.waiting_for


@pytest.mark.behaviour(
    "Server: discovery",
    "After one network boot of the probe the server is Available and off, with the reported NICs, "
    "without boot configuration, override and report token.",
)
async def test_a_discovered_server_is_available_and_off() -> None:
    """The report of this boot makes the server Available, powered off, with the NICs that the probe saw."""
    async with world() as w:
        await w.add_server()
        server = await w.discover()
        configs = await w.client.list(KINDS.boot_config, NS)
    assert server.status.power_state == "Off"
    assert [(n.name, n.ips) for n in server.status.network_interfaces] == [("eth0", ("10.9.9.9",))]
    assert server.spec.boot_configuration_ref is None
    assert configs.items == ()
    assert w.bmc.network_boots == 1
    assert w.bmc.writes() == ["set_network_boot", "power_on", "graceful_off"]
    assert (w.bmc.power, w.bmc.boot.enabled) == ("Off", "Disabled")
    assert server.status.boot_window is not None
    assert server.status.boot_window.report_token_digest == ""


@pytest.mark.behaviour("Server: discovery", "A report is noticed at once, without polling.")
async def test_a_report_is_noticed_at_once() -> None:
    """No poll stands between the registry and the server's next step."""
    async with world(resync=100_000.0) as w:
        await w.add_server()
        await w.until("Discovery")
        await w.config_ready("s1")
        await w.until_true(lambda s: s.status.power_state == "On" and s.status.boot_window is not None)
        await w.fetch_script()
        await w.fetch_ignition()
        await asyncio.sleep(33)
        waiting = await w.server()
        await w.report()
        await asyncio.sleep(0.1)
        writes = w.bmc.writes()
    assert waiting.status.wait is not None
    assert waiting.status.wait.for_ == "ProbeReport"
    assert writes[-1] == "graceful_off"


@pytest.mark.behaviour(
    "Server: identity and inventory",
    "Drives and memory that the BMC does not report are taken from the probe's report.",
)
@pytest.mark.parametrize("tells", [False, True])
async def test_parts_that_the_bmc_does_not_tell_of_come_from_the_probe(tells: bool) -> None:
    """Drives and memory: the BMC's word goes first, and where it has none the probe's report fills in."""
    disk = {"name": "sda", "rotational": False, "sizeBytes": 1 << 40, "serial": "D1"}
    async with world() as w:
        if tells:
            w.bmc.storages = (Storage("RAID.1", drives=(Drive("0", serial_number="B1"),)),)
        else:
            w.bmc.memory = 0
        await w.add_server()
        await w.until("Discovery")
        await w.config_ready("s1")
        await w.until_true(lambda s: s.status.power_state == "On")
        await w.fetch_script()
        await w.fetch_ignition()
        await w.report(storage=[disk], memory=[{"size": 32 << 30}])
        status = (await w.until("Available")).status
    serials = [drive.serial_number for storage in status.storages for drive in storage.drives]
    assert serials == (["B1"] if tells else ["D1"])
    assert status.total_system_memory == ("96Gi" if tells else "32Gi")


@pytest.mark.behaviour(
    "Server: discovery",
    "A machine that is found running is switched off before its discovery boot.",
    go="Behind a flag.",
)
async def test_a_server_that_is_on_is_switched_off_before_its_discovery_boot() -> None:
    """A machine found running is booted into the probe, from off."""
    async with world() as w:
        w.bmc._arrive(w.bmc.power.ON)
        await w.add_server()
        await w.until("Discovery")
        await w.config_ready("s1")
        await w.until_true(lambda s: s.status.boot_window is not None)
        await asyncio.sleep(10)
    assert w.bmc.writes() == ["graceful_off", "set_network_boot", "power_on"]
    assert w.bmc.network_boots == 1


@pytest.mark.behaviour(
    "ServerClaim", "A claim is bound, boots its image once and is Ready; the boot configuration belongs to the claim."
)
async def test_a_claim_boots_its_image_once_and_is_ready() -> None:
    """Claim → bound → network boot → Ready; serverRef is filled in, and the boot configuration belongs to the claim."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await w.add_claim(ignitionSecretRef={"name": "ign"})
        server = await w.boot_claim()
        config = await w.config("c1", "default")
        claim = await w.until_claim(
            lambda c: any(x.type == "Ready" and x.status == "True" for x in c.status.conditions)
        )
    assert server.status.state == "Reserved"
    assert claim.status.phase == "Bound"
    assert claim.spec.server_ref is not None
    assert claim.spec.server_ref.name == "s1"
    assert w.bmc.network_boots == 2
    assert server.spec.boot_configuration_ref == ObjectRef(namespace="default", name="c1")
    assert (config.spec.image, config.spec.ignition_secret_ref) == ("reg/os:1", LocalRef(name="ign"))
    (owner,) = config.metadata.owner_references
    assert (owner.kind, owner.uid, owner.controller) == ("ServerClaim", claim.metadata.uid, True)


@pytest.mark.behaviour("Server: network boot")
async def test_an_unexpected_power_loss_brings_the_tenant_back_from_disk() -> None:
    """After its first boot a claimed machine is powered on again without any network override."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await w.add_claim()
        await w.boot_claim()
        w.bmc.calls.clear()
        w.bmc.lose_power()
        await asyncio.sleep(300)
    assert w.bmc.writes() == ["power_on"]
    assert (w.bmc.network_boots, w.bmc.disk_boots) == (2, 1)


@pytest.mark.behaviour("Server: network boot", "A BMC that ignores `Once` has its boot override cleared and read back.")
async def test_a_bmc_that_ignores_once_has_its_override_cleared_and_read_back() -> None:
    """The override that survives a boot is removed, so that the next power-on goes to the disk."""
    async with world() as w:
        w.bmc.ignores_once = True
        await w.add_server()
        await w.discover()
        await w.add_claim()
        await w.boot_claim()
        await asyncio.sleep(5)
        override = w.bmc.boot
        w.bmc.lose_power()
        await asyncio.sleep(300)
    assert not override.is_network
    assert (w.bmc.network_boots, w.bmc.disk_boots) == (2, 1)


@pytest.mark.behaviour(
    "Cleanup",
    "The server of a deleted claim is Available and off, with the policy in status; it can be claimed again.",
    go="Leaves Reserved without erasing data.",
)
async def test_a_deleted_claim_leads_through_cleanup_to_available() -> None:
    """Off, override cleared, the policy None visible in status, and the server can be claimed again."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await w.add_claim()
        await w.boot_claim()
        await w.client.delete(KINDS.claim, "c1", "default")
        server = await w.until_true(_available_again)
        await w.add_claim("c2")
        await w.boot_claim("c2")
    assert server.status.power_state == "Off"
    assert server.status.tenancy.sanitization == "None"
    assert [c.reason for c in server.status.conditions if c.type == "Sanitized"] == ["PolicyNone"]
    assert w.bmc.network_boots == 3


def _available_again(server: Server) -> bool:
    return server.status.state == "Available" and server.spec.server_claim_ref is None and not server.status.waiting_for


@pytest.mark.behaviour(
    "ServerClaim", "A claim with power Off binds without a boot, and boots when Ignition and power On are set."
)
async def test_a_claim_with_power_off_stays_off_until_it_is_filled_in() -> None:
    """A machine controller binds with power Off, then sets the Ignition and power On: the boot is the filled-in one."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await w.add_claim(power="Off")
        await w.until("Reserved")
        await asyncio.sleep(30)
        calm = w.bmc.network_boots
        change = {"spec": {"power": "On", "ignitionSecretRef": {"name": "ign"}}}
        await w.client.patch(KINDS.claim, "c1", change, "default")
        await w.boot_claim()
        config = await w.config("c1", "default")
    assert calm == 1
    assert config.spec.ignition_secret_ref is not None
    assert config.spec.ignition_secret_ref.name == "ign"
    assert w.bmc.network_boots == 2


@pytest.mark.behaviour(
    "Server: identity and inventory",
    "An inventory that could be read in part is a condition and does not stop the discovery.",
)
async def test_an_inventory_that_could_be_read_in_part_is_a_condition_and_no_obstacle() -> None:
    """A storage controller that answers 500 does not keep a server from its discovery."""
    async with world() as w:
        w.bmc.problems = ("Storage/1: the BMC answered 500",)
        await w.add_server()
        server = await w.until("Discovery")
    found = next(c for c in server.status.conditions if c.type == "InventoryComplete")
    assert (found.status, found.reason) == ("False", "PartlyRead")
    assert "Storage/1" in found.message
