"""Objects that clients write wrongly, or with more rights than they have: rows of docs/failures.md."""

import asyncio
from typing import Any

import pytest

from metal.api.core import NAMESPACE
from metal.api.server import Server
from tests.sim.failing import ERASED, FailingPlane
from tests.sim.failures import check, live
from tests.sim.plane import KINDS
from tests.sim.rows import End, Fault, Row

pytestmark = [pytest.mark.looptime, pytest.mark.life]
TEAM = "team"


async def _server(world: FailingPlane) -> Server:
    found = await world.server_of(world.machine)
    assert found is not None
    return found


async def _change_bmc(world: FailingPlane, spec: dict[str, Any]) -> None:
    (bmc,) = (await world.client.list(KINDS.bmc)).items
    await world.client.patch(KINDS.bmc, bmc.metadata.name, {"spec": spec})


async def _ignore(world: FailingPlane, value: str | None = "ignore") -> None:
    await _remember(world)
    name = (await _server(world)).metadata.name
    await world.client.patch(KINDS.server, name, {"metadata": {"annotations": {KINDS.key("operation"): value}}})


async def _manage(world: FailingPlane) -> None:
    await _ignore(world, None)


async def _forget_port(world: FailingPlane) -> None:
    await _remember(world)
    await _change_bmc(world, {"protocol": {"port": 0}})


async def _set_port(world: FailingPlane) -> None:
    await _change_bmc(world, {"protocol": {"port": world.fleet.options.port}})


async def _apply_bmc(world: FailingPlane) -> None:
    """An administrator applies BMC and BMCSecret before its lease comes, under the name that the lease gives."""
    options, (bmc,) = world.fleet.options, world.fleet.bmcs.values()
    meta = {"name": f"mac-{bmc.board.mac.replace(':', '-')}"}
    secret = {"username": options.username, "password": options.password}
    await world.client.create(KINDS.bmc_secret, {"metadata": meta, "stringData": secret})
    spec = {
        "access": {"ip": bmc.board.ip, "macAddress": bmc.board.mac[:8]},
        "bmcSecretRef": meta,
        "protocol": {"name": "Redfish", "port": options.port, "scheme": options.scheme},
    }
    await world.client.create(KINDS.bmc, {"metadata": meta, "spec": spec})


async def _correct_while_down(world: FailingPlane) -> None:
    """The BMC dies, the UUID is removed, and is corrected while the BMC is down."""
    world.machine.faults.dead = True
    server = await _server(world)
    for uuid in ("", server.spec.system_uuid):
        await world.client.patch(KINDS.server, server.metadata.name, {"spec": {"systemUUID": uuid}})
        await asyncio.sleep(60)


async def _answer_again(world: FailingPlane) -> None:
    world.machine.faults.dead = False


async def _request_no_erasure(world: FailingPlane) -> None:
    async def opt_out(_: FailingPlane) -> None:
        await world.client.patch(KINDS.claim, "c1", {"spec": {"sanitizationPolicy": "None"}}, "default")

    world.claimed = opt_out


async def _nothing_more(_: FailingPlane) -> None:
    """The claim has requested it when it was created."""


async def _enforce(world: FailingPlane) -> None:
    await _remember(world)
    name = (await _server(world)).metadata.name
    await world.client.create(NAMESPACE, {"metadata": {"name": TEAM}})
    template = {"name": "x", "spec": {"serverRef": {"name": name}, "image": "images.sim/demo:latest"}}
    spec = {"policy": "Enforced", "serverRef": {"name": name}, "serverBootConfigurationTemplate": template}
    await world.client.create(KINDS.maintenance, {"metadata": {"name": "m1", "namespace": TEAM}, "spec": spec})


async def _withdraw(world: FailingPlane) -> None:
    await world.client.delete(KINDS.maintenance, "m1", TEAM)


def _resets(world: FailingPlane) -> int:
    return len(world.fleet.history.of(world.machine.identity.uuid, "reset"))


