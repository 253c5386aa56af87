"""Machines that fail, and requests of other machines, at each step of a server's life: rows of docs/failures.md."""

import asyncio

import msgspec
import pytest

from tests.sim.failing import ERASED, FIRST_REQUEST, FailingPlane, nothing
from tests.sim.failures import check, live
from tests.sim.plane import KINDS
from tests.sim.rows import AGAIN, OPEN, SCRIPT, SILENT, STARTED, End, Fault, Row, at, attempts

pytestmark = [pytest.mark.looptime, pytest.mark.life]


async def _lose_power(world: FailingPlane) -> None:
    world.machine.lose_power()


async def _press_power_button(world: FailingPlane) -> None:
    """The operator has two minutes to notice it before the claim."""
    world.machine.press_power_button()
    await asyncio.sleep(120)


async def _ask_for_its_boot(world: FailingPlane) -> None:
    first, second = world.fleet.machines
    for path in (f"/ipxe/{first.identity.uuid}", f"/ignition/{first.identity.uuid}?token=guess"):
        reply = await world.network.request(
            "GET", world.config.boot_url + path, headers={}, body=b"", source_ip=second.identity.host_ip
        )
        world.before += reply[0] == 200
        second.note("fetch", path=path.partition("?")[0], status=reply[0], bytes=len(reply[2]))


async def _no_leases(world: FailingPlane) -> None:
    world.machine.faults.unreported_lease = True


async def _send_old_report(world: FailingPlane) -> None:
    for token in list(world.machine.secrets):
        body = msgspec.json.encode({"systemUUID": world.machine.identity.uuid, "data": {"networkInterfaces": []}})
        await world.network.request(
            "POST", f"{world.config.registry_url}/register", headers={"authorization": f"Bearer {token}"},
            body=body, source_ip=world.machine.identity.host_ip,
        )  # fmt: skip


async def _gets_nothing(world: FailingPlane) -> None:
    """The other machine gets neither script nor Ignition."""
    assert world.before == 0


async def _gets_nothing_and_boot_goes_on(world: FailingPlane) -> None:
    """The other machine gets neither script nor Ignition; the tenant's system runs."""
    await _gets_nothing(world)
    assert world.machine in world.tenants()


async def _boots_its_disk(world: FailingPlane) -> None:
    """The machine was switched on again and runs the tenant's system from its disk."""
    assert world.machine.state.os is not None
    assert world.machine.state.os.kind == "disk"


async def _hide_processors(world: FailingPlane) -> None:
    world.machine.hardware = world.machine.hardware.with_arm()
    world.machine.faults.switch("hides_processors")


async def _label(world: FailingPlane) -> None:
    (server,) = await world.servers()
    body = {"metadata": {"labels": {KINDS.key("architecture"): "arm64"}}}
    await world.client.patch(KINDS.server, server.metadata.name, body)


UNNAMED = Fault(
    nothing, _label, prepare=_hide_processors,
    what="The BMC of a machine with arm64 processors lists none, so that it is booted for amd64.",
    remedy="Set the label `metal.ironcore.dev/architecture=arm64` of the Server, or `boot.defaultArchitecture`.",
)  # fmt: skip
LOSES_POWER = Fault(_lose_power, what="The machine goes off.")
BUTTON = Fault(_press_power_button, what="The power button of an Available server is pressed.")
ASKS = Fault(_ask_for_its_boot, what="Another machine asks for this machine's boot script and Ignition.")
CONTESTS = Fault(
    _ask_for_its_boot, prepare=_no_leases,
    what="Another machine asks for this machine's boot script and Ignition; DHCP reports no leases.",
)  # fmt: skip
OLD_REPORT = Fault(_send_old_report, what="A report arrives with each token of a former boot.")
OFF = "the machine powered off before its boot was complete"
DONE = End.COMPLETES

ROWS = (
    *attempts("never_starts", "enrolment ProbeReport, claim ClaimBoot, release Sanitization", message=OPEN),
    *attempts("boots_disk", "claim ClaimBoot", message=OPEN),
    *attempts("hides_processors", "enrolment ProbeReport", inject=UNNAMED, message=SCRIPT),
    *attempts("dies_after_script", "claim ClaimBoot, release Sanitization", message=SCRIPT),
    *attempts("never_reports", "enrolment ProbeReport", message=STARTED),
    *attempts("never_reports", "release Sanitization", message=SILENT),
    *at("enrolment", "reports_late", wait="ProbeReport", end=DONE),
    *at("enrolment", "reports_twice", reports="Event TokenSpent", end=DONE,
        message="the report of this boot was accepted before"),
    *at("enrolment", "reports_other", wait="ProbeReport", reports=f"{AGAIN}, Event TokenSpent",
        machines=2, minutes=13, message=STARTED),
    *at("enrolment", "reports_other", wait="ProbeReport", machines=2, minutes=45, message=STARTED,
        reports=f"{AGAIN}, Event TokenSpent, Error NetworkBootFailed", end=End.RETRY_SERVER),
    *at("enrolment", "foreign_interface", end=End.RETRY_SERVER,
        reports="IdentityMismatch=True ForeignInterfaces, Error IdentityMismatch",
        message="network interfaces that the BMC does not show"),
    *at("boot", "report of a former boot", inject=OLD_REPORT, minutes=5, reports="Event TokenSpent",
        message="the token was used before"),
    *at("erasure", "report of a former boot", inject=OLD_REPORT, minutes=5,
        reports="Event TokenInvalid, Event PurposeMismatch", message="the token is not the one of this boot"),
    *at("enrolment claim", "loses_answers", minutes=5, end=DONE),
    *at("release", "loses_answers", minutes=5, config=ERASED, end=DONE),
    *at("claim", "second_fetch", reports="Event BootWindowClosed", end=DONE,
        message="no network boot of this server is"),
    *at("discovery", "power loss", wait="PowerOn", inject=LOSES_POWER, minutes=5),
    *at("report", "power loss", wait="ProbeReport", reports=AGAIN, inject=LOSES_POWER, minutes=5, message=OFF),
    *at("boot", "power loss", wait="ClaimBoot", reports=AGAIN, inject=LOSES_POWER, minutes=5, message=OFF),
    *at("tenant", "power loss", reports="Event UnexpectedPower, ServerClaim: Ready=False PowerPending",
        inject=LOSES_POWER, minutes=5, also=_boots_its_disk, message="it is switched on again"),
    *at("claim", "power button", reports="Event UnexpectedPower", inject=BUTTON, minutes=5,
        message="it is switched off again"),
    *at("release", "ignores_graceful", wait="PowerOff", reports="Event ForcedOff", end=DONE),
    *at("boot", "request of another machine", reports="Event ClientNotLeased, Event TokenInvalid",
        inject=ASKS, minutes=5, machines=2, also=_gets_nothing_and_boot_goes_on,
        message="DHCP leased other addresses than this one"),
    *at("report", "request of another machine", reports="Event ClientNotLeased, Event TokenSpent",
        inject=ASKS, minutes=5, machines=2, also=_gets_nothing,
        message="DHCP leased other addresses than this one"),
    *at("boot", "request of another machine without reported leases", wait="ClaimBoot", config=FIRST_REQUEST,
        reports="Event BootContested, Event BootWindowClosed, Event BootNotConfirmed",
        may_report="MachineOff", inject=CONTESTS, minutes=20, machines=2,
        message="the boot is restarted with a new token"),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_fault_of_a_machine_is_reported_and_ends(row: Row) -> None:
    """Each row reports what it names and nothing worse, and ends as it says."""
    check(row, await live(row))
