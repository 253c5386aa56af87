"""What a Server does when the BMC, the machine, the API or we ourselves fail."""

import asyncio
from typing import Any

import pytest

from metal.api.boot_window import Phase
from metal.api.server import Server
from metal.bmc.errors import BMCAuthError, BMCNotSupported, BMCServerError, BMCTimeout
from metal.kube.client.errors import Conflict, Unavailable
from metal.machine import boot_window
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime


def _condition(server: Server, type: str) -> tuple[str, str]:
    return next((c.status, c.reason) for c in server.status.conditions if c.type == type)


async def test_a_bmc_that_hangs_is_a_named_wait_and_recovery_continues_where_it_was() -> None:
    """BMCReachable says Timeout; when the BMC answers again the server goes on by itself."""
    async with world() as w:
        w.bmc.failure = BMCTimeout("the BMC did not answer within 30 s")
        await w.add_server()
        await asyncio.sleep(60)
        stuck = await w.server()
        w.bmc.failure = None
        await w.until("Discovery")
    assert stuck.status.state == "Initial"
    assert _condition(stuck, "BMCReachable") == ("False", "Timeout")
    assert stuck.status.wait is not None
    assert stuck.status.wait.for_ == "BMC"


async def test_a_bmc_that_stays_away_leads_to_error_and_its_return_back_out() -> None:
    """Past the deadline the server is in Error with what failed; the interrupted state goes on once the BMC is back."""
    async with world(bmc_timeout=300.0) as w:
        await w.add_server()
        await w.discover()
        w.bmc.failure = BMCServerError("the BMC answered 500")
        failed = await w.until("Error", within=2000)
        w.bmc.failure = None
        await w.until("Available")
    assert failed.status.failure is not None
    assert (failed.status.failure.state, failed.status.failure.reason) == ("Available", "BMCInternalServerError")
    assert "500" in failed.status.failure.message


@pytest.mark.behaviour("Server: errors and deletion", "A wrong password is a condition and causes few requests.")
async def test_a_wrong_password_is_said_and_does_not_lead_to_a_storm() -> None:
    """AuthenticationFailed is a condition; the BMC is asked again only now and then."""
    async with world() as w:
        w.bmc.failure = BMCAuthError("the BMC refuses the user name or password")
        await w.add_server()
        await asyncio.sleep(300)
        server = await w.server()
        calls = len(w.bmc.calls)
    assert _condition(server, "BMCReachable") == ("False", "AuthenticationFailed")
    assert calls < 30


@pytest.mark.behaviour(
    "Server: errors and deletion", "What the BMC cannot do is an Error at once, and stays one without flapping."
)
async def test_what_the_bmc_cannot_do_is_an_error_at_once_and_stays_one() -> None:
    """A permanent failure does not flap between Error and the interrupted state."""
    async with world() as w:
        await w.add_server()
        await w.until("Discovery")
        w.bmc.failure = BMCNotSupported("this BMC does not list Pxe as a boot target")
        await w.config_ready("s1")
        failed = await w.until("Error")
        await asyncio.sleep(600)
        later = await w.server()
    assert failed.status.failure is not None
    assert failed.status.failure.reason == "NotSupported"
    assert later.status.since == failed.status.since


@pytest.mark.behaviour(
    "Server: power and resets",
    "A machine that ignores the graceful shutdown is forced off in time, with an Event.",
    go="Behind a flag.",
)
async def test_an_operating_system_that_ignores_the_shutdown_is_forced_off_in_time() -> None:
    """Release escalates: graceful first, power cut after the grace, with an Event."""
    async with world() as w:
        await _claimed_and_booted(w)
        w.bmc.ignores_graceful = True
        w.bmc.calls.clear()
        await w.client.delete(KINDS.claim, "c1", "default")
        server = await w.until("Available", within=600)
        reasons = {e.reason for e in await w.events()}
    assert w.bmc.writes() == ["graceful_off", "force_off"]
    assert server.status.power_state == "Off"
    assert "ForcedOff" in reasons