async def _remember(world: FailingPlane) -> None:
    world.before = _resets(world)


async def _untouched(world: FailingPlane) -> None:
    """No reset was sent to the machine, and the tenant's system runs on it."""
    assert _resets(world) == world.before
    assert world.machine in world.tenants()


async def _is_left_alone(world: FailingPlane) -> None:
    """No reset is sent to the machine."""
    assert _resets(world) == world.before


async def _is_erased(world: FailingPlane) -> None:
    """The drives are erased."""
    assert not world.machine.state.disk.marker


async def _has_no_address(world: FailingPlane) -> None:
    """`status.macAddress` of the BMC is empty."""
    found = (await world.client.list(KINDS.bmc)).items
    assert [bmc.status.mac_address for bmc in found] == [""]


IGNORED = Fault(
    _ignore, _manage, what="The only free server has the annotation `operation=ignore`.",
    remedy="Remove the annotation.",
)  # fmt: skip
NO_PORT = Fault(
    _forget_port, _set_port, what="`spec.protocol.port` of a BMC is 0, as programs in Go send it.",
    remedy="Set the port.",
)  # fmt: skip
MALFORMED = Fault(_apply_bmc, what="A BMC is applied whose `spec.access.macAddress` is malformed.")
CORRECTED = Fault(
    _correct_while_down, _answer_again,
    what="`spec.systemUUID` of a Server is empty, as programs in Go send it, and is corrected while the BMC is down.",
)  # fmt: skip
OPTED_OUT = Fault(
    _nothing_more, prepare=_request_no_erasure,
    what="A claim requests `sanitizationPolicy: None` while `sanitization.optOut` is false.",
)  # fmt: skip
ENFORCED = Fault(
    _enforce, _withdraw,
    what="A maintenance with policy Enforced comes from a namespace that `maintenance.enforcedNamespaces` lacks.",
    remedy="Have the claim's owner approve it, or delete it.",
)  # fmt: skip

NO_PORT_SET = "BMC: Ready=False PortNotSet, BMC: Event PortNotSet, BMCReachable=False PortNotSet, Event PortNotSet, " \
    "Error BMCPortNotSet"  # fmt: skip

ROWS = (
    Row("the server is not managed", "claim", inject=IGNORED, also=_is_left_alone,
        reports="ServerClaim: Bound=False NotManaged, ServerClaim: Event NotManaged",
        message="1 not managed (annotation operation=ignore)"),
    Row("port 0", "tenant", "BMC", NO_PORT_SET, inject=NO_PORT, also=_untouched, message="protocol.port is 0: set the"),
    Row("malformed MAC address", "enrolment", inject=MALFORMED, end=End.COMPLETES, also=_has_no_address,
        reports="BMC: MACAddressValid=False Malformed, BMC: Event Malformed",
        message="is not a MAC address … and is not used … create the BMC again"),
    Row("UUID corrected while the BMC is down", "claim", inject=CORRECTED,
        message="spec was corrected, and the server continues when its BMC answers",
        reports="Error InvalidSpec, BMCReachable=False ConnectionFailed, Event ConnectionFailed, "
        "ServerClaim: Bound=False NotAvailable"),
    Row("a claim requests no erasure", "release", "Sanitization", inject=OPTED_OUT, config=ERASED, end=End.COMPLETES,
        also=_is_erased),
    Row("Enforced from another namespace", "tenant", inject=ENFORCED, end=End.COMPLETES, also=_untouched,
        reports="ServerMaintenance: Approved=False EnforcedNotAllowed, ServerMaintenance: Event EnforcedNotAllowed",
        message="waiting for approval by the owner … add team to maintenance.enforcedNamespaces"),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_wrong_request_is_reported_and_harms_no_one(row: Row) -> None:
    """Each row reports what it names and nothing worse, and ends as it says."""
    check(row, await live(row))
