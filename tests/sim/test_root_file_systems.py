"""Images whose operating system fetches its root file system after the Ignition, in virtual time."""

from typing import Any

import pytest

from metal.sim.images.registry import FakeImage
from tests.sim.plane import Plane, is_ready, plane

pytestmark = pytest.mark.looptime


def _squashfs(world: Plane) -> list[int]:
    """The bytes of each file that the machine got with a token, in order."""
    (machine,) = world.fleet.machines
    fetched = world.fleet.history.of(machine.identity.uuid, "fetch")
    return [entry.details["bytes"] for entry in fetched if entry.details["path"] == "/image"][-3:]


@pytest.mark.behaviour(
    "Server: network boot",
    "An operating system fetches its root file system (squashfs) after its Ignition, until its boot expires.",
)
@pytest.mark.parametrize("ignition", [True, False])
async def test_a_system_fetches_its_root_file_system(ignition: bool) -> None:
    """The token of the script is spent by then; without an Ignition the boot has succeeded already."""
    async with plane(1) as world:
        made = FakeImage("live", b"kernel", b"initrd", squashfs=b"root" * 500)
        world.manager.images.store.add(made)  # type: ignore[attr-defined]  # LocalImages
        await world.manager.images.start()  # writes the files again
        await world.announce()
        await world.until_available(1)
        more: dict[str, Any] = {} if ignition else {"ignitionSecretRef": None}
        await world.add_claim(image="images.sim/live:latest", **more)
        await world.until_claim(is_ready)
        await world.until_true(lambda: len(world.tenants()) == 1)
        assert _squashfs(world)[-2:] == [len(b"initrd"), 2000]
