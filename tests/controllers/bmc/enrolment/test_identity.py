"""One machine gets one Server, however many BMC objects, byte orders and managers there are."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from metal.api.core import LEASE
from metal.bmc.systems import SystemInfo
from metal.kube.client.errors import AlreadyExists
from metal.kube.controller.runtime import Runtime
from tests.controllers.rack import KINDS, NS, Rack, condition, rack, soon, system, uuid

pytestmark = pytest.mark.looptime

PLAIN, SWAPPED = "1189d5f5-eca9-4fd2-87ce-98ef08a6bca7", "f5d58911-a9ec-d24f-87ce-98ef08a6bca7"
SHARED = "00020003-0004-0005-0006-000700080009"


def info(uuid: str = PLAIN, path: str = "1", serial: str = "") -> SystemInfo:
    return SystemInfo(uri=f"/redfish/v1/Systems/{path}", uuid=uuid, manufacturer="Contoso", serial_number=serial)


async def tenant(r: Rack, name: str = "b1-system-0") -> None:
    """A claim has booted on this Server."""
    spec = {"serverClaimRef": {"namespace": "default", "name": "c1"}}
    await r.user.patch(KINDS.server, name, {"spec": spec})
    status = {"state": "Reserved", "tenant": "uid-of-c1"}
    await r.client.patch_status(KINDS.server, name, {"status": status})


@pytest.mark.behaviour(
    "BMC", "However many BMC objects show a system, also with its UUID's bytes reversed, it gets one Server."
)
async def test_ten_bmcs_that_show_one_system_make_one_server() -> None:
    """All start together; nine say which Server has the machine."""
    async with rack(started=False) as r:
        for number in range(1, 11):
            r.plug(number, present=(info(PLAIN if number % 2 else SWAPPED.upper()),))
            await r.add_bmc(number)
        await r.start()
        await asyncio.sleep(10)
        servers = await r.servers()
        said = [condition(await r.bmc(f"b{number}"), "Enrolled") for number in range(1, 11)]
    assert len(servers) == 1
    assert sorted(one.reason for one in said) == ["DuplicateSystem"] * 9 + ["Enrolled"]
    (name,) = servers
    assert all(f"Server {name} of BMC" in one.message for one in said if one.status == "False")


async def test_two_managers_that_enrol_at_once_make_one_server() -> None:
    """A former leader's cache knows nothing of the Server that its successor has just made, and the other way round."""
    async with rack(started=False) as r:
        for number in (1, 2):
            r.plug(number, present=(info(),))
            await r.add_bmc(number)
        await r.start()
        first = r.runtime
        await r.start(2)
        await asyncio.sleep(10)
        servers = await r.servers()
        await first.stop(grace=0.0)
    assert len(servers) == 1


@pytest.mark.parametrize("starts", [0.0, 5.0])
async def test_ten_bmcs_two_managers_and_a_kill_make_one_server(starts: float) -> None:
    """The first is killed as it creates the Server; to the second one the API answers after a second."""
    async with rack(started=False, interval=10.0) as r:
        for number in range(1, 11):
            r.plug(number, present=(info(PLAIN if number % 2 else SWAPPED.upper()),))
            await r.add_bmc(number)
        creating = _hang_at_server(r)
        await r.start()
        first, r.client = r.runtime, r.api.client()
        _before_server(r, lambda: asyncio.sleep(1))
        await asyncio.sleep(starts)
        await asyncio.gather(r.start(2), _kill(first, creating))
        await asyncio.sleep(180)
        servers = await r.servers()
        said = [condition(await r.bmc(f"b{number}"), "Enrolled") for number in range(1, 11)]
    assert len(servers) == 1
    assert sorted(one.reason for one in said) == ["DuplicateSystem"] * 9 + ["Enrolled"]


def _hang_at_server(r: Rack) -> asyncio.Event:
    """Set when the manager that starts next is about to create a Server, which never happens."""
    creating = asyncio.Event()

    async def hang() -> None:
        creating.set()
        await asyncio.Event().wait()

    _before_server(r, hang)
    return creating


