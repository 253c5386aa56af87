"""Restarts of a BMC: how and how often they are sent, and what is reported until the BMC answers again."""

import asyncio
from typing import Any

import pytest

from metal.bmc.errors import (
    BMCAuthError,
    BMCBusy,
    BMCError,
    BMCForbidden,
    BMCNotFound,
    BMCServerError,
    BMCTimeout,
    BMCUnreachable,
)
from metal.bmc.systems import ManagerInfo
from metal.kube.meta.conditions import find
from tests.controllers.rack import KINDS, Rack, RackBMC, condition, rack, ready, soon, system

pytestmark = pytest.mark.looptime
GRACEFUL, SSH = "graceful-restart-bmc", "force-ssh-reset-bmc"
DELL = {"info": ManagerInfo(uri="m", manufacturer="Dell Inc.")}
ILL = [BMCServerError("500"), BMCBusy("503"), BMCUnreachable("connection refused"), BMCTimeout("no answer")]


async def with_reset(r: Rack, status: str, *, within: float = 10.0) -> Any:
    """Wait for the condition Reset to have this status."""

    async def check() -> Any:
        found = await r.bmc()
        told = [c for c in found.status.conditions if c.type == "Reset"]
        return found if told and told[0].status == status else None

    return await soon(check, within=within)


async def known(r: Rack, **options: Any) -> RackBMC:
    """A BMC that was healthy once, so that its manufacturer is known."""
    bmc = r.plug(1, **(DELL | options))
    await r.add_bmc(1)

    async def well() -> bool:
        found = await r.bmc()
        return bool(found.status.conditions) and ready(found)[0] == "True"

    await soon(well)
    return bmc


def told(bmc: Any) -> tuple[str, str]:
    """Status and reason of the Reset condition."""
    found = condition(bmc, "Reset")
    return found.status, found.reason


@pytest.mark.behaviour(
    "BMC", "A restart is sent over SSH when Redfish answers 5xx or does not answer.", issues=(448, 453, 1106)
)
@pytest.mark.parametrize("failure", ILL, ids=lambda failure: type(failure).__name__)
async def test_where_redfish_fails_the_restart_goes_over_ssh(failure: BMCError) -> None:
    """After 5xx or no answer the vendor's command runs once; when the BMC answers, Reset is False and has the time."""
    async with rack() as r:
        bmc = await known(r)
        bmc.failure = failure
        await r.operate(KINDS.bmc, "b1", GRACEFUL)
        pending = await with_reset(r, "True")
        await asyncio.sleep(120)
        bmc.failure = None
        back = await with_reset(r, "False", within=75)
        events = await r.events()
    assert told(pending) == ("True", "UserRequested")
    assert r.shell.commands == ["192.0.2.1 racreset"]
    assert told(back) == ("False", "ResetComplete")
    assert back.status.restart.method == "SSH"
    assert back.status.last_reset_time is not None
    assert KINDS.key("operation") not in back.metadata.annotations
    assert ("b1", "TryingSSH") in events


async def test_a_bmc_that_answers_is_restarted_over_redfish_only() -> None:
    """SSH is not used."""
    async with rack() as r:
        bmc = await known(r)
        await r.operate(KINDS.bmc, "b1", GRACEFUL)
        await with_reset(r, "True")
        back = await with_reset(r, "False", within=75)
    assert bmc.calls.count("reset_manager") == 1
    assert (r.shell.commands, back.status.restart.method) == ([], "Redfish")


async def test_ssh_can_be_asked_for() -> None:
    """force-ssh-reset-bmc sends no Redfish request, and uses the credentials of the BMCSecret."""
    async with rack() as r:
        bmc = await known(r)
        await r.operate(KINDS.bmc, "b1", SSH)
        pending = await with_reset(r, "True")
        await soon(lambda: asyncio.sleep(0, r.shell.commands))
    assert bmc.calls.count("reset_manager") == 0
    assert (r.shell.commands, r.shell.offered) == (["192.0.2.1 racreset"], ["pw-factory"])
    assert pending.status.state == "Pending"
    assert pending.status.waiting_for == f"the BMC to restart, until {pending.status.restart.until:%H:%M:%S} UTC"


