"""Fleets of both architectures, in virtual time: each machine boots what is built for it."""

import hashlib

import pytest

from metal.config.options import BootOptions
from metal.sim import kernels
from metal.sim.images.registry import FakeImage, fake_image
from metal.sim.machine.machine import Machine
from metal.sim.options import Options
from tests.sim.plane import KINDS, Plane, is_ready, plane

pytestmark = pytest.mark.looptime
MIXED = Options(power=3.0, boot=20.0, shutdown=5.0, latency=0.03, arm64=2)


def _booted(world: Plane, machine: Machine) -> list[str]:
    """The images that it booted from the network."""
    boots = world.fleet.history.of(machine.identity.uuid, "os")
    return [str(boot.details["image"]) for boot in boots if boot.details["source"] == "network"]


def _content(repository: str, architecture: str) -> str:
    image = fake_image(repository)
    return hashlib.sha256(kernels.of_architecture(image.kernel, architecture) + image.initrd).hexdigest()


@pytest.mark.behaviour(
    "Server: discovery",
    "In a fleet with amd64 and arm64 each server boots the probe and its claims' images for its architecture.",
)
async def test_a_mixed_fleet_gets_the_right_kernels() -> None:
    """From one boot server, from the same references; claims select by the label of the inventory."""
    async with plane(4, options=MIXED) as world:
        await world.announce()
        await world.until_available(4)
        label = f"inventory.{KINDS.group}/architecture"
        for number in range(4):
            wanted = {"matchLabels": {label: ("amd64", "arm64")[number % 2]}}
            await world.add_claim(f"c{number}", serverSelector=wanted)
        for number in range(4):
            await world.until_claim(is_ready, f"c{number}")
        await world.until_true(lambda: len(world.tenants()) == 4)
        machines = world.fleet.machines
        assert [machine.hardware.architecture for machine in machines] == ["amd64", "amd64", "arm64", "arm64"]
        for machine in machines:
            name = machine.hardware.architecture
            assert _booted(world, machine) == [_content("probe", name), _content("demo", name)]
            server = await world.server_of(machine)
            assert server is not None
            assert (server.status.architecture, server.metadata.labels[label]) == (name, name)


async def test_where_the_bmc_names_no_architecture_the_report_does() -> None:
    """The first boot uses the default of the site; the status has what the probe's kernel reports."""
    arm = Options(power=3.0, boot=20.0, shutdown=5.0, latency=0.03, arm64=1)
    async with plane(1, options=arm, boot=BootOptions(default_architecture="arm64")) as world:
        (machine,) = world.fleet.machines
        machine.faults.switch("hides_processors")
        await world.announce()
        await world.until_available(1)
        (server,) = await world.servers()
        assert not server.status.processors
        assert server.status.architecture == "arm64"
        assert _booted(world, machine) == [_content("probe", "arm64")]


@pytest.mark.behaviour(
    "ServerClaim", "A claim whose image has no part for its server's architecture waits, and says which one is missing."
)
async def test_a_claim_with_an_image_for_another_architecture_says_so() -> None:
    """The machine stays off; with an image for its architecture the claim becomes ready."""
    arm = Options(power=3.0, boot=20.0, shutdown=5.0, latency=0.03, arm64=1)
    async with plane(1, options=arm) as world:
        made = FakeImage("demo", b"k", b"i", tag="intel", architectures=("amd64",))
        world.manager.images.store.add(made)  # type: ignore[attr-defined]  # LocalImages
        await world.announce()
        await world.until_available(1)
        await world.add_claim(image="images.sim/demo:intel")
        said = "the image has no part for arm64; it offers amd64"
        await world.until_claim(lambda claim: any(said in one.message for one in claim.status.conditions))
        assert world.fleet.machines[0].state.power == "Off"
        await world.client.patch(KINDS.claim, "c1", {"spec": {"image": "images.sim/demo:latest"}}, "default")
        await world.until_claim(is_ready)
        await world.until_true(lambda: len(world.tenants()) == 1)
        assert _booted(world, world.fleet.machines[0])[-1] == _content("demo", "arm64")
