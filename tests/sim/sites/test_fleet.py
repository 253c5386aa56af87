"""A fleet is reproducible, scales to thousands, is discovered by its leases, and survives a restart."""

import asyncio
import base64
import json
import random
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.api.endpoint import Endpoint
from metal.api.kinds import kinds
from metal.apiserver.server import EmbeddedAPI
from metal.boot.errors import ImageError
from metal.controllers.endpoint.mac_prefixes import parse
from metal.kube.meta.clock import LoopClock
from metal.machine.identity import identity_of_system
from metal.machine.uuids import spellings
from metal.sim import kernels
from metal.sim.bmc.latency import Latency
from metal.sim.bmc.redfish_service import SimBMC
from metal.sim.images.local import LocalImages
from metal.sim.images.registry import NAMES, FakeImage, ImageStore, fake_image
from metal.sim.machine.hardware import hardware
from metal.sim.machine.identity import MOST, identity
from metal.sim.machine.network import InProcessNetwork
from metal.sim.machine.store import Unreadable
from metal.sim.options import Options
from metal.sim.sites.fleet import RENEWAL, Fleet, FleetSettings
from metal.sim.sites.object_history import ObjectHistory
from tests.crds import crds
from tests.sim.plane import START
from tests.sim.site import BOOT, OPTIONS, TENANT, BootServer, probe_ignition

KINDS = kinds()
LONG = 100.0


def rack(n: int = 3, *, seed: int = 0, offset: int = 0, server: BootServer | None = None) -> Fleet:
    """A fleet in process."""
    settings = FleetSettings(BOOT, server or InProcessNetwork(), clock=LoopClock(START), offset=offset)
    return Fleet(n, seed=seed, options=OPTIONS, settings=settings)


def test_five_thousand_machines_share_nothing() -> None:
    """UUIDs, MACs, serial numbers and addresses are all different, and loopback."""
    all_of_them = [identity(number) for number in range(5000)]
    macs = [mac for one in all_of_them for mac in (one.bmc_mac, *one.host_macs)]
    ips = [ip for one in all_of_them for ip in (one.bmc_ip, one.host_ip)]
    uuids = [uuid for one in all_of_them for uuid in (one.uuid, one.bmc_uuid)]
    for values in (macs, ips, uuids, [one.serial for one in all_of_them], [one.name for one in all_of_them]):
        assert len(set(values)) == len(values)
    assert all(ip.startswith("127.") for ip in ips)


@given(st.integers(0, MOST - 1), st.integers(0, 10_000))
def test_an_identity_follows_from_seed_and_number(number: int, seed: int) -> None:
    """The same twice; another seed is another machine at the same address."""
    one = identity(number, seed)
    assert identity(number, seed) == one
    other = identity(number, seed + 1)
    assert (other.bmc_ip, other.bmc_mac) == (one.bmc_ip, one.bmc_mac)
    assert other.uuid != one.uuid
    assert all(0 <= int(part) <= 255 for part in one.host_ip.split("."))


@pytest.mark.parametrize("number", [-1, MOST])
def test_beyond_the_addresses_there_are_no_machines(number: int) -> None:
    """The error has the valid numbers."""
    with pytest.raises(ValueError, match=str(MOST)):
        identity(number)


def test_offsets_keep_fleets_apart() -> None:
    """Two fleets with offsets share no address."""
    first, second = rack(10), rack(10, offset=10)
    assert not {*first.bmcs} & {*second.bmcs}


def test_hardware_follows_from_the_random_source() -> None:
    """Machines differ as in a real rack; the same source gives the same machine."""
    built = [hardware(identity(number), random.Random(number)) for number in range(40)]
    assert built == [hardware(identity(number), random.Random(number)) for number in range(40)]
    assert len({one.model for one in built}) > 1


@given(st.floats(0.001, 1.0), st.integers(0, 100))
def test_latency_spreads_around_its_median(median: float, seed: int) -> None:
    """Half of the delays are below the median; none is more than eight times the median."""
    rng = random.Random(seed)
    samples = sorted(Latency(median).sample(rng) for _ in range(400))
    assert samples[0] > 0
    assert samples[-1] <= 8 * median
    assert samples[200] == pytest.approx(median, rel=0.25)
    assert Latency(0).sample(rng) == 0