async def test_the_manufacturer_of_a_system_will_do() -> None:
    """If the BMC reports no manufacturer, that of its system is used."""
    async with rack() as r:
        await known(r, info=ManagerInfo(uri="m"), present=(system(1),))
        name = "b1-system-0"
        await r.client.patch_status(KINDS.bmc, "b1", {"status": {"manufacturer": None}})
        await r.client.patch_status(KINDS.server, name, {"status": {"manufacturer": "Lenovo"}})
        await asyncio.sleep(0.1)
        await r.operate(KINDS.bmc, "b1", SSH)
        await soon(lambda: asyncio.sleep(0, r.shell.commands))
    assert r.shell.commands == ["192.0.2.1 resetsp"]


@pytest.mark.behaviour("BMC", "A failed SSH restart sets Reset=False with its reason and can be requested again.")
@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (BMCUnreachable("refused"), "ConnectionFailed"), (BMCAuthError("wrong password"), "AuthenticationFailed"),
        (BMCServerError("unknown command"), "InternalServerError"), (BMCTimeout("mute"), "Timeout"),
    ],
)  # fmt: skip
async def test_a_failure_of_ssh_ends_the_restart_with_its_reason(failure: BMCError, reason: str) -> None:
    """Reset is False immediately, the annotation is removed, and a new restart can be requested."""
    async with rack() as r:
        await known(r)
        r.shell.failure = failure
        await r.operate(KINDS.bmc, "b1", SSH)
        failed = await with_reset(r, "False")
        events = await r.events()
        r.shell.failure = None
        await r.operate(KINDS.bmc, "b1", SSH)
        await with_reset(r, "True")
    assert told(failed) == ("False", reason)
    assert "the BMC was not restarted" in condition(failed, "Reset").message
    assert KINDS.key("operation") not in failed.metadata.annotations
    assert ("b1", "ResetFailed") in events


async def test_a_command_line_that_hangs_ends_at_its_deadline() -> None:
    """The failure has a reason, and the BMC is checked again."""
    async with rack() as r:
        await known(r)
        r.shell.hangs = True
        await r.operate(KINDS.bmc, "b1", SSH)
        failed = await with_reset(r, "False", within=60)
        await soon(lambda: _is_ready(r), within=75)
    assert told(failed) == ("False", "Timeout")


async def test_an_unknown_make_is_not_guessed_at() -> None:
    """The message names the manufacturer and the supported ones."""
    async with rack() as r:
        await known(r, info=ManagerInfo(uri="m", manufacturer="Contoso"))
        await r.operate(KINDS.bmc, "b1", SSH)
        failed = await with_reset(r, "False")
    assert told(failed) == ("False", "NotSupported")
    message = condition(failed, "Reset").message
    assert "of Contoso over SSH is not supported; supported are Dell, HPE and Lenovo" in message
    assert r.shell.commands == []


@pytest.mark.parametrize("failure", [BMCForbidden("no privilege"), BMCNotFound("no manager")])
async def test_what_no_restart_can_mend_is_no_case_for_ssh(failure: BMCError) -> None:
    """A BMC that rejects the request is not restarted over SSH."""
    async with rack() as r:
        bmc = await known(r)
        bmc.failure = failure
        await r.operate(KINDS.bmc, "b1", GRACEFUL)
        failed = await with_reset(r, "False")
    assert told(failed) == ("False", failure.reason)
    assert r.shell.commands == []


@pytest.mark.behaviour("BMC", "No second restart is sent while the first one is awaited.")
async def test_no_second_restart_is_sent_while_the_first_is_waited_for() -> None:
    """Neither a second annotation nor a manager that was killed right after the request sends another one."""
    async with rack() as r:
        bmc = await known(r)
        bmc.failure = BMCUnreachable("dead")
        await r.operate(KINDS.bmc, "b1", SSH)
        await with_reset(r, "True")
        await asyncio.sleep(60)
        await r.operate(KINDS.bmc, "b1", SSH)
        await r.restart()
        await asyncio.sleep(120)
        after, events = await r.bmc(), await r.events()
    assert len(r.shell.commands) == 1
    assert KINDS.key("operation") not in after.metadata.annotations
    assert ("b1", "ResetInProgress") in events


