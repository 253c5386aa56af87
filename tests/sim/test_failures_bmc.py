"""What a user sees when a BMC fails, at each step of a server's life, and how it ends: rows of docs/failures.md."""

import asyncio
from typing import Any

import pytest

from metal.config import BMCOptions, Listen, Timeouts
from tests.sim.failing import ERASED, FailingPlane, Fault, Row, at
from tests.sim.failures import check, live
from tests.sim.plane import KINDS

pytestmark = [pytest.mark.looptime, pytest.mark.life]


def away(reason: str) -> dict[str, Any]:
    """How a Server, and its BMC, tell of a BMC that fails for long."""
    return {
        "wait": "BMC",
        "says": f"BMCReachable=False {reason}, Event {reason}, BMC: Ready=False {reason}, BMC: Event {reason}, "
        f"Error BMC{reason}",
    }


def unborn(reason: str) -> dict[str, Any]:
    """How an Endpoint does."""
    return {"says": f"Endpoint: Ready=False {reason}, Endpoint: Event {reason}"}


def for_long(reason: str, error: str) -> dict[str, Any]:
    """What power that does not come is told by."""
    return {"wait": reason, "says": error, "retry": "server"}


async def _bmc(world: FailingPlane) -> Any:
    (bmc,) = (await world.client.list(KINDS.bmc)).items
    return bmc


async def _restart(world: FailingPlane) -> None:
    world.fleet.bmcs[world.machine.identity.bmc_ip].restart()


async def _swap(world: FailingPlane) -> None:
    """Two BMCs have each other's address, or get their own back."""
    first, second = (world.fleet.bmcs[machine.identity.bmc_ip] for machine in world.fleet.machines)
    first.machine, second.machine = second.machine, first.machine


async def _show_another_certificate(world: FailingPlane) -> None:
    """Once the first one was pinned."""
    tls = {"insecureSkipVerify": None, "trustOnFirstUse": True}
    await world.client.patch(KINDS.bmc, (await _bmc(world)).metadata.name, {"spec": {"tls": tls}})
    await asyncio.sleep(120)
    world.fleet.bmcs[world.machine.identity.bmc_ip].certificate = "ab" * 32


async def _accept_certificate(world: FailingPlane) -> None:
    note = {"metadata": {"annotations": {KINDS.key("operation"): "accept-certificate"}}}
    await world.client.patch(KINDS.bmc, (await _bmc(world)).metadata.name, note)


async def _hang_for_good(world: FailingPlane) -> None:
    """Redfish hangs, until somebody restarts the BMC over SSH, which is known of this manufacturer."""
    made_by = {"status": {"manufacturer": "Dell Inc."}}
    await world.client.patch_status(KINDS.bmc, (await _bmc(world)).metadata.name, made_by)
    world.machine.faults.hangs = True


async def _untouched(world: FailingPlane) -> None:
    """The tenant's machine runs on, and nobody asked for a change of its power since it was booted."""
    resets = [entry.details["type"] for entry in world.fleet.history.of(world.machine.identity.uuid, "reset")]
    assert resets == ["On", "ForceOff", "On"] or resets == ["On", "GracefulShutdown", "On"]
    assert world.machine in world.tenants()


async def _others_are_well(world: FailingPlane) -> None:
    """Nobody waits for the one that is dead."""
    states = [server.status.state for server in await world.servers()]
    assert states == ["Available"] * (len(world.fleet.machines) - 1)