def test_the_prefix_entry_is_understood_by_the_control_plane() -> None:
    """The entry that a fleet prints matches each of its BMCs, with scheme, port and credentials."""
    fleet = Fleet(2, options=replace(OPTIONS, password='tri:cky "one"'), settings=FleetSettings(BOOT, BootServer()))
    prefixes = parse(fleet.mac_prefixes_yaml(), "here")
    for machine in fleet.machines:
        entry = prefixes.lookup(machine.identity.bmc_mac)
        assert entry is not None
        assert (entry.scheme, entry.port, entry.is_bmc) == ("http", OPTIONS.port, True)
        assert entry.credentials[0].password == 'tri:cky "one"'
        assert prefixes.lookup(machine.identity.host_macs[0]) is None


def test_faults_go_to_healthy_machines() -> None:
    """Each injection uses machines without faults; more than exist is an error."""
    fleet = rack(3)
    fleet.inject("dead", 1)
    fleet.inject("slow", 2)
    assert [machine.faults.active for machine in fleet.machines] == [("slow",), ("slow",), ("dead",)]
    with pytest.raises(ValueError, match="only 0"):
        fleet.inject("hangs", 1)


def test_reprs_tell_what_is_and_no_secrets() -> None:
    """For logs and assertions."""
    fleet = Fleet(1, options=Options(password="very-secret"), settings=FleetSettings(BOOT, BootServer()))
    told = f"{fleet!r} {fleet.machines!r} {list(fleet.bmcs.values())!r} {fleet.options!r}"
    assert "1 machines" in told
    assert "Off" in told
    assert "secret" not in told


@pytest.mark.looptime
async def test_saved_machines_are_found_as_they_were(tmp_path: Path) -> None:
    """Power, disk, override, LED and the running system are kept; a tenant is not affected."""
    server = BootServer(ignition=TENANT)
    fleet, path = rack(2, server=server), tmp_path / "fleet.json"
    running, other = fleet.machines
    running.state.override.enabled, running.state.override.target = "Once", "Pxe"
    other.state.led, other.state.override.enabled, other.state.override.target = "Lit", "Continuous", "Hdd"
    running.reset("On")
    await asyncio.sleep(LONG)
    fleet.save(path)
    await fleet.stop()
    again = rack(2, server=server)
    again.load(path)
    await again.start()
    await asyncio.sleep(LONG)
    assert [machine.state for machine in again.machines] == [machine.state for machine in fleet.machines]
    assert again.machines[0].state.power == "On"
    assert again.history.of(running.identity.uuid) == [], "nothing happens to a machine that ran"
    await again.stop()


@pytest.mark.looptime
async def test_a_boot_under_way_goes_on_after_a_restart(tmp_path: Path) -> None:
    """Stopped before the script or before the probe's report, the boot ends with exactly one report."""
    for after in (4.0, 17.0, 25.0):
        server = BootServer(refuse={"register": 503})
        fleet, path = rack(1, server=server), tmp_path / "fleet.json"
        (machine,) = fleet.machines
        server.ignition = probe_ignition(machine.identity.uuid)
        machine.state.override.enabled, machine.state.override.target = "Once", "Pxe"
        machine.reset("On")
        await asyncio.sleep(after)
        await fleet.stop()
        fleet.save(path)
        server.refuse.clear()
        again = rack(1, server=server)
        again.load(path)
        await again.start()
        await asyncio.sleep(LONG)
        await again.stop()
        assert [authorization for authorization, _ in server.reports] == ["Bearer report-token"], after


def test_the_saved_file_is_private_and_a_broken_one_is_named(tmp_path: Path) -> None:
    """It holds report tokens, so only its owner can read it; an invalid file is an error that says what to do."""
    fleet, path = rack(1), tmp_path / "fleet.json"
    fleet.load(path)
    fleet.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("{")
    with pytest.raises(Unreadable, match=r"fleet\.json.*remove"):
        fleet.load(path)


async def started_api(clock: LoopClock) -> EmbeddedAPI:
    api = EmbeddedAPI(None, clock, rng=random.Random(0))
    await api.start()
    await api.install_crds(crds(KINDS))
    return api


