"""BMCs that fail, at each step of a server's life: rows of docs/failures.md."""

import asyncio
from typing import Any

import pytest

from metal.config import BMCOptions, Listen, Timeouts
from metal.sim.bmc.redfish_errors import Refusal
from tests.sim.failing import FailingPlane
from tests.sim.failures import check, live
from tests.sim.plane import KINDS
from tests.sim.rows import FAILED, OPEN, End, Fault, Row, at, attempts

pytestmark = [pytest.mark.looptime, pytest.mark.life]


RESTARTS = "BMCReachable=False ConnectionFailed, Event ConnectionFailed, Event Connected"


def away(reason: str, message: str) -> dict[str, Any]:
    """What a Server and its BMC report of a BMC that fails for long."""
    return {
        "wait": "BMC",
        "reports": f"BMCReachable=False {reason}, Event {reason}, BMC: Ready=False {reason}, BMC: Event {reason}, "
        f"Error BMC{reason}",
        "message": message,
    }


def unborn(reason: str, message: str) -> dict[str, Any]:
    """What an Endpoint reports."""
    return {"reports": f"Endpoint: Ready=False {reason}, Endpoint: Event {reason}", "message": message}


async def _bmc(world: FailingPlane) -> Any:
    (bmc,) = (await world.client.list(KINDS.bmc)).items
    return bmc


async def _restart(world: FailingPlane) -> None:
    world.fleet.bmcs[world.machine.identity.bmc_ip].restart()


def _resets(world: FailingPlane) -> list[str]:
    """Every reset of any machine since the beginning."""
    return [
        str(e.details["type"]) for m in world.fleet.machines for e in world.fleet.history.of(m.identity.uuid, "reset")
    ]


async def _swap(world: FailingPlane) -> None:
    world.before = len(_resets(world))
    await _swap_back(world)


async def _swap_back(world: FailingPlane) -> None:
    first, second = (world.fleet.bmcs[machine.identity.bmc_ip] for machine in world.fleet.machines)
    first.machine, second.machine = second.machine, first.machine


async def _no_machine_is_reset(world: FailingPlane) -> None:
    """No reset is sent to either machine."""
    assert len(_resets(world)) == world.before


async def pin_first(world: FailingPlane) -> None:
    """An administrator has the certificate of the BMC pinned."""
    tls = {"insecureSkipVerify": None, "trustOnFirstUse": True}
    await world.client.patch(KINDS.bmc, (await _bmc(world)).metadata.name, {"spec": {"tls": tls}})
    await asyncio.sleep(120)


async def _show_another_certificate(world: FailingPlane) -> None:
    """Once the first one was pinned."""
    await pin_first(world)
    bmc = world.fleet.bmcs[world.machine.identity.bmc_ip]
    bmc.certificate, world.before = "ab" * 32, bmc.requests.total()


async def _nothing_is_sent(world: FailingPlane) -> None:
    """The BMC receives no request, and the tenant's machine keeps running."""
    bmc = world.fleet.bmcs[world.machine.identity.bmc_ip]
    assert bmc.requests.total() == world.before
    assert world.machine in world.tenants()


async def _accept_certificate(world: FailingPlane) -> None:
    note = {"metadata": {"annotations": {KINDS.key("operation"): "accept-certificate"}}}
    await world.client.patch(KINDS.bmc, (await _bmc(world)).metadata.name, note)


async def _hang_for_good(world: FailingPlane) -> None:
    """The manufacturer's restart command is known."""
    made_by = {"status": {"manufacturer": "Dell Inc."}}
    await world.client.patch_status(KINDS.bmc, (await _bmc(world)).metadata.name, made_by)
    world.machine.faults.hangs = True


async def _untouched(world: FailingPlane) -> None:
    """The tenant's machine keeps running; no reset was sent since its boot."""
    assert _resets(world) in (["On", "ForceOff", "On"], ["On", "GracefulShutdown", "On"])
    assert world.machine in world.tenants()


async def _few_writes(world: FailingPlane) -> None:
    """The BMC receives fewer than 60 requests for changes in that time."""
    requests = world.fleet.bmcs[world.machine.identity.bmc_ip].requests
    assert requests["POST"] + requests["PATCH"] < 60


async def _few_requests(world: FailingPlane) -> None:
    """The BMC receives at most two requests for each 30 s of `Retry-After`, and the tenant's machine keeps running."""
    unavailable = world.fleet.bmcs[world.machine.identity.bmc_ip].unavailable
    assert 0 < unavailable <= 2 * 16 * 2
    assert world.machine in world.tenants()


