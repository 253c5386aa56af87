"""Machines whose identity is in doubt, at steps of a server's life: rows of docs/failures.md."""

from typing import Any

import pytest

from metal.api.server import Server
from tests.sim.failing import FailingPlane
from tests.sim.failures import check, live
from tests.sim.plane import KINDS
from tests.sim.rows import End, Fault, Row, at

pytestmark = [pytest.mark.looptime, pytest.mark.life]

TWIN = "twin"


def _resets(world: FailingPlane) -> int:
    """How often any machine was reset so far."""
    return sum(getattr(entry, "what", "") == "reset" for entry in world.fleet.history)


async def _untouched(world: FailingPlane) -> None:
    """No reset was sent to the machine, and the tenant's system runs on it."""
    assert _resets(world) == world.before
    assert world.machine in world.tenants()


async def _spared(world: FailingPlane) -> None:
    """No reset was sent to the machine."""
    assert _resets(world) == world.before


async def _server(world: FailingPlane) -> Server:
    """The first Server of the machine."""
    return next(server for server in await world.servers() if server.metadata.name != TWIN)


async def _bmcs(world: FailingPlane) -> list[str]:
    return [bmc.metadata.name for bmc in (await world.client.list(KINDS.bmc)).items]


async def _remember(world: FailingPlane) -> None:
    world.before = _resets(world)


async def _show_twice(world: FailingPlane) -> None:
    """Another BMC gets a lease."""
    await _remember(world)
    world.added = world.fleet.add_bmc(world.machine)
    await world.announce()


async def _unplug_added(world: FailingPlane) -> None:
    world.fleet.remove_bmc(world.added)
    for endpoint in (await world.client.list(KINDS.endpoint)).items:
        if endpoint.spec.ip == world.added.board.ip:
            await world.client.delete(KINDS.endpoint, endpoint.metadata.name)
            await world.client.delete(KINDS.bmc, endpoint.metadata.name)


async def _apply_twin(world: FailingPlane, uuid: str = "") -> None:
    await _remember(world)
    first = await _server(world)
    spec: dict[str, Any] = {"systemUUID": uuid or first.uuid, "bmcRef": {"name": first.spec.bmc_ref.name}}  # type: ignore[union-attr]  # enrolled
    await world.client.create(KINDS.server, {"metadata": {"name": TWIN}, "spec": spec})


async def _delete_twin(world: FailingPlane) -> None:
    await world.client.delete(KINDS.server, TWIN)


async def _restore_twin(world: FailingPlane) -> None:
    """As from a backup: it still has its tenant of that time."""
    await world.manager.stop(grace=0.0)
    await _apply_twin(world)
    status = {"state": "Reserved", "tenant": "11111111-0000-0000-0000-000000000000", "since": "2025-12-01T00:00:00Z"}
    await world.client.patch_status(KINDS.server, TWIN, {"status": status})
    await world.restart_manager()


async def _replace_mainboard(world: FailingPlane) -> None:
    """A technician has installed it, and has switched the machine on."""
    world.fleet.replace_mainboard(world.machine)
    await _remember(world)
    world.machine.press_power_button()


async def _correct_uuid(world: FailingPlane) -> None:
    name = (await _server(world)).metadata.name
    await world.client.patch(KINDS.server, name, {"spec": {"systemUUID": world.machine.identity.uuid}})


async def _replace_bmc(world: FailingPlane) -> None:
    await _remember(world)
    (old,) = world.fleet.bmcs.values()
    world.fleet.remove_bmc(old)
    world.added = world.fleet.add_bmc(world.machine)
    await world.announce()


async def _replace_both(world: FailingPlane, *, keep_serial: bool = True) -> None:
    world.added = world.fleet.replace_mainboard(world.machine, keep_serial=keep_serial, keep_bmc=False)
    await _remember(world)
    await world.announce()
    world.machine.press_power_button()


async def _replace_all_but_drives(world: FailingPlane) -> None:
    await _replace_both(world, keep_serial=False)


async def _move(world: FailingPlane) -> None:
    """The Server gets the new BMC, and the UUID where that is another one; what is left of the old BMC is deleted."""
    servers = sorted(await world.servers(), key=lambda server: str(server.metadata.creation_timestamp))
    first, old = servers[0], servers[0].spec.bmc_ref
    assert old is not None
    (new,) = [name for name in await _bmcs(world) if name != old.name]
    spec = {"bmcRef": {"name": new}, "systemUUID": world.machine.identity.uuid}
    await world.client.patch(KINDS.server, first.metadata.name, {"spec": spec})
    for server in servers[1:]:
        await world.client.delete(KINDS.server, server.metadata.name)
    await _until_owned(world, first.metadata.name, new)
    await world.client.delete(KINDS.bmc, old.name)
    await world.client.delete(KINDS.endpoint, old.name)


async def _until_owned(world: FailingPlane, name: str, bmc: str) -> None:
    def owned(servers: list[Server]) -> bool:
        found = [server.metadata.owner_references for server in servers if server.metadata.name == name]
        return [owner.name for owner in found[0]] == [bmc] if found else False

    await world.until(owned, within=1200, what="the new owner")


async def _describe_twice(world: FailingPlane) -> None:
    """Another BMC object has the address and the BMCSecret of the first, which allows both."""
    await _remember(world)
    (first,) = (await world.client.list(KINDS.bmc)).items
    allowed = {"allowedBMCs": [first.metadata.name, TWIN]}
    await world.client.patch(KINDS.bmc_secret, first.spec.bmc_secret_ref.name, allowed)
    spec = {
        "access": {"ip": world.machine.identity.bmc_ip, "macAddress": "02:00:00:00:00:01"},
        "bmcSecretRef": {"name": first.spec.bmc_secret_ref.name},
        "protocol": {"name": "Redfish", "port": first.spec.protocol.port, "scheme": first.spec.protocol.scheme},
    }
    await world.client.create(KINDS.bmc, {"metadata": {"name": TWIN}, "spec": spec})