@pytest.mark.looptime
async def test_leases_become_endpoints_and_come_back() -> None:
    """Each BMC has one Endpoint, named after its MAC; a deleted one is created again by the renewal."""
    fleet = rack(20)
    api = await started_api(LoopClock(START))
    client = api.client()
    await fleet.announce(client, KINDS)
    await fleet.announce(client, KINDS)
    endpoints = {e.spec.mac_address: e for e in (await client.list(KINDS.endpoint)).items}
    assert {mac: e.spec.ip for mac, e in endpoints.items()} == {
        m.identity.bmc_mac: m.identity.bmc_ip for m in fleet.machines
    }
    gone = next(iter(endpoints.values()))
    await client.delete(KINDS.endpoint, gone.metadata.name)
    await asyncio.sleep(RENEWAL + 1)
    assert (await client.get(KINDS.endpoint, gone.metadata.name)).spec.ip == gone.spec.ip
    await fleet.stop()
    await api.stop()


@pytest.mark.looptime
async def test_another_holder_of_the_address_loses_it() -> None:
    """As with a real DHCP server, the address belongs to the latest lease."""
    fleet = rack(1)
    api = await started_api(LoopClock(START))
    client, mine = api.client(), fleet.machines[0].identity
    spec = {"macAddress": "02:00:00:00:00:01", "ip": mine.bmc_ip}
    await client.create(KINDS.endpoint, {"metadata": {"name": "older"}, "spec": spec})
    await fleet.announce(client, KINDS)
    assert (await client.get(KINDS.endpoint, "older")).spec.ip is None
    await fleet.stop()
    await api.stop()


@pytest.mark.looptime
async def test_the_object_history_has_every_version() -> None:
    """Existing objects, each change and each deletion, once and in order, also across an expired watch."""
    fleet = rack(1)
    api = await started_api(LoopClock(START))
    client = api.client()
    await client.create(KINDS.endpoint, _endpoint("a", "10.0.0.1"))
    watching = ObjectHistory(client, fleet.history, [KINDS.endpoint])
    await watching.start()
    await client.create(KINDS.endpoint, _endpoint("b", "10.0.0.2"))
    await client.patch(KINDS.endpoint, "a", {"spec": {"ip": "10.0.0.3"}})
    await client.delete(KINDS.endpoint, "b")
    await asyncio.sleep(1)
    await watching.stop()
    told = [(entry.name, entry.obj.spec.ip if entry.obj else None) for entry in fleet.history]  # type: ignore[union-attr]  # only Changes
    assert told == [("a", "10.0.0.1"), ("b", "10.0.0.2"), ("a", "10.0.0.3"), ("b", None)]
    assert all(isinstance(entry.obj, Endpoint | None) for entry in fleet.history)  # type: ignore[union-attr]  # likewise
    await api.stop()


def _endpoint(name: str, ip: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "spec": {"macAddress": f"02:00:00:00:00:0{ord(name) - 96}", "ip": ip}}


async def test_local_images_are_resolved_and_opened() -> None:
    """By tag and by digest, for any registry name; the files match the digests."""
    images = LocalImages()
    await images.start()
    image = await images.resolve("images.sim/demo:latest", "amd64")
    assert await images.resolve(str(image.pinned), "amd64", pinned=True) == replace(image, chain=image.chain[1:])
    plan = image.plan(ignition=True)
    assert (await images.open(plan.kernel)).read_bytes() == kernels.of_architecture(fake_image("demo").kernel, "amd64")
    assert (await images.open(plan.initramfs)).read_bytes() == fake_image("demo").initrd
    assert images.prefetch("o", image, lambda: None).complete
    assert images.keep("o", [plan.kernel.digest])
    assert not images.keep("o", ["sha256:0"])
    folder = (await images.open(plan.kernel)).parent
    await images.aclose()
    assert not folder.exists()


@pytest.mark.parametrize("reference", ["images.sim/other:latest", "images.sim/demo:v9", "not a reference"])
async def test_images_that_are_not_there_are_named(reference: str) -> None:
    """An ImageError, as from a real registry."""
    with pytest.raises(ImageError):
        await LocalImages().resolve(reference, "amd64")