def _before_server(r: Rack, act: Callable[[], Awaitable[None]]) -> None:
    """What happens when the manager that starts next creates a Server."""
    create = r.client.create

    async def delayed(kind: Any, body: Any) -> Any:
        if kind.kind == "Server":
            await act()
        return await create(kind, body)

    r.client.create = delayed  # type: ignore[method-assign, assignment]  # of this client only


async def _kill(runtime: Runtime, when: asyncio.Event) -> None:
    await when.wait()
    await runtime.stop(grace=0.0)


async def test_a_manager_killed_between_lease_and_server_goes_on_after_its_restart() -> None:
    """The Lease names the Server that is to come, and the same name is made at once."""
    async with rack(started=False) as r:
        r.plug(1, present=(info(),))
        create = r.client.create

        async def killed(kind: Any, body: Any) -> Any:
            if kind.kind == "Server":
                raise asyncio.CancelledError
            return await create(kind, body)

        r.client.create = killed  # type: ignore[method-assign, assignment]  # the process dies right here
        await r.start()
        await r.add_bmc(1)
        await soon(lambda: r.exists_lease(PLAIN))
        await r.runtime.stop(grace=0.0)
        r.client.create = create  # type: ignore[method-assign]  # the next process
        await r.start(2)
        await asyncio.sleep(5)
        assert list(await r.servers()) == ["b1-system-0"]


async def test_a_lease_whose_server_never_came_is_taken_over_after_a_minute() -> None:
    """Another BMC object shows the system; before that, the enrolment of the first may still be in progress."""
    async with rack(interval=10.0) as r:
        r.plug(2, present=(info(),))
        acquired = r.clock().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": "b1-system-0", "acquireTime": acquired}
        await r.client.create(LEASE, {"metadata": {"name": f"system-{PLAIN}", "namespace": NS}, "spec": spec})
        await r.add_bmc(2)
        await asyncio.sleep(50)
        early = await r.servers()
        await asyncio.sleep(60)
        late = await r.servers()
    assert early == {}
    assert list(late) == ["b2-system-0"]


async def test_a_bmc_that_reverses_the_bytes_of_a_uuid_keeps_its_server() -> None:
    """After a firmware update the UUID is reported in the other byte order: name, number and Server stay."""
    async with rack(interval=10.0) as r:
        bmc = r.plug(1, present=(info(),))
        await r.add_bmc(1)
        before = await soon(r.servers)
        bmc.present = (info(SWAPPED),)
        await asyncio.sleep(60)
        after, said = await r.servers(), await r.bmc()
    assert before == after == {"b1-system-0": PLAIN}
    assert condition(said, "Enrolled").status == "True"
    assert said.status.systems == {PLAIN: 0}


async def test_systems_with_a_vendors_default_uuid_are_told_apart_by_serial_number() -> None:
    """Each gets a Server; one without a serial number gets none, and the condition says why."""
    async with rack() as r:
        shown = (info(SHARED, "1", "A1"), info(SHARED, "2", "A2"), info(SHARED, "3", "Default string"))
        r.plug(1, present=shown)
        await r.add_bmc(1)
        await asyncio.sleep(5)
        servers, said = await r.servers(), await r.bmc()
    assert servers == {"b1-system-0": SHARED, "b1-system-1": SHARED}
    assert condition(said, "Enrolled").reason == "IdentityAmbiguous"
    assert "/redfish/v1/Systems/3" in condition(said, "Enrolled").message


async def test_a_new_system_in_the_place_of_a_tenants_is_not_enrolled() -> None:
    """The way out keeps Server and claim: spec.systemUUID is corrected."""
    async with rack(interval=10.0) as r:
        bmc = r.plug(1, present=(info(),))
        await r.add_bmc(1)
        await soon(r.servers)
        await tenant(r)
        bmc.present = (info(uuid(9)),)
        await asyncio.sleep(60)
        servers, said, lost = await r.servers(), await r.bmc(), await r.server()
        await r.user.patch(KINDS.server, "b1-system-0", {"spec": {"systemUUID": uuid(9).lower()}})
        await asyncio.sleep(30)
        after, cured, kept = await r.servers(), await r.bmc(), await r.server()
    assert list(servers) == list(after) == ["b1-system-0"]
    assert condition(said, "Enrolled").reason == "SystemReplaced"
    assert f"set spec.systemUUID of Server b1-system-0 to {uuid(9)}" in condition(said, "Enrolled").message
    assert "delete" not in condition(lost, "SystemPresent").message
    assert condition(cured, "Enrolled").status == "True"
    assert condition(kept, "SystemPresent").status == "True"
    assert kept.spec.server_claim_ref is not None