async def _others_are_well(world: FailingPlane) -> None:
    """The servers of all other BMCs are Available."""
    states = [server.status.state for server in await world.servers()]
    assert states == ["Available"] * (len(world.fleet.machines) - 1)


async def _override_is_off(world: FailingPlane) -> None:
    """The BMC's boot override is disabled, and the tenant's system runs."""
    assert world.machine.state.override.enabled == "Disabled"
    assert world.machine in world.tenants()


def in_post(answer: Refusal) -> Fault:
    """The BMC of another vendor answers changes of the boot override so: the host is in POST."""

    async def begin(world: FailingPlane) -> None:
        world.fleet.bmcs[world.machine.identity.bmc_ip].post = answer
        world.machine.faults.in_post = True

    async def remove(world: FailingPlane) -> None:
        world.machine.faults.in_post = False

    what = (
        f"The BMC answers every change of the boot override with {answer.status} {answer.registry}.{answer.message_id}."
    )
    return Fault(begin, remove, what=what)


RESTART = Fault(_restart, what="The BMC restarts: it is away for 150 s and has lost its sessions.")
HANGS = Fault(_hang_for_good, what="The BMC takes requests and does not answer until it is restarted.")
SWAPPED = Fault(
    _swap, _swap_back, what="The BMCs of two machines have exchanged their addresses.", remedy="Correct the addresses."
)
CERTIFICATE = Fault(
    _show_another_certificate, _accept_certificate, what="The BMC shows another certificate than the pinned one.",
    remedy="Set `operation=accept-certificate` on the BMC.",
)  # fmt: skip
UNAVAILABLE = "was answered 503 Service Unavailable"
DEAD, MUTE, ILL = "No connection to", "did not answer GET", "was answered 500 Internal Server Error"
REFUSED, LOST = "refused the user name or password", "answers 401 all the same"
REJECTED = "refused all credentials for the prefix"
OFF, ON = "the BMC reports On", "the BMC reports Off"
SERVER, BMC, LATER, DONE = End.RETRY_SERVER, End.RETRY_BMC, End.WITHIN_AN_HOUR, End.COMPLETES
REJECTS = (
    "BMCOperational=False InternalServerError, Event InternalServerError, Error BMCInternalServerError, Event Succeeded"
)
REJECTED_WRITES: dict[str, Any] = {
    "wait": "BMCOperation", "minutes": 20, "also": _few_writes, "config": {"timeouts": Timeouts()},
    "message": "failed: … was answered 500 Internal Server Error",
}  # fmt: skip
BUSY = "BMCOperational=False ServiceUnavailable, Event ServiceUnavailable, Event Succeeded"
IN_POST = (
    (Refusal(400, "SWC0700", "iDRAC is not ready. The configuration values cannot be accessed.", registry="IDRAC.2.8"),
     "iDRAC is not ready"),
    (Refusal(500, "RAC0508", "An unexpected error occurred. Wait for few minutes and retry.", registry="IDRAC.2.8"),
     "Wait for few minutes"),
)  # fmt: skip

