"""The probe asks before it erases: a drive that no BMC lists is looked up before the first drive is erased."""

import asyncio
from datetime import timedelta

import pytest

from metal.machine import boot_window
from tests.controllers.fakebmc import FakeBMC
from tests.controllers.server.steps import claimed_and_booted, condition, operate, reasons
from tests.controllers.server.tenancy.test_owed_drives import TRUSTED, _is_erasing, erase, is_waiting, other_server
from tests.controllers.server.tenancy.test_sanitization import ERASE, disks, erasing
from tests.controllers.world import KINDS, NS, World, is_erasure_allowed, world

pytestmark = pytest.mark.looptime


async def booted(w: World) -> None:
    """The probe runs on s2 and has not asked yet."""
    await w.until_true(lambda s: s.status.state == "Cleanup" and s.spec.boot_configuration_ref is not None
                       and s.spec.boot_configuration_ref.namespace == NS, "s2")  # fmt: skip
    await w.settle()
    await w.config_ready("s2")
    await w.until_true(_is_erasing, "s2")
    await w.fetch_script("s2")
    await w.fetch_ignition("s2")


async def unlisted(w: World) -> FakeBMC:
    """Claim c1 has s1 with the drive sda, which is put into s2 in Cleanup; the BMC of s2 lists no drives."""
    disks(w, "sdz")
    other = await other_server(w)
    await w.discover("s2")
    await w.add_claim("c2", serverRef={"name": "s2"})
    await w.boot_claim("c2", "s2")
    disks(w, "sda")
    await claimed_and_booted(w, serverRef={"name": "s1"})
    await w.client.delete(KINDS.claim, "c2", "default")
    await booted(w)
    disks(w, "sdz", "sda")
    await w.ask("s2")
    return other


@pytest.mark.behaviour(
    "Cleanup",
    "A drive that no BMC lists is looked up before the first drive is erased: while its claim exists, nothing is.",
)
async def test_a_living_claims_drive_that_no_bmc_lists_is_not_erased() -> None:
    """The machine is switched off, the token is void, and the wait names drive, claim and ways out; no boot follows."""
    async with world(**TRUSTED) as w:
        other = await unlisted(w)
        server = await w.until_true(lambda s: is_waiting(s) and s.status.power_state == "Off", "s2")
        boots = other.network_boots
        await asyncio.sleep(600)
        later, (evidence,), seen = await w.server("s2"), await w.evidence(), await reasons(w)
    assert (later.status.state, is_waiting(later), other.network_boots) == ("Cleanup", True, boots)
    assert condition(server, "DriveOwed") == ("True", "ClaimExists")
    for word in ("serial-sda", "default/c1", "s1", "operation=retry", "accept-owed-drives"):
        assert word in server.status.waiting_for
    window = later.status.boot_window
    assert window is not None
    assert (window.phase, window.report_token_digest, window.erasure_allowed) == ("Closed", "", "")
    assert (evidence.status.phase, {one.result for one in evidence.status.drives}) == ("Failed", {"Pending"})
    assert (later.status.tenancy.data, "ErasureRefused" in seen) == ("Dirty", True)


async def test_a_refused_drive_is_erased_once_its_claim_is_gone() -> None:
    """The probe is booted again, and asks again."""
    async with world(**TRUSTED) as w:
        await unlisted(w)
        await w.until_true(is_waiting, "s2")
        await w.client.delete(KINDS.claim, "c1", "default")
        await erase(w, "s2")
        server = await w.until("Available", "s2")
    assert server.status.tenancy.sanitization == "Clear"
    assert {one.serial_number for one in server.status.drives} == {"serial-sdz", "serial-sda"}


async def test_a_refused_drive_that_was_returned_holds_the_server_until_a_retry() -> None:
    """The BMC shows nothing, so only another boot of the probe shows that the drive is gone."""
    async with world(**TRUSTED) as w:
        await unlisted(w)
        await w.until_true(lambda s: is_waiting(s) and s.status.power_state == "Off", "s2")
        disks(w, "sdz")
        await operate(w, "retry", "s2")
        await erase(w, "s2")
        server = await w.until("Available", "s2")
    assert (condition(server, "DriveOwed"), server.status.owed_drives) == (("False", "NothingOwed"), ())
    assert {one.serial_number for one in server.status.drives} == {"serial-sdz"}


@pytest.mark.behaviour("Cleanup", "A manager that is away delays an erasure only: its time begins when it is allowed.")
async def test_a_manager_that_is_away_delays_the_erasure_only() -> None:
    """The probe has asked; four hours later the next manager allows it, with the whole time for the erasure."""
    async with world(**ERASE, sanitization_timeout=600.0, sanitization_rate=1e12) as w:
        await erasing(w)
        await w.runtime.stop(grace=0.0)
        await w.ask()
        await asyncio.sleep(4 * 3600)
        assert not is_erasure_allowed(await w.server())
        await w.restart()
        server = await w.until_true(is_erasure_allowed)
        began = w.clock()
        await w.erase()
        ended = await w.until("Available")
    window = server.status.boot_window
    assert window is not None
    assert timedelta(seconds=595) < window.expires_at - began <= timedelta(seconds=605)
    assert ended.status.tenancy.sanitization == "Clear"


async def test_only_the_drives_that_were_looked_up_are_allowed() -> None:
    """A question whose list is not the one in the evidence is not answered; the next one is."""
    async with world(**ERASE) as w:
        await erasing(w)
        await w.window(lambda one: boot_window.ask_erasure(one, w.clock(), token="r", drives="of other drives"))
        await asyncio.sleep(120)
        assert not is_erasure_allowed(await w.server())
        await w.ask()
        await w.until_true(is_erasure_allowed)


async def test_the_evidence_says_that_a_former_probe_did_not_ask() -> None:
    """It is accepted as before, with a remark in the signed record; a probe that asks has none."""
    found = []
    for asks in (False, True):
        async with world(**ERASE) as w:
            await erasing(w)
            await w.erase(asks=asks)
            await w.until("Available")
            found += await w.evidence()
    former, present = found
    assert ["former version" in one for one in former.status.remarks] == [True]
    assert present.status.remarks == ()


@pytest.mark.behaviour(
    "Cleanup",
    "All claims are searched again before an erasure is allowed: one that was restored since the boot keeps its data.",
)
async def test_a_claim_that_appears_after_the_question_keeps_its_data() -> None:
    """The probe runs and asks; a claim that may own the data exists by then: off, not erased, until it is gone."""
    async with world(**ERASE) as w:
        await erasing(w)
        await w.add_claim("c1", serverRef={"name": "s1"})
        await w.ask()
        server = await w.until_true(lambda s: s.status.wait is not None and s.status.wait.for_ == "FormerTenant")
        assert (server.status.power_state, server.status.tenancy.data) == ("Off", "Dirty")
        assert "ErasureRefused" in await reasons(w)
        await asyncio.sleep(600)
        assert not is_erasure_allowed(await w.server())
        await w.client.delete(KINDS.claim, "c1", "default")
        await erase(w, "s1")
        assert (await w.until("Available")).status.tenancy.sanitization == "Clear"