async def _forget_twin(world: FailingPlane) -> None:
    await world.client.delete(KINDS.bmc, TWIN)


TWO_OBJECTS = Fault(
    _describe_twice, _forget_twin, what="Two BMC objects describe one BMC.",
    remedy="Delete the BMC that is not in charge.",
)  # fmt: skip
TWO_BMCS = Fault(
    _show_twice, _unplug_added, what="Two BMCs show one machine.", remedy="Unplug one, and delete its BMC and Endpoint."
)
BY_HAND = Fault(
    _apply_twin, _delete_twin, what="Another Server for the same machine is applied.",
    remedy="Delete the Server that is not in charge.",
)  # fmt: skip
RESTORED = Fault(
    _restore_twin, _delete_twin, what="A backup brings back another Server of the machine, with a former tenant.",
    remedy="Delete the Server whose tenant's system is not on the machine.",
)  # fmt: skip
MAINBOARD = Fault(
    _replace_mainboard, _correct_uuid, what="The mainboard is replaced: UUID and serial number are new, drives stay.",
    remedy="Set `spec.systemUUID` of the Server to the new UUID.",
)  # fmt: skip
BMC = Fault(
    _replace_bmc, _move, what="The BMC is replaced: it has another MAC address and IP address.",
    remedy="Set `spec.bmcRef` of the Server to the new BMC, then delete the old BMC.",
)  # fmt: skip
BOTH = Fault(
    _replace_both, _move, what="The mainboard is replaced with its BMC; the serial number is restored.",
    remedy="Set `spec.bmcRef` and `spec.systemUUID` of the first Server, delete the second, then the old BMC.",
)  # fmt: skip
ALL_BUT_DRIVES = Fault(
    _replace_all_but_drives, _move,
    what="The mainboard is replaced with its BMC; UUID and serial number are new, drives stay.", remedy=BOTH.remedy,
)  # fmt: skip
GONE = "BMCReachable=False ConnectionFailed, Event ConnectionFailed, BMC: Ready=False ConnectionFailed, " \
    "BMC: Event ConnectionFailed, Error BMCConnectionFailed"  # fmt: skip
DUPLICATE = "DuplicateSystem=True OtherServerInCharge, DuplicateSystem=True InCharge, Event DuplicateSystem"
POSSIBLY = "IdentityAmbiguous=True PossiblyReplacedMainboard, Event IdentityAmbiguous, " \
    "DuplicateSystem=True InCharge, Event DuplicateSystem"  # fmt: skip
NOT_ENROLLED = "BMC: Enrolled=False DuplicateSystem, BMC: Event DuplicateSystem"

ROWS = (
    *at("discovery claim tenant", "two BMCs show one machine", inject=TWO_BMCS, end=End.COMPLETES, reports=NOT_ENROLLED,
        message="no second Server is created"),
    Row("two BMC objects describe one BMC", "tenant", reports="BMC: DuplicateBMC=True OtherBMCInCharge, "
        "BMC: DuplicateBMC=True InCharge, BMC: Ready=False DuplicateBMC", inject=TWO_OBJECTS, also=_untouched,
        message="describes the same BMC and is in charge of it"),
    *at("claim release", "another Server is applied", wait="DuplicateSystem", inject=BY_HAND, reports=DUPLICATE,
        message="describes the same machine"),
    Row("another Server is applied", "tenant", "DuplicateSystem", DUPLICATE, inject=BY_HAND, also=_untouched,
        message="This Server sends nothing to the BMC"),
    Row("a backup brings back another Server", "tenant", "DuplicateSystem",
        "DuplicateSystem=True NoServerInCharge, Event DuplicateSystem", inject=RESTORED, also=_untouched,
        message="Neither Server acts on it"),
    Row("the mainboard is replaced", "tenant", "BMC", "BMCReachable=False WrongSystem, Event WrongSystem, "
        "SystemPresent=False SystemGone, Event SystemGone, Error BMCWrongSystem, "
        "BMC: Enrolled=False SystemReplaced, BMC: Event SystemReplaced", inject=MAINBOARD, also=_untouched,
        message="set spec.systemUUID of Server"),
    Row("the BMC is replaced", "tenant", "BMC", f"{GONE}, {NOT_ENROLLED}", inject=BMC, also=_untouched, minutes=20,
        message="set spec.bmcRef.name of Server"),
    Row("mainboard and BMC are replaced", "tenant", "MachineIdentity", f"{GONE}, {POSSIBLY}",
        inject=BOTH, also=_untouched, minutes=20, message="If its mainboard was replaced, set spec.bmcRef.name"),
    Row("all but the drives is replaced", "tenant", "MachineIdentity", f"{GONE}, {POSSIBLY}", minutes=20,
        inject=ALL_BUT_DRIVES, also=_untouched, message="parts are the same (drive … If its mainboard was replaced"),
    *at("enrolment claim tenant", "flips_uuid", end=End.COMPLETES),
    Row("shares_uuid", "enrolment", reports="BMC: Enrolled=False IdentityAmbiguous, BMC: Event IdentityAmbiguous",
        message="which many machines have, and no serial number"),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_doubt_about_a_machine_is_reported_and_ends(row: Row) -> None:
    """Each row reports what it names and nothing worse, and ends as it says; no tenant's machine is touched."""
    check(row, await live(row))