ROWS = (
    Row("dead", "enrolment", machines=3, also=_others_are_well, **unborn("ConnectionFailed", DEAD)),
    *at("inventory discovery report claim boot release", "dead", **away("ConnectionFailed", DEAD)),
    Row("dead", "erasure", minutes=20, **away("ConnectionFailed", DEAD)),
    Row("dead", "tenant", also=_untouched, **away("ConnectionFailed", DEAD)),
    Row("hangs", "enrolment", **unborn("Timeout", "did not answer")),
    *at("claim", "hangs", **away("Timeout", MUTE)),
    Row("hangs until it is restarted", "tenant", "BMC", "BMC: Reset=True AutoResetting, BMC: Event TryingSSH, "
        "BMC: Reset=False ResetComplete, BMCReachable=False Timeout, Event Timeout, "
        "BMCReachable=False BMCRestarting, Error BMCTimeout", minutes=40, inject=HANGS, end=End.RECOVERS,
        config={"bmc": BMCOptions(auto_reset=True, reset_after=1200.0)}, message=MUTE),
    Row("wrong_password", "enrolment", end=LATER, **unborn("AuthenticationFailed", REJECTED)),
    *at("claim tenant", "wrong_password", end=BMC, **away("AuthenticationFailed", REFUSED)),
    Row("http_401", "enrolment", end=LATER, **unborn("AuthenticationFailed", REJECTED)),
    *at("claim", "http_401", end=BMC, **away("AuthenticationFailed", LOST)),
    Row("http_500", "enrolment", **unborn("InternalServerError", ILL)),
    *at("inventory discovery release", "http_500", **away("InternalServerError", ILL)),
    Row("http_503", "enrolment", **unborn("ServiceUnavailable", UNAVAILABLE)),
    *at("discovery claim release erasure", "http_503", **away("ServiceUnavailable", UNAVAILABLE)),
    Row("http_503", "tenant", also=_few_requests, **away("ServiceUnavailable", UNAVAILABLE)),
    *at("claim", "http_5xx", reports="BMCReachable=False InternalServerError, Event InternalServerError, "
        "BMCReachable=False ServiceUnavailable, Event ServiceUnavailable", end=DONE),
    *at("claim", "rejects_writes", reports=REJECTS, **REJECTED_WRITES),
    *at("release", "rejects_writes", reports=f"{REJECTS}, Event ForcedOff", **REJECTED_WRITES),
    *at("claim", "in_post", wait="BMCBusy", minutes=8, message="while the computer system BIOS is in POST",
        reports=BUSY),
    *(Row(f"{answer.message_id} in POST", "claim", "BMCBusy", BUSY, minutes=8, inject=in_post(answer), message=text)
      for answer, text in IN_POST),
    *at("inventory discovery report boot tenant erasure", "BMC restarts", wait="BMC", inject=RESTART, reports=RESTARTS,
        minutes=5, options={"bmc_reset": 150.0}),
    *at("enrolment claim release erasure", "restarts", reports=RESTARTS, minutes=5, end=DONE),
    *at("enrolment claim", "restarts_first", wait="PowerOn", reports="BMCReachable=False ConnectionFailed, "
        "Event ConnectionFailed, Error PowerOnTimeout", end=SERVER, minutes=30, config={"timeouts": Timeouts()},
        message=ON),
    Row("restarts_first", "release", "PowerOff", "BMCReachable=False ConnectionFailed, Event ConnectionFailed, "
        "Event ForcedOff, Error PowerOffTimeout", end=SERVER, minutes=30, message=OFF),
    *at("enrolment claim", "slow", wait="PowerOn", end=DONE),
    *at("release", "stale_power", wait="PowerOff", options={"stale": 60.0}, end=DONE),
    *at("claim", "ignores_once", reports="BootOverrideCleared=True Cleared", end=DONE, also=_override_is_off),
    *at("enrolment claim", "drops_override", wait="BootRetry", reports=FAILED, end=SERVER,
        message="the BMC did not set the network boot override"),
    *at("enrolment claim", "ignores_reset", wait="PowerOn", reports="Error PowerOnTimeout", end=SERVER, message=ON),
    *at("release", "ignores_reset", wait="PowerOff", reports="Event ForcedOff, Error PowerOffTimeout", end=SERVER,
        message=OFF),
    *at("erasure", "ignores_reset", wait="PowerOff", reports="Event ForcedOff, Error PowerOffTimeout", end=SERVER,
        message=OFF),
    *attempts("lies_power", "enrolment ProbeReport, claim ClaimBoot, release Sanitization", message=OPEN),
    *at("claim", "loses_events", reports="BMC: Events=False EventsStopped, BMC: Event EventsStopped", end=DONE,
        config={"listen": Listen(events="192.0.2.100:10001")}, minutes=20, message="no event for 900 s"),
    *at("claim tenant", "two BMCs have exchanged addresses", wait="BMC", reports="BMCReachable=False WrongSystem, "
        "Event WrongSystem, Error BMCWrongSystem, BMC: Ready=False ManagerNotFound, BMC: Event ManagerNotFound",
        machines=2, inject=SWAPPED, also=_no_machine_is_reset,
        message="correct the BMC's address or spec.systemUUID"),
    Row("another certificate", "tenant", "BMC", "BMC: Ready=False CertificateChanged, BMC: Event CertificateChanged, "
        "BMCReachable=False CertificateChanged, Event CertificateChanged, Error BMCCertificateChanged",
        inject=CERTIFICATE, options={"scheme": "https"}, also=_nothing_is_sent, message="is not the pinned one"),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_fault_of_a_bmc_is_reported_and_ends(row: Row) -> None:
    """Each row reports what it names and nothing worse, and ends as it says."""
    check(row, await live(row))
