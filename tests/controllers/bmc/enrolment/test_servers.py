"""The Servers of a BMC's systems."""

import asyncio
import random
from typing import Any

import pytest

from tests.controllers.rack import KINDS, Rack, condition, rack, soon, system, uuid

pytestmark = pytest.mark.looptime


async def enrolled(r: Rack, count: int) -> dict[str, str]:
    """Wait for this many Servers; their UUIDs by name."""

    async def check() -> Any:
        found = await r.servers()
        return found if len(found) == count else None

    found: dict[str, str] = await soon(check)
    return found


@pytest.mark.behaviour(
    "BMC", "A system with a UUID becomes a Server with lower-case UUID, path, reference and controlling owner."
)
async def test_a_system_becomes_a_server() -> None:
    """The Server has name, lower-case UUID, path, reference and controlling owner."""
    async with rack() as r:
        r.plug(1)
        await r.add_bmc(1)
        await enrolled(r, 1)
        server, bmc = await r.server(), await r.bmc()
    assert server.spec.system_uuid == uuid(1).lower()
    assert server.spec.system_uri == "/redfish/v1/Systems/1"
    assert server.spec.bmc_ref is not None
    assert server.spec.bmc_ref.name == "b1"
    owner = server.metadata.owner_references[0]
    assert (owner.kind, owner.uid, owner.controller) == ("BMC", bmc.metadata.uid, True)
    assert bmc.status.systems == {uuid(1).lower(): 0}


@pytest.mark.behaviour(
    "BMC", "Server names belong to system UUIDs: any order of the systems, at any check, keeps all names."
)
async def test_a_shifted_order_renames_nobody() -> None:
    """The list changes its order at each check and across restarts: every name keeps its UUID."""
    async with rack(interval=10.0) as r:
        bmc = r.plug(1, present=tuple(map(system, range(5))))
        await r.add_bmc(1)
        first = await enrolled(r, 5)
        rng = random.Random(7)
        for turn in range(8):
            bmc.present = tuple(rng.sample(bmc.present, 5))
            await asyncio.sleep(13)
            if turn % 3 == 2:
                await r.restart(turn)
        assert await r.servers() == first
    assert sorted(first) == [f"b1-system-{number}" for number in range(5)]


async def test_a_vanished_system_keeps_its_server_and_its_number() -> None:
    """No Server is deleted; BMC and Server report it once; a new system gets another number."""
    async with rack(interval=10.0) as r:
        bmc = r.plug(1, present=(system(1), system(2)))
        await r.add_bmc(1)
        before = await enrolled(r, 2)
        bmc.present = (system(3), system(2))
        after = await enrolled(r, 3)
        await asyncio.sleep(30)
        said, lost, events = await r.bmc(), await r.server(), await r.events()
        bmc.present = (system(1), system(2), system(3))
        await asyncio.sleep(13)
        back, found = await r.bmc(), await r.server()
    assert before.items() <= after.items()
    assert after["b1-system-2"] == uuid(3).lower()
    assert (condition(said, "Enrolled").status, condition(said, "Enrolled").reason) == ("False", "SystemGone")
    assert "Server b1-system-0 is kept" in condition(said, "Enrolled").message
    assert events.count(("b1-system-0", "SystemGone")) == 1
    assert condition(lost, "SystemPresent").reason == "SystemGone"
    assert condition(found, "SystemPresent").status == "True"
    assert condition(back, "Enrolled").status == "True"


async def test_the_number_of_a_deleted_server_is_not_given_again() -> None:
    """The number of a removed system stays reserved after its Server was deleted, and nothing is reported."""
    async with rack(interval=10.0) as r:
        bmc = r.plug(1, present=(system(1), system(2)))
        await r.add_bmc(1)
        await enrolled(r, 2)
        bmc.present = (system(2), system(3))
        await enrolled(r, 3)
        await r.user.delete(KINDS.server, "b1-system-0")
        await asyncio.sleep(30)
        servers, said = await r.servers(), await r.bmc()
    assert sorted(servers) == ["b1-system-1", "b1-system-2"]
    assert condition(said, "Enrolled").status == "True"


