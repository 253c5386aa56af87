"""What a user sees when a machine fails, or another one meddles, at each step: rows of docs/failures.md."""

import asyncio

import msgspec
import pytest

from tests.sim.failing import ERASED, FailingPlane, Fault, Row, at
from tests.sim.failures import check, live

pytestmark = [pytest.mark.looptime, pytest.mark.life]
AGAIN = "Ready=False BootRetry, Event NetworkBootFailed"


async def _lose_power(world: FailingPlane) -> None:
    world.machine.lose_power()


async def _press_the_button(world: FailingPlane) -> None:
    """And give us time to see it."""
    world.machine.press_power_button()
    await asyncio.sleep(120)


async def _ask_for_its_boot(world: FailingPlane) -> None:
    """The other machine asks for what the first one is about to boot."""
    first, second = world.fleet.machines
    for path in (f"/ipxe/{first.identity.uuid}", f"/ignition/{first.identity.uuid}?token=guess"):
        reply = await world.network.request(
            "GET", world.config.boot_url + path, headers={}, body=b"", source_ip=second.identity.host_ip
        )
        second.note("fetch", path=path.partition("?")[0], status=reply[0], bytes=len(reply[2]))


async def _no_leases(world: FailingPlane) -> None:
    """Nobody knows which address is whose."""
    world.machine.faults.unreported_lease = True


async def _send_old_report(world: FailingPlane) -> None:
    """What the probe reported at the discovery arrives once more, with each token that the machine has had."""
    for token in list(world.machine.secrets):
        body = msgspec.json.encode({"systemUUID": world.machine.identity.uuid, "data": {"networkInterfaces": []}})
        await world.network.request(
            "POST", f"{world.config.registry_url}/register", headers={"authorization": f"Bearer {token}"},
            body=body, source_ip=world.machine.identity.host_ip,
        )  # fmt: skip


async def _is_not_held_up(world: FailingPlane) -> None:
    """Whoever asked got nothing, and the boot went on."""
    assert world.machine in world.tenants()


ROWS = (
    *at("enrolment", "never_starts never_reports", wait="ProbeReport", says=AGAIN, minutes=13),
    *at("claim", "never_starts boots_disk dies_after_script", wait="ClaimBoot", says=AGAIN, minutes=13),
    *at("release", "never_starts dies_after_script never_reports", wait="Sanitization", says=AGAIN, minutes=15,
        config=ERASED),
    *at("enrolment", "reports_late", wait="ProbeReport"),
    *at("enrolment", "reports_twice", says="Event TokenSpent"),
    *at("enrolment", "reports_other", wait="ProbeReport", says=f"{AGAIN}, Event TokenInvalid, Event TokenSpent",
        machines=2, minutes=13),
    *at("boot", "the report of a former boot arrives", inject=Fault(_send_old_report), minutes=5,
        says="Event TokenSpent"),
    *at("erasure", "the report of a former boot arrives", inject=Fault(_send_old_report), minutes=5,
        says="Event TokenInvalid, Event PurposeMismatch"),
    *at("enrolment claim", "loses_answers", minutes=5),
    *at("release", "loses_answers", minutes=5, config=ERASED),
    *at("claim", "second_fetch", says="Event BootWindowClosed"),
    *at("discovery", "the power is lost", wait="PowerOn", inject=Fault(_lose_power), minutes=5),
    *at("report", "the power is lost", wait="ProbeReport", says=AGAIN, inject=Fault(_lose_power), minutes=5),
    *at("boot", "the power is lost", wait="ClaimBoot", says=AGAIN, inject=Fault(_lose_power), minutes=5),
    *at("tenant", "the power is lost", says="Event UnexpectedPower, ServerClaim: Ready=False PowerPending",
        inject=Fault(_lose_power), minutes=5),
    *at("claim", "somebody presses the power button", says="Event UnexpectedPower",
        inject=Fault(_press_the_button), minutes=5),
    *at("release", "ignores_graceful", wait="PowerOff", says="Event ForcedOff"),
    *at("boot", "another machine asks for its boot script", says="Event ClientNotLeased, Event TokenInvalid",
        inject=Fault(_ask_for_its_boot), minutes=5, machines=2, also=_is_not_held_up),
    *at("report", "another machine asks for its boot script", says="Event ClientNotLeased, Event TokenSpent",
        inject=Fault(_ask_for_its_boot), minutes=5, machines=2),
    *at("report boot", "another machine contests its boot script", wait="BootConfirmation",
        says="Event BootContested, Event BootWindowClosed, Ready=False BootConfirmation",
        inject=Fault(_ask_for_its_boot, prepare=_no_leases), minutes=20, machines=2),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_fault_of_the_machine_is_seen_and_left_behind(row: Row) -> None:
    """It shows as the page says, and nothing worse does; mended, everything comes to rest."""
    check(row, await live(row))
