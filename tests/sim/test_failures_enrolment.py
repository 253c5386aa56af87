"""BMCs that the enrolment policy or their BMCSecret does not admit: rows of docs/failures.md."""

from dataclasses import replace

import pytest

from metal.api.names import APPROVAL
from metal.config.options import Enrolment
from metal.controllers.shared.access.enrolment_policy import APPROVED
from metal.sim.bmc.redfish_service import SimBMC
from metal.sim.machine.identity import Board
from tests.sim.failing import Act, FailingPlane, nothing
from tests.sim.failures import check, live
from tests.sim.plane import KINDS
from tests.sim.rows import Fault, Row, at

pytestmark = [pytest.mark.looptime, pytest.mark.life]
GUEST, MAC = "guest", "02:00:00:00:00:01"
ELSEWHERE = Enrolment(networks=("203.0.113.0/24",))
MANUAL = Enrolment(approval="Manual")
UNEXPECTED = Enrolment(expected=("not-this-one",))


def _configure(enrolment: Enrolment) -> Act:
    """An administrator changes the configuration and restarts the manager."""

    async def act(world: FailingPlane) -> None:
        world.config = replace(world.config, enrolment=enrolment)
        await world.restart_manager()

    return act


async def _approve(world: FailingPlane) -> None:
    """What `metalctl approve` writes."""
    for bmc in (await world.client.list(KINDS.bmc)).items:
        body = {"metadata": {"annotations": {KINDS.key(APPROVAL): APPROVED}}}
        await world.client.patch(KINDS.bmc, bmc.metadata.name, body)


async def _borrow_secret(world: FailingPlane) -> None:
    """Another BMC object, at an address where a device records what it gets, names the BMCSecret of the first."""
    (first,) = (await world.client.list(KINDS.bmc)).items
    world.added = SimBMC(world.machine, Board("5a5a0000-0000-4000-8000-000000000001", MAC, "127.16.200.1"))
    world.fleet.bmcs[world.added.board.ip] = world.added
    spec = {
        "access": {"ip": world.added.board.ip, "macAddress": MAC},
        "bmcSecretRef": {"name": first.spec.bmc_secret_ref.name},
        "protocol": {"name": "Redfish", "port": first.spec.protocol.port, "scheme": first.spec.protocol.scheme},
    }
    await world.client.create(KINDS.bmc, {"metadata": {"name": GUEST}, "spec": spec})


async def _delete_guest(world: FailingPlane) -> None:
    await world.client.delete(KINDS.bmc, GUEST)
    del world.fleet.bmcs[world.added.board.ip]


async def _gets_no_password(world: FailingPlane) -> None:
    """No request is sent to the other address; the tenant's system runs."""
    assert world.added.requests.total() == 0
    assert world.machine in world.tenants()


async def _is_not_contacted(world: FailingPlane) -> None:
    """No request is sent to the BMC."""
    assert world.fleet.requests == 0


async def _is_no_server(world: FailingPlane) -> None:
    """No Server is created."""
    assert not await world.servers()


async def _keeps_running(world: FailingPlane) -> None:
    """The tenant's system runs."""
    assert world.machine in world.tenants()


OUTSIDE = Fault(
    nothing, _configure(Enrolment()), what="The address of a BMC is outside of `enrolment.networks`.",
    remedy="Correct the address, or add its network to `enrolment.networks`, and restart the manager.",
)  # fmt: skip
MOVED_OUT = replace(OUTSIDE, begin=_configure(ELSEWHERE))
PENDING = Fault(
    nothing, _approve, what="A BMC is found by its lease while `enrolment.approval` is `Manual`.",
    remedy="`metalctl approve bmc/NAME`.",
)  # fmt: skip
UNKNOWN = replace(PENDING, what="A BMC is found by its lease whose serial number is not in `enrolment.expected`.")
BORROWED = Fault(
    _borrow_secret, _delete_guest, what="A BMC object at another address names the BMCSecret of a BMC.",
    remedy="Delete the object, or list it in `allowedBMCs` of the BMCSecret.",
)  # fmt: skip

ROWS = (
    Row("address outside of the networks", "enrolment", config={"enrolment": ELSEWHERE}, inject=OUTSIDE,
        reports="Endpoint: Ready=False AddressNotAllowed, Endpoint: Event AddressNotAllowed", also=_is_not_contacted,
        message="is outside of the networks of BMCs, so it is not contacted"),
    Row("address outside of the networks", "tenant", "BMC", "BMC: Ready=False AddressNotAllowed, "
        "BMC: Event AddressNotAllowed, BMCReachable=False AddressNotAllowed, Event AddressNotAllowed, "
        "Error BMCAddressNotAllowed", inject=MOVED_OUT, also=_keeps_running,
        message="is outside of the networks of BMCs, so it is not contacted"),
    Row("BMC without approval", "enrolment", config={"enrolment": MANUAL}, inject=PENDING, also=_is_not_contacted,
        reports="Endpoint: Ready=False PendingApproval, Endpoint: Event PendingApproval, "
        "BMC: Ready=False PendingApproval, BMC: Event PendingApproval", message="metalctl approve bmc/"),
    Row("unexpected serial number", "enrolment", config={"enrolment": UNEXPECTED}, inject=UNKNOWN, also=_is_no_server,
        reports="BMC: Enrolled=False PendingApproval, BMC: Event PendingApproval",
        message="are not in enrolment.expected of the configuration"),
    *at("tenant", "BMCSecret of another BMC", inject=BORROWED, also=_gets_no_password,
        reports="BMC: Ready=False SecretNotAllowed, BMC: Event SecretNotAllowed",
        message="allowedBMCs of BMCSecret"),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_bmc_that_is_not_admitted_is_reported_and_admitted_later(row: Row) -> None:
    """Each row reports what it names and nothing worse, and ends as it says."""
    check(row, await live(row))