@pytest.mark.behaviour("BMC", "A manager killed right after it sent a restart does not send it again.")
async def test_a_manager_that_dies_after_the_command_does_not_send_it_again() -> None:
    """The request is recorded before it is sent, so the annotation that is left counts as carried out."""
    async with rack() as r:
        bmc = await known(r)
        bmc.failure = BMCUnreachable("dead")
        write = r.client.patch

        async def killed(kind: Any, *arguments: Any, **options: Any) -> Any:
            if kind.kind == "BMC" and KINDS.key("operation") in str(arguments):
                raise asyncio.CancelledError
            return await write(kind, *arguments, **options)

        r.client.patch = killed  # type: ignore[method-assign]  # the process dies before the annotation is gone
        await r.operate(KINDS.bmc, "b1", SSH)
        await with_reset(r, "True")
        await soon(lambda: asyncio.sleep(0, r.shell.commands))
        await r.runtime.stop(grace=0.0)
        r.client.patch = write  # type: ignore[method-assign]  # the next process
        assert (await r.bmc()).metadata.annotations[KINDS.key("operation")] == SSH
        await r.start(2)
        await asyncio.sleep(120)
        after = await r.bmc()
    assert len(r.shell.commands) == 1
    assert KINDS.key("operation") not in after.metadata.annotations


@pytest.mark.behaviour("BMC", "A BMC that does not return from a restart ends it with Reset=False after a deadline.")
async def test_a_bmc_that_does_not_come_back_is_waited_for_until_the_deadline() -> None:
    """Then Reset is False with the way out, also when the credentials were refused in between."""
    for failure in (BMCUnreachable("dead"), BMCAuthError("who are you?")):
        async with rack(reset_timeout=300.0) as r:
            bmc = await known(r)
            await r.operate(KINDS.bmc, "b1", SSH)
            await with_reset(r, "True")
            bmc.failure = failure
            await asyncio.sleep(250)
            waiting = await r.bmc()
            late = await with_reset(r, "False", within=60)
        assert told(waiting)[0] == "True"
        assert told(late) == ("False", "ResetTimeout")
        assert "force-ssh-reset-bmc" in condition(late, "Reset").message


async def test_a_failed_bmc_is_restarted_by_itself_only_where_that_is_wanted() -> None:
    """The default is off."""
    async with rack() as r:
        bmc = await known(r)
        bmc.failure = BMCUnreachable("dead")
        await asyncio.sleep(7200)
    assert (r.shell.commands, bmc.calls.count("reset_manager")) == ([], 0)


@pytest.mark.behaviour(
    "BMC", "With `bmc.autoReset` a failed BMC is restarted once an hour, also when TCP connections fail.", issues=(713,)
)
@pytest.mark.parametrize("failure", ILL, ids=lambda failure: type(failure).__name__)
async def test_a_failed_bmc_is_restarted_once_and_not_again_for_an_hour(failure: BMCError) -> None:
    """It is restarted after bmc.resetAfter, also when TCP fails; an hour later once more."""
    async with rack(auto_reset=True, reset_after=600.0) as r:
        bmc = await known(r)
        bmc.failure = failure
        await asyncio.sleep(500)
        early = list(r.shell.commands)
        await asyncio.sleep(300)
        resetting = await r.bmc()
        await asyncio.sleep(2700)
        once = list(r.shell.commands)
        await asyncio.sleep(1500)
        again = list(r.shell.commands)
        bmc.failure = None
        await soon(lambda: _is_ready(r), within=75)
    assert early == []
    assert told(resetting) == ("True", "AutoResetting")
    assert (len(once), len(again)) == (1, 2)


@pytest.mark.parametrize("failure", [BMCAuthError("wrong"), BMCForbidden("no privilege")])
async def test_a_bmc_that_only_refuses_us_is_not_restarted(failure: BMCError) -> None:
    """A restart does not help against wrong credentials."""
    async with rack(auto_reset=True, reset_after=60.0) as r:
        bmc = await known(r)
        bmc.failure = failure
        await asyncio.sleep(3600)
    assert r.shell.commands == []