@pytest.mark.behaviour(
    "Server: discovery",
    "A machine that never reports is booted three times; then Error until `operation=retry`.",
    go="Starts the discovery again without a limit.",
)
async def test_a_machine_that_never_reports_is_booted_again_and_then_error() -> None:
    """Three boots, with growing pauses, then Error with the way out; retry starts afresh."""
    async with world(discovery_timeout=100.0, boot_retry=10.0) as w:
        await w.add_server()
        await w.until("Discovery")
        await w.config_ready("s1")
        failed = await w.until("Error", within=2000)
        boots = w.bmc.network_boots
        annotation = {"metadata": {"annotations": {KINDS.key("operation"): "retry"}}}
        await w.client.patch(KINDS.server, "s1", annotation)
        again = await w.until("Discovery")
    assert boots == 3
    assert failed.status.failure is not None
    assert failed.status.failure.reason == "NetworkBootFailed"
    assert f"kubectl annotate servers s1 {KINDS.key('operation')}=retry" in failed.status.failure.message
    assert again.status.boot_attempts == 0
    assert KINDS.key("operation") not in again.metadata.annotations


@pytest.mark.behaviour(
    "Server: discovery",
    "The report of a boot that has failed is refused.",
    go="Compares time stamps.",
)
async def test_the_report_of_a_former_boot_is_not_accepted() -> None:
    """A window that has closed takes no report: the state machine of the window refuses it."""
    async with world(discovery_timeout=100.0, boot_retry=10.0) as w:
        await w.add_server()
        await w.until("Discovery")
        await w.config_ready("s1")
        await w.until_true(lambda s: s.status.power_state == "On")
        await w.fetch_script()
        await w.fetch_ignition()
        server = await w.until_true(lambda s: s.status.boot_attempts == 1, within=300)
        old = server.status.boot_window
        with pytest.raises(boot_window.Refused) as refused:
            boot_window.accept_report(old, w.clock(), token="r")
    assert refused.value.reason == "BootWindowClosed"


async def test_a_contested_boot_is_stopped_and_starts_again_with_an_event() -> None:
    """When two parties asked for the script the machine goes off, and a new window opens."""
    async with world() as w:
        await w.add_server()
        await w.until("Discovery")
        await w.config_ready("s1")
        first = await w.until_true(lambda s: s.status.power_state == "On")
        await w.window(boot_window.contest)
        again = await w.until_true(
            lambda s: (
                s.status.boot_window is not None
                and first.status.boot_window is not None
                and s.status.boot_window.id != first.status.boot_window.id
            )
        )
        await w.until_true(lambda s: s.status.power_state == "On")
        reasons = {e.reason for e in await w.events()}
    assert again.status.boot_window is not None
    assert again.status.boot_window.phase == Phase.OPEN
    assert w.bmc.writes()[:4] == ["set_network_boot", "power_on", "force_off", "set_network_boot"]
    assert "BootContested" in reasons


async def test_a_boot_configuration_in_error_is_named_and_mended_by_itself() -> None:
    """The image's error reaches the Server's columns; Ready afterwards lets it go on."""
    async with world(boot_config_timeout=120.0) as w:
        await w.add_server()
        await w.until("Discovery")
        await w.config_ready("s1", state="Error", message="the image reg/probe:1 does not exist")
        failed = await w.until("Error")
        await w.config_ready("s1")
        await w.until("Discovery")
    assert failed.status.failure is not None
    assert "reg/probe:1 does not exist" in failed.status.failure.message


@pytest.mark.parametrize("seconds", [0.3, 0.8, 2.0, 3.5, 6.0, 10.0])
async def test_a_manager_killed_during_a_claims_boot_causes_no_second_boot(seconds: float) -> None:
    """Whenever we are killed and restarted, the tenant's machine boots the network exactly once for its claim."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await w.add_claim()
        await w.until_true(lambda s: s.spec.boot_configuration_ref is not None)
        await asyncio.sleep(0.2)
        await w.config_ready("c1", "default")
        await asyncio.sleep(seconds)
        await w.restart()
        await w.until_true(lambda s: s.status.power_state == "On" and s.status.boot_window is not None)
        await w.fetch_script()
        await w.fetch_ignition()
        await w.until_true(lambda s: s.status.tenancy.boot is not None)
        await w.restart(3)
        await asyncio.sleep(400)
        server = await w.server()
    assert w.bmc.network_boots == 2
    assert server.status.power_state == "On"


@pytest.mark.behaviour(
    "Server: errors and deletion",
    "A claimed Server that lost its status resumes in Reserved without discovery or network boot.",
    issues=(1108,),
)
async def test_a_claimed_server_that_lost_its_status_is_left_alone() -> None:
    """A restored backup resumes in Reserved: no discovery, no network boot, only the claim's power."""
    async with world() as w:
        await _claimed_and_booted(w)
        await w.runtime.stop(grace=0.0)
        await w.client.patch_status(KINDS.server, "s1", {"status": None})
        w.bmc.calls.clear()
        await w.restart()
        server = await w.until("Reserved")
        await asyncio.sleep(300)
    assert w.bmc.writes() == []
    assert server.spec.server_claim_ref is not None