async def test_a_server_deleted_by_hand_comes_back_under_its_name() -> None:
    """The system still exists, so its Server is created again at once under the same name."""
    async with rack() as r:
        r.plug(1, present=(system(1), system(2)))
        await r.add_bmc(1)
        before = await enrolled(r, 2)
        await r.user.delete(KINDS.server, "b1-system-1")
        await asyncio.sleep(2)
        assert await r.servers() == before


async def test_a_server_written_by_hand_is_taken_over_not_doubled() -> None:
    """A Server of any name with this UUID and this BMC is the Server of the system."""
    async with rack() as r:
        r.plug(1)
        spec = {"uuid": uuid(1), "bmcRef": {"name": "b1"}}
        await r.user.create(KINDS.server, {"metadata": {"name": "my-server"}, "spec": spec})
        await r.add_bmc(1)
        await asyncio.sleep(5)
        servers, server, bmc = await r.servers(), await r.server("my-server"), await r.bmc()
    assert list(servers) == ["my-server"]
    assert server.spec.system_uri == "/redfish/v1/Systems/1"
    assert condition(bmc, "Enrolled").status == "True"


async def test_servers_of_the_go_operator_keep_their_names() -> None:
    """Names by list index are kept by UUID from then on, independent of the present order."""
    async with rack(started=False) as r:
        r.plug(1, present=(system(1), system(2)))
        for index, number in enumerate((2, 1)):
            spec = {"systemUUID": uuid(number).lower(), "bmcRef": {"name": "b1"}}
            await r.user.create(KINDS.server, {"metadata": {"name": f"b1-system-{index}"}, "spec": spec})
        await r.add_bmc(1)
        await r.start()
        await asyncio.sleep(5)
        servers, bmc = await r.servers(), await r.bmc()
    assert servers == {"b1-system-0": uuid(2).lower(), "b1-system-1": uuid(1).lower()}
    assert bmc.status.systems == {uuid(2).lower(): 0, uuid(1).lower(): 1}


async def test_a_uuid_that_two_bmcs_report_is_given_to_one() -> None:
    """Vendors ship boards with equal UUIDs: there is no second Server, and a condition names both."""
    async with rack() as r:
        r.plug(1)
        r.plug(2)
        await r.add_bmc(1)
        await enrolled(r, 1)
        await r.add_bmc(2)
        await asyncio.sleep(5)
        servers, second = await r.servers(), await r.bmc("b2")
    assert list(servers) == ["b1-system-0"]
    assert condition(second, "Enrolled").reason == "DuplicateSystem"
    assert "Server b1-system-0" in condition(second, "Enrolled").message


@pytest.mark.parametrize(
    ("present", "reason", "words"),
    [
        ((system(1), system(1)), "UUIDNotUnique", "report the same UUID"),
        ((system(1), type(system(1))(uri="/x", uuid="")), "UUIDMissing", "system /x reports no UUID"),
    ],
)
async def test_systems_without_an_identity_are_told_but_do_not_block(present: Any, reason: str, words: str) -> None:
    """Another system of the BMC gets its Server."""
    async with rack() as r:
        r.plug(1, present=present)
        await r.add_bmc(1)
        await enrolled(r, 1)
        await asyncio.sleep(1)
        bmc = await r.bmc()
    assert condition(bmc, "Enrolled").reason == reason
    assert words in condition(bmc, "Enrolled").message


@pytest.mark.behaviour("BMC", "A system without a boot override becomes no Server.")
async def test_systems_that_do_not_boot_are_no_servers() -> None:
    """A system without boot override is a composition or a chassis, not a server."""
    async with rack() as r:
        r.plug(1, present=(system(1, bootable=False), system(2)))
        await r.add_bmc(1)
        servers = await enrolled(r, 1)
        await asyncio.sleep(1)
        bmc = await r.bmc()
    assert servers == {"b1-system-0": uuid(2).lower()}
    assert condition(bmc, "Enrolled").status == "True"


