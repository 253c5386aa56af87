"""What a machine owes does not go with its Server object: the next one of that machine does it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from metal.api.sanitization import SanitizationEvidence
from metal.api.server import Server
from metal.evidence import owed
from tests.controllers.server.steps import claimed_and_booted, claimed_and_booting, condition, maintain
from tests.controllers.server.test_sanitization import ERASE, begin_erasing, disks, erasing, released
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime


async def made_anew(w: World) -> None:
    """Somebody deletes the Server, and somebody makes it again."""
    await w.client.delete(KINDS.server, "s1")
    await w.until_gone(KINDS.server, "s1")
    await w.client.delete(KINDS.bmc_secret, "s1-secret")
    await w.add_server()


async def left(w: World) -> SanitizationEvidence:
    """What the deleted Server left behind."""
    (found,) = [one for one in await w.evidence() if one.metadata.name.startswith("owed-")]
    return found


async def in_cleanup(w: World) -> None:
    await released(w)
    await w.until("Cleanup")


async def while_it_is_erased(w: World) -> None:
    await erasing(w)


async def in_maintenance(w: World) -> None:
    disks(w, "sda")
    await claimed_and_booted(w)
    await maintain(w)
    await w.until("Maintenance")
    await w.client.delete(KINDS.claim, "c1", "default")
    await asyncio.sleep(60)


async def after_half_a_boot(w: World) -> None:
    disks(w, "sda")
    await claimed_and_booting(w)
    await w.fetch_script()
    await w.client.delete(KINDS.claim, "c1", "default")
    await w.until("Cleanup")


@pytest.mark.parametrize("begin", [in_cleanup, while_it_is_erased, in_maintenance, after_half_a_boot])
async def test_what_a_deleted_server_owes_is_done_before_anything_else(
    begin: Callable[[World], Awaitable[None]],
) -> None:
    """Erased to the former tenant's policy, with its drives as they were known; it is discovered only then."""
    async with world(**ERASE) as w:
        await begin(w)
        await made_anew(w)
        again = await w.until("Cleanup")
        owes = await left(w)
        await maintain(w, on=False)
        await begin_erasing(w)
        await w.erase()
        erased = await w.until("Discovery", within=900)
        ended = await left(w)
        await w.discover()
        server = await w.until("Available")
    assert (again.status.sanitization_policy, [d.serial_number for d in again.status.drives]) == (
        "Clear",
        ["serial-sda"],
    )
    assert (owes.status.phase, owes.spec.claim_uid) == ("", again.status.tenant)
    assert (ended.status.phase, ended.status.signature is not None) == ("Succeeded", True)
    assert erased.status.sanitization == "Clear"
    assert condition(server, "Sanitized") == ("True", "Clear")


async def test_a_drive_that_went_with_the_deleted_server_is_owed() -> None:
    """The new Server knows what the old one had."""
    async with world(**ERASE) as w:
        await in_cleanup(w)
        await made_anew(w)
        await begin_erasing(w)
        disks(w)
        await w.erase()
        server = await w.until("Error", within=900)
    assert server.status.failure is not None
    assert "serial-sda) was there at discovery and is missing" in server.status.failure.message


async def test_what_was_done_is_not_done_again() -> None:
    """Once its cleanup has ended, another Server of that machine is a new one."""
    async with world(**ERASE) as w:
        await in_cleanup(w)
        await made_anew(w)
        await begin_erasing(w)
        await w.erase()
        await w.until("Discovery", within=900)
        await made_anew(w)
        await w.until("Discovery")
        evidence = await w.evidence()
    assert len(evidence) == 2


async def test_a_claim_that_is_still_there_has_its_machine_back_unerased() -> None:
    """Also one whose boot nobody has written down: it counts as booted, and its disk is left alone."""
    async with world(**ERASE) as w:
        disks(w, "sda")
        await claimed_and_booting(w)
        await w.fetch_script()
        boots = w.bmc.network_boots
        await made_anew(w)
        server = await w.until("Reserved")
        await asyncio.sleep(600)
    assert server.spec.server_claim_ref is not None
    assert w.bmc.network_boots == boots


async def test_a_claim_that_goes_while_its_server_is_away_leaves_an_erasure() -> None:
    """The claim would have had its machine back; now nobody holds it, and its data is still there."""
    async with world(**ERASE) as w:
        disks(w, "sda")
        await claimed_and_booted(w)
        await w.client.delete(KINDS.server, "s1")
        await w.until_gone(KINDS.server, "s1")
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until_gone(KINDS.claim, "c1", "default")
        await w.client.delete(KINDS.bmc_secret, "s1-secret")
        await w.add_server()
        server = await w.until("Cleanup")
    assert server.status.tenant_served


@pytest.mark.parametrize("policy", ["None", "Clear"])
async def test_a_server_that_owes_nothing_leaves_nothing(policy: str) -> None:
    """Neither one whose drives its policy leaves alone, nor one that nobody used."""
    async with world(sanitization_policy=policy) as w:
        if policy == "None":
            await released(w)
        else:
            await w.add_server()
            await w.discover()
        await made_anew(w)
        await w.until("Discovery")
        evidence = await w.evidence()
    assert evidence == []


async def test_leaving_it_twice_is_leaving_it_once() -> None:
    """A manager that was killed before the finalizer went comes by again."""
    async with world(**ERASE) as w:
        await in_cleanup(w)
        server: Server = await w.server()
        first = await owed.leave(w.client, KINDS, server, "Clear")
        again = await owed.leave(w.client, KINDS, server, "Clear")
        found = await owed.find(w.client, KINDS, server)
    assert first.metadata.uid == again.metadata.uid
    assert found is not None
    assert found.metadata.uid == first.metadata.uid