@pytest.mark.behaviour("BMC", "The SSH host key is pinned at first use; a changed key is refused until it is accepted.")
async def test_the_host_key_is_pinned_at_first_use_and_a_changed_one_is_refused() -> None:
    """An administrator must accept the other key; the password is not sent before."""
    async with rack() as r:
        await known(r)
        await r.operate(KINDS.bmc, "b1", SSH)
        pinned = await with_reset(r, "True")
        await with_reset(r, "False", within=75)
        r.shell.key = "SHA256:second"
        await r.operate(KINDS.bmc, "b1", SSH)
        refused = await soon(lambda: _reset_reason(r, "HostKeyChanged"))
        offered = len(r.shell.offered)
        await r.operate(KINDS.bmc, "b1", "accept-host-key")
        await asyncio.sleep(2)
        accepted: Any = await r.bmc()
        await r.operate(KINDS.bmc, "b1", SSH)
        await with_reset(r, "True")
        events = await r.events()
    assert pinned.status.ssh_host_key.sha256 == "SHA256:first"
    assert refused.status.ssh_host_key.refused == "SHA256:second"
    assert "is SHA256:second and was SHA256:first" in condition(refused, "Reset").message
    assert "accept-host-key" in condition(refused, "Reset").message
    assert offered == 1
    assert accepted.status.ssh_host_key.sha256 == "SHA256:second"
    assert len(r.shell.offered) == 2
    assert {("b1", "HostKeyPinned"), ("b1", "HostKeyAccepted")} <= set(events)


@pytest.mark.behaviour(
    "BMC", "A host key in `sshHostKey.refused` sets HostKeyTrusted=False and blocks SSH until accept-host-key."
)
async def test_a_host_key_that_a_console_refused_is_a_condition_until_it_is_accepted() -> None:
    """Console and controllers share one pin: what the console wrote is reported immediately and can be accepted."""
    async with rack() as r:
        await known(r)
        await r.user.patch_status(KINDS.bmc, "b1", {"status": {"sshHostKey": {"sha256": "SHA256:old"}}})
        trusted = await soon(lambda: _host_key(r, "True"))
        changed = {"status": {"sshHostKey": {"refused": "SHA256:first"}}}
        await r.user.patch_status(KINDS.bmc, "b1", changed)
        refused = await soon(lambda: _host_key(r, "False"))
        await r.operate(KINDS.bmc, "b1", SSH)
        restart = await with_reset(r, "False")
        kept = list(r.shell.offered)
        await r.operate(KINDS.bmc, "b1", "accept-host-key")
        accepted = await soon(lambda: _host_key(r, "True"))
        await r.operate(KINDS.bmc, "b1", SSH)
        await with_reset(r, "True")
        events = await r.events()
    assert condition(trusted, "HostKeyTrusted").reason == "HostKeyPinned"
    assert condition(refused, "HostKeyTrusted").reason == "HostKeyChanged"
    message = condition(refused, "HostKeyTrusted").message
    assert "SHA256:first instead of SHA256:old" in message
    assert "kubectl annotate bmcs b1 metal.ironcore.dev/operation=accept-host-key" in message
    assert (told(restart), kept) == (("False", "HostKeyChanged"), [])
    assert (accepted.status.ssh_host_key.sha256, accepted.status.ssh_host_key.refused) == ("SHA256:first", "")
    assert len(r.shell.offered) == 1
    assert {("b1", "HostKeyChanged"), ("b1", "HostKeyAccepted")} <= set(events)


async def test_the_pinned_host_key_shown_again_ends_the_condition() -> None:
    """The other device is gone, and its key need not be accepted."""
    async with rack() as r:
        await known(r)
        pin = {"sha256": "SHA256:first", "refused": "SHA256:stranger"}
        await r.user.patch_status(KINDS.bmc, "b1", {"status": {"sshHostKey": pin}})
        await soon(lambda: _host_key(r, "False"))
        await r.operate(KINDS.bmc, "b1", SSH)
        after = await soon(lambda: _host_key(r, "True"))
    assert (after.status.ssh_host_key.sha256, after.status.ssh_host_key.refused) == ("SHA256:first", "")


async def _host_key(r: Rack, status: str) -> Any:
    found = await r.bmc()
    said = find(found.status.conditions, "HostKeyTrusted")
    return found if said is not None and said.status == status else None


async def _reset_reason(r: Rack, reason: str) -> Any:
    found = await r.bmc()
    return found if told(found)[1] == reason else None


async def _is_ready(r: Rack) -> bool:
    return ready(await r.bmc())[0] == "True"