async def test_a_server_that_was_moved_to_the_replacing_bmc_outlives_the_old_one() -> None:
    """The new BMC becomes its owner, so that deleting the old BMC does not delete it."""
    async with rack(interval=10.0) as r:
        r.plug(1, present=(info(),))
        await r.add_bmc(1)
        await soon(r.servers)
        await tenant(r)
        r.pool.bmcs["192.0.2.1"].hangs = True
        r.plug(2, present=(info(),))
        await r.add_bmc(2)
        await asyncio.sleep(15)
        said = condition(await r.bmc("b2"), "Enrolled")
        await r.user.patch(KINDS.server, "b1-system-0", {"spec": {"bmcRef": {"name": "b2"}}})
        await asyncio.sleep(15)
        moved, enrolled = await r.server(), condition(await r.bmc("b2"), "Enrolled")
        await r.user.delete(KINDS.bmc, "b1")
        await asyncio.sleep(120)
        kept = await r.server()
    assert said.reason == "DuplicateSystem"
    assert "set spec.bmcRef.name of Server b1-system-0 to b2, which keeps its claim" in said.message
    assert [owner.name for owner in moved.metadata.owner_references] == ["b2"]
    assert enrolled.status == "True"
    assert kept.metadata.uid == moved.metadata.uid


async def test_an_unstarted_duplicate_of_enrolment_is_removed_again() -> None:
    """Its Server controller has found out that another Server acts on the machine."""
    async with rack(interval=10.0) as r:
        r.plug(1, present=(info(),))
        await r.add_bmc(1)
        await soon(r.servers)
        spec = {"systemUUID": SWAPPED, "bmcRef": {"name": "b9"}}
        await r.user.create(KINDS.server, {"metadata": {"name": "elder"}, "spec": spec})
        lost = {"type": "DuplicateSystem", "status": "True", "reason": "OtherServerInCharge", "message": "elder",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
        await r.client.patch_status(KINDS.server, "b1-system-0", {"status": {"conditions": [lost]}})
        await asyncio.sleep(30)
        servers, said = await r.servers(), await r.bmc()
    assert list(servers) == ["elder"]
    assert condition(said, "Enrolled").reason == "DuplicateSystem"


@pytest.mark.behaviour(
    "BMC", "A Server of any name says SystemGone when its BMC no longer lists its system, and when the system is back."
)
@pytest.mark.parametrize("spelling", [str.lower, str.upper])
async def test_a_hand_named_server_whose_system_is_gone_says_so(spelling: Callable[[str], str]) -> None:
    """Its name tells nothing about its number, and its UUID may be in upper case; it says when the system is back."""
    async with rack(interval=10.0) as r:
        bmc = r.plug(1, present=(system(1), system(2)))
        spec = {"systemUUID": spelling(uuid(1)), "bmcRef": {"name": "b1"}}
        await r.user.create(KINDS.server, {"metadata": {"name": "my-server"}, "spec": spec})
        await r.add_bmc(1)
        await asyncio.sleep(5)
        bmc.present = (system(2),)
        await asyncio.sleep(30)
        server, said, events = await r.server("my-server"), await r.bmc(), await r.events()
        bmc.present = (system(1), system(2))
        await asyncio.sleep(13)
        back, servers = await r.server("my-server"), await r.servers()
    assert condition(server, "SystemPresent").reason == "SystemGone"
    assert condition(said, "Enrolled").reason == "SystemGone"
    assert events.count(("my-server", "SystemGone")) == 1
    assert condition(back, "SystemPresent").status == "True"
    assert sorted(servers) == ["b1-system-0", "my-server"]


async def test_a_lease_is_created_once() -> None:
    """The name is the machine's UUID in its canonical form."""
    async with rack() as r:
        r.plug(1, present=(info(SWAPPED),))
        await r.add_bmc(1)
        await soon(r.servers)
        with pytest.raises(AlreadyExists):
            await r.client.create(LEASE, {"metadata": {"name": f"system-{PLAIN}", "namespace": NS}})