@pytest.mark.behaviour(
    "ServerClaim", "A new claim with the name of a deleted one gets the server after Cleanup only.", issues=(773,)
)
async def test_a_new_claim_with_the_old_name_does_not_inherit_the_machine() -> None:
    """The server knows its tenant by UID: the former tenant is cleaned up before the namesake gets it."""
    async with world() as w:
        await _claimed_and_booted(w)
        await w.runtime.stop(grace=0.0)
        await w.client.delete(KINDS.claim, "c1", "default")
        namesake = await w.add_claim()
        w.bmc.calls.clear()
        await w.restart()
        await w.until("Cleanup")
        await w.until_true(lambda s: s.status.tenancy.uid == namesake.metadata.uid)
        await w.boot_claim()
    assert w.bmc.writes()[:3] == ["graceful_off", "set_network_boot", "power_on"]


@pytest.mark.behaviour("ServerClaim", "A claim whose Server is deleted is Unbound, with the reason.")
async def test_a_claim_whose_server_is_deleted_says_so() -> None:
    """The claim is unbound with the reason; the machine is not changed, because its owner is unknown."""
    async with world() as w:
        await _claimed_and_booted(w)
        w.bmc.calls.clear()
        await w.client.delete(KINDS.server, "s1")
        claim = await w.until_claim(lambda c: c.status.phase == "Unbound")
        await asyncio.sleep(300)
    assert w.bmc.writes() == []
    assert any((c.type, c.status, c.reason) == ("Bound", "False", "ServerLost") for c in claim.status.conditions)


async def test_an_ignored_server_is_not_touched() -> None:
    """operation=ignore stops every reconcile."""
    async with world() as w:
        await w.runtime.stop(grace=0.0)
        await w.add_server()
        annotation = {"metadata": {"annotations": {KINDS.key("operation"): "ignore"}}}
        await w.client.patch(KINDS.server, "s1", annotation)
        await w.restart()
        await asyncio.sleep(30)
        server = await w.server()
    assert server.status.state == ""
    assert w.bmc.calls == []


@pytest.mark.behaviour("Server: power and resets", "An unknown operation is refused with an Event and removed.")
async def test_an_unknown_operation_is_refused_with_an_event_and_removed() -> None:
    """What is not supported does not stay on the object as if it were pending."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        annotation = {"metadata": {"annotations": {KINDS.key("operation"): "self-destruct"}}}
        await w.client.patch(KINDS.server, "s1", annotation)
        server = await w.until_true(lambda s: KINDS.key("operation") not in s.metadata.annotations)
        await asyncio.sleep(1)
        reasons = {e.reason for e in await w.events()}
    assert server.status.state == "Available"
    assert "UnsupportedOperation" in reasons


async def test_conflicting_writes_are_retried_and_lose_nothing() -> None:
    """A Server that another client labels continuously still reaches Available."""
    async with world() as w:
        await w.add_server()
        busy = asyncio.create_task(_label_for_ever(w))
        await w.discover()
        busy.cancel()
        server = await w.server()
    assert server.status.state == "Available"
    assert int(server.metadata.labels["n"]) > 10


async def _label_for_ever(w: World) -> None:
    number = 0
    while True:
        number += 1
        change: dict[str, Any] = {"metadata": {"labels": {"n": str(number)}}}
        try:
            await w.client.patch(KINDS.server, "s1", change)
        except Conflict:
            continue
        await asyncio.sleep(0.4)


async def _claimed_and_booted(w: World) -> None:
    await w.add_server()
    await w.discover()
    await w.add_claim()
    await w.boot_claim()
    await w.until_true(lambda s: not s.status.waiting_for)


async def test_a_request_whose_note_got_lost_on_the_way_back_is_made_at_once() -> None:
    """The API kept the request for Off, its answer never came: the machine is switched off without the long wait."""
    async with world() as w:
        lost: list[float] = []

        async def trap(what: str, when: str) -> None:
            request = (await w.server()).status.power_request if what.startswith("status Server ") else None
            if when == "after" and request is not None and request.target == "Off" and not lost:
                lost.append(asyncio.get_running_loop().time())
                raise Unavailable("the answer is lost")

        await w.add_server()
        w.tap.trap = trap
        await w.discover()
        await w.until("Available")
        took = asyncio.get_running_loop().time() - lost[0]
    assert took < w.settings.graceful_timeout / 2
    assert w.bmc.power == "Off"