def test_fake_images_keep_their_digests() -> None:
    """The same name and tag always have the same bytes; another tag is another image."""
    store, again = ImageStore(), ImageStore()
    assert store.blobs == again.blobs
    assert {repository for repository, _ in store.manifests} == {*NAMES}
    one = ImageStore([]).add(fake_image("demo", "v1"))
    other = ImageStore([]).add(FakeImage("demo", b"k", b"i", tag="v1"))
    assert one != other


async def _shown(bmc: SimBMC) -> dict[str, Any]:
    """The system and the UUID of the manager, as this BMC shows them."""
    credentials = bmc.machine.site.options
    token = f"{credentials.username}:{credentials.password}".encode()
    headers = {"authorization": f"Basic {base64.b64encode(token).decode()}"}
    paths = ("/redfish/v1/Systems/1", "/redfish/v1/Managers/1")
    system, manager = (json.loads(bmc.handle("GET", path, headers, None).body) for path in paths)
    return {"uuid": system["UUID"], "serial": system["SerialNumber"], "manager": manager["UUID"]}


async def test_a_machine_is_shown_by_as_many_bmcs_as_it_has() -> None:
    """A second BMC has its own address and UUID, and shows the same system; unplugged, it is gone."""
    fleet = rack(1)
    (machine,) = fleet.machines
    (first,) = fleet.bmcs.values()
    second = fleet.add_bmc(machine)
    one, other = await _shown(first), await _shown(second)
    assert (one["uuid"], one["serial"]) == (other["uuid"], other["serial"])
    assert one["manager"] != other["manager"]
    assert list(fleet.bmcs) == [first.board.ip, second.board.ip]
    fleet.remove_bmc(first)
    assert list(fleet.bmcs) == [second.board.ip]


async def test_a_mainboard_changes_the_identity_and_not_the_drives() -> None:
    """New UUID, new serial number unless kept, a new BMC unless kept; the history follows the machine."""
    fleet = rack(1)
    (machine,) = fleet.machines
    before, disks = machine.identity, machine.hardware.disks
    kept = fleet.replace_mainboard(machine, keep_serial=True)
    after = machine.identity
    replaced = fleet.replace_mainboard(machine, keep_bmc=False)
    assert (kept.machine, list(fleet.bmcs)) == (machine, [replaced.board.ip])
    assert (before.serial, before.serial) == (after.serial, machine.identity.serial.removesuffix("R"))
    assert len({before.uuid, after.uuid, machine.identity.uuid}) == 3
    assert machine.hardware.disks == disks
    (event,) = fleet.history.of(before.uuid, "mainboard")
    assert event.details == {"becomes": after.uuid}


async def test_drives_take_their_content_along() -> None:
    """Serial numbers and data are exchanged."""
    one, other = rack(2).machines
    one.state.disk.marker = "secret"
    mine = one.hardware.disks
    one.swap_drives(other)
    assert (one.state.disk.marker, other.state.disk.marker) == ("", "secret")
    assert other.hardware.disks == mine


async def test_the_first_drive_alone_takes_its_content_along() -> None:
    """The other drives stay where they are."""
    one, other = rack(2).machines
    one.state.disk.marker = "secret"
    mine, theirs = one.hardware.disks, other.hardware.disks
    one.swap_drives(other, only_first=True)
    assert (one.state.disk.marker, other.state.disk.marker) == ("", "secret")
    assert (one.hardware.disks, other.hardware.disks) == ((theirs[0], *mine[1:]), (mine[0], *theirs[1:]))


async def test_a_bmc_reports_another_uuid_than_the_machine_has() -> None:
    """With its bytes reversed, or one that many machines have, and no serial number."""
    fleet = rack(1)
    (machine,), (bmc,) = fleet.machines, fleet.bmcs.values()
    machine.faults.flips_uuid = True
    assert (await _shown(bmc))["uuid"] in spellings(machine.identity.uuid)[1:]
    machine.faults.shares_uuid = True
    shown = await _shown(bmc)
    assert identity_of_system(shown["uuid"], "Simulated", shown["serial"]).key == ""