ROWS = (
    Row("dead", "enrolment", machines=3, also=_others_are_well, **unborn("ConnectionFailed")),
    *at("inventory discovery report claim boot release", "dead", **away("ConnectionFailed")),
    Row("dead", "erasure", minutes=20, **away("ConnectionFailed")),
    Row("dead", "tenant", also=_untouched, **away("ConnectionFailed")),
    Row("hangs", "enrolment", **unborn("Timeout")),
    *at("claim", "hangs", **away("Timeout")),
    Row("hangs for good", "tenant", "BMC", "BMC: Reset=True AutoResetting, BMC: Event TryingSSH, "
        "BMC: Reset=False ResetComplete, BMCReachable=False Timeout, Event Timeout, Error BMCTimeout", minutes=40,
        inject=Fault(_hang_for_good), config={"bmc": BMCOptions(auto_reset=True)}),
    Row("wrong_password", "enrolment", **unborn("AuthenticationFailed")),
    *at("claim tenant", "wrong_password", retry="bmc", **away("AuthenticationFailed")),
    Row("http_401", "enrolment", **unborn("AuthenticationFailed")),
    *at("claim", "http_401", retry="bmc", **away("AuthenticationFailed")),
    Row("http_500", "enrolment", **unborn("InternalServerError")),
    *at("inventory discovery release", "http_500", **away("InternalServerError")),
    *at("claim", "http_503", **away("ServiceUnavailable")),
    *at("claim", "http_5xx", says="BMCReachable=False InternalServerError, Event InternalServerError, "
        "BMCReachable=False ServiceUnavailable, Event ServiceUnavailable"),
    *at("inventory discovery report boot tenant erasure", "BMC restarts", wait="BMC", inject=Fault(_restart),
        says="BMCReachable=False ConnectionFailed, Event ConnectionFailed, Event Connected", minutes=5,
        options={"bmc_reset": 150.0}),
    *at("enrolment claim release erasure", "restarts", says="BMCReachable=False ConnectionFailed, "
        "Event ConnectionFailed, Event Connected", minutes=5),
    *at("enrolment claim", "restarts_first", wait="PowerOn", says="BMCReachable=False ConnectionFailed, "
        "Event ConnectionFailed, Error PowerOnTimeout", retry="server", minutes=20, config={"timeouts": Timeouts()}),
    Row("restarts_first", "release", "PowerOff", "BMCReachable=False ConnectionFailed, Event ConnectionFailed, "
        "Event ForcedOff, Error PowerOffTimeout", retry="server"),
    *at("enrolment claim", "slow", wait="PowerOn"),
    *at("release", "stale_power", wait="PowerOff", options={"stale": 60.0}),
    *at("claim", "ignores_once", says="BootOverrideCleared=True Cleared"),
    *at("enrolment claim", "drops_override", wait="BootRetry", says="Ready=False BootRetry, Event NetworkBootFailed, "
        "Error NetworkBootFailed", retry="server"),
    *at("enrolment claim", "ignores_reset", wait="PowerOn", says="Error PowerOnTimeout", retry="server"),
    *at("release erasure", "ignores_reset", wait="PowerOff", says="Event ForcedOff, Error PowerOffTimeout",
        retry="server"),
    Row("lies_power", "enrolment", "ProbeReport", "Ready=False BootRetry, Event NetworkBootFailed", minutes=13),
    Row("lies_power", "claim", "ClaimBoot", "Ready=False BootRetry, Event NetworkBootFailed", minutes=13),
    Row("lies_power", "release", "Sanitization", "Ready=False BootRetry, Event NetworkBootFailed", minutes=13,
        config=ERASED),
    *at("claim", "loses_events", says="BMC: Events=False EventsStopped, BMC: Event EventsStopped",
        config={"listen": Listen(events="192.0.2.100:10001")}),
    *at("claim tenant", "another BMC at its address", wait="BMC", says="BMCReachable=False WrongSystem, "
        "Event WrongSystem, SystemPresent=False SystemGone, Event SystemGone, Error BMCWrongSystem, "
        "BMC: Enrolled=False UUIDNotUnique", machines=2, inject=Fault(_swap, _swap)),
    Row("another certificate", "tenant", "BMC", "BMC: Ready=False CertificateChanged, BMC: Event CertificateChanged, "
        "BMCReachable=False CertificateChanged, Event CertificateChanged, Error BMCCertificateChanged",
        inject=Fault(_show_another_certificate, _accept_certificate), options={"scheme": "https"}),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_fault_of_the_bmc_is_seen_and_left_behind(row: Row) -> None:
    """It shows as the page says, and nothing worse does; mended, everything comes to rest."""
    check(row, await live(row))