@pytest.mark.behaviour("BMC", "Labels of the BMC are copied to its Servers; labels of other clients are kept.")
async def test_labels_follow_those_of_the_bmc() -> None:
    """Labels are added, changed and removed; labels that others set on the Server stay."""
    async with rack() as r:
        r.plug(1)
        await r.add_bmc(1, labels={"rack": "1", "row": "a"})

        async def labels() -> Any:
            return (await enrolled(r, 1)) and dict((await r.server()).metadata.labels)

        async def labelled(wanted: dict[str, str]) -> bool:
            return bool(await labels() == wanted)

        await soon(lambda: labelled({"rack": "1", "row": "a"}))
        await r.user.patch(KINDS.server, "b1-system-0", {"metadata": {"labels": {"mine": "yes"}}})
        await r.user.patch(KINDS.bmc, "b1", {"metadata": {"labels": {"rack": "2", "row": None}}})
        await soon(lambda: labelled({"rack": "2", "mine": "yes"}))


@pytest.mark.behaviour("BMC", "A label that is removed from a BMC while no manager runs is removed from its Servers.")
@pytest.mark.parametrize("left", [{"rack": "1"}, {}])
async def test_labels_removed_while_no_manager_ran_are_removed(left: dict[str, str]) -> None:
    """The next manager compares with what was applied, not with what it remembers; labels of others stay."""
    async with rack() as r:
        r.plug(1)
        await r.add_bmc(1, labels={"rack": "1", "row": "a"})
        await enrolled(r, 1)
        await r.user.patch(KINDS.server, "b1-system-0", {"metadata": {"labels": {"mine": "yes"}}})
        await r.runtime.stop(grace=0.0)
        removed = dict.fromkeys({"rack", "row"} - set(left))
        await r.user.patch(KINDS.bmc, "b1", {"metadata": {"labels": removed}})
        await r.restart()

        async def labelled() -> bool:
            return dict((await r.server()).metadata.labels) == {**left, "mine": "yes"}

        await soon(labelled)


async def test_a_changed_path_is_followed() -> None:
    """A firmware update renames the system's resource; its UUID stays."""
    async with rack(interval=10.0) as r:
        bmc = r.plug(1)
        await r.add_bmc(1)
        await enrolled(r, 1)
        bmc.present = (type(system(1))(uri="/redfish/v1/Systems/System.Embedded.1", uuid=uuid(1)),)
        await asyncio.sleep(13)
        server = await r.server()
    assert server.spec.system_uri == "/redfish/v1/Systems/System.Embedded.1"


async def test_what_users_and_claims_wrote_is_not_touched() -> None:
    """Checks of the BMC change no other fields of the Server, and write nothing without a change."""
    async with rack(interval=10.0) as r:
        r.plug(1)
        await r.add_bmc(1)
        await enrolled(r, 1)
        spec = {"unclaimable": True, "serverClaimRef": {"namespace": "default", "name": "c"}}
        written = await r.user.patch(KINDS.server, "b1-system-0", {"spec": spec})
        await asyncio.sleep(120)
        server = await r.server()
    assert server.metadata.resource_version == written.metadata.resource_version


async def test_killed_after_the_server_and_before_the_status_the_number_is_found_again() -> None:
    """The number is read from the Server's name: no second Server is created."""
    async with rack(started=False) as r:
        bmc = r.plug(1, present=(system(1), system(2)))
        write = r.client.patch_status

        async def killed(kind: Any, *arguments: Any, **options: Any) -> Any:
            if kind.kind == "BMC":
                raise asyncio.CancelledError
            return await write(kind, *arguments, **options)

        r.client.patch_status = killed  # type: ignore[method-assign]  # the process dies right here
        await r.start()
        await r.add_bmc(1)
        first = await enrolled(r, 2)
        await r.runtime.stop(grace=0.0)
        r.client.patch_status = write  # type: ignore[method-assign]  # the next process
        bmc.present = (system(2), system(1))
        await r.start(2)
        await asyncio.sleep(5)
        assert await r.servers() == first
        assert (await r.bmc()).status.systems == {u: int(n[-1]) for n, u in first.items()}
