"""What a discovery found: labels for claims, and what is different from the last time."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.api.inventory import Inventory, Part
from metal.api.server import Processor, ServerStatus
from metal.bmc.inventory import Drive, Storage
from metal.bmc.power import PowerState
from metal.controllers.server.bmc.inventory import differences, labels
from metal.kube.meta import conditions
from tests.controllers.server.steps import condition, maintain
from tests.controllers.world import KINDS, World, world

NOW = datetime(2030, 1, 1, tzinfo=UTC)
OLD_DRIVE = Drive(name="Bay 4", serial_number="S1", capacity_bytes=1 << 40, model="Fast")
NEW_DRIVE = replace(OLD_DRIVE, serial_number="S9")


async def rediscover(w: World) -> None:
    """A maintenance comes and goes; what it may have changed is looked at."""
    await maintain(w, on=True)
    await w.until("Maintenance")
    w.bmc._arrive(PowerState.ON)
    await w.until_true(lambda s: s.status.power_state == "On")
    await maintain(w, on=False)
    await w.discover()


@pytest.mark.behaviour(
    "Server: identity and inventory", "A discovered server has labels of its hardware that a claim's selector can use."
)
@pytest.mark.looptime
async def test_a_discovered_server_has_labels_of_what_it_is_made_of() -> None:
    """A claim's selector finds it by them; people's own labels are left alone."""
    async with world() as w:
        w.bmc.storages = (Storage(name="raid", drives=(OLD_DRIVE,)),)
        await w.add_server()
        await w.client.patch(KINDS.server, "s1", {"metadata": {"labels": {"rack": "r1"}}})
        server = await w.discover()
        await w.add_claim(serverSelector={"matchLabels": {"inventory.metal.ironcore.dev/cores": "8"}})
        claim = await w.until_claim(lambda c: c.spec.server_ref is not None)
    told = {key.removeprefix("inventory.metal.ironcore.dev/"): value for key, value in server.metadata.labels.items()}
    assert told | {"rack": "r1", "cores": "8", "memory": "96Gi", "drives": "1", "manufacturer": "Contoso"} == told
    assert claim.spec.server_ref is not None
    assert condition(server, "HardwareChanged") == ("False", "FirstInventory")


@pytest.mark.behaviour(
    "Server: identity and inventory",
    "An exchanged drive is named by serial number and slot in a condition and an Event.",
)
@pytest.mark.looptime
async def test_a_drive_that_was_exchanged_is_named_by_serial_number_and_slot() -> None:
    """In a condition, in an Event and in the labels; the next discovery that finds no difference says so."""
    async with world() as w:
        w.bmc.storages = (Storage(name="raid", drives=(OLD_DRIVE, replace(OLD_DRIVE, serial_number="S2"))),)
        await w.add_server()
        await w.discover()
        w.bmc.storages = (Storage(name="raid", drives=(NEW_DRIVE,)),)
        w.bmc.memory = 64 << 30
        await rediscover(w)
        changed = await w.server()
        events = [e.message for e in await w.events() if e.reason == "HardwareChanged"]
        await rediscover(w)
        again = await w.server()
    found = conditions.find(changed.status.conditions, "HardwareChanged")
    assert found is not None
    assert (found.status, found.reason) == ("True", "HardwareChanged")
    for text in ("drive S1 (Bay 4, 1Ti Fast) is gone", "drive S9 (Bay 4, 1Ti Fast) is new", "memory is 64Gi"):
        assert text in found.message
        assert text in events[0]
    assert changed.metadata.labels["inventory.metal.ironcore.dev/drives"] == "1"
    assert condition(again, "HardwareChanged") == ("False", "Unchanged")


@pytest.mark.looptime
async def test_an_inventory_that_was_read_in_part_is_no_change() -> None:
    """What could not be read is not gone; the last complete inventory is kept to compare with."""
    async with world() as w:
        w.bmc.storages = (Storage(name="raid", drives=(OLD_DRIVE,)),)
        await w.add_server()
        first = await w.discover()
        w.bmc.storages, w.bmc.problems = (), ("storage: 500",)
        await rediscover(w)
        server = await w.server()
    assert server.status.inventory == first.status.inventory
    assert condition(server, "HardwareChanged") == ("False", "FirstInventory")


@pytest.mark.parametrize(
    ("words", "expected"), [(("x86-64", "x86-64"), "amd64"), (("ARM-A64",), "arm64"), (("x86-64", "ARM-A64"), None)]
)
def test_the_architecture_is_kubernetes_word_where_all_processors_have_one(
    words: tuple[str, ...], expected: str | None
) -> None:
    """A machine of two architectures has no such label."""
    cpus = tuple(Processor(id=str(place), instruction_set=word) for place, word in enumerate(words))
    assert labels(ServerStatus(processors=cpus)).get("architecture") == expected


@given(st.text(max_size=90), st.text(max_size=90))
def test_whatever_a_bmc_calls_a_machine_its_labels_are_valid(manufacturer: str, model: str) -> None:
    """Kubernetes would refuse the whole patch otherwise."""
    for value in labels(ServerStatus(manufacturer=manufacturer, model=model)).values():
        assert len(value) <= 63
        assert value[0].isascii()
        assert value[0].isalnum()
        assert value[-1].isalnum()


PARTS = st.lists(st.builds(Part, kind=st.sampled_from(["Drive", "Processor"]), id=st.sampled_from("abc")), max_size=5)


@given(PARTS, PARTS)
def test_differences_are_found_in_both_directions(before: list[Part], after: list[Part]) -> None:
    """The same parts in another order are no difference; what is gone one way is new the other way."""
    old, new = (Inventory(taken_at=NOW, parts=tuple(parts)) for parts in (before, after))
    there, back = differences(old, new), differences(new, old)
    same = sorted(map(str, before)) == sorted(map(str, after))
    assert bool(there) is not same
    assert {text.replace("is gone", "is new") for text in there if "gone" in text} == {t for t in back if "new" in t}
