"""Erasures of a tenant's drives that fail: rows of docs/failures.md."""

import asyncio
import base64

import pytest

from metal.api.core import SECRET
from metal.config.options import Sanitization
from tests.sim.failing import ERASED, FailingPlane
from tests.sim.failures import check, live
from tests.sim.rows import AGAIN, FAILED, End, Fault, Row, at

pytestmark = [pytest.mark.looptime, pytest.mark.life]
HURRIED = {"sanitization": Sanitization(timeout=600.0, rate=1 << 40)}
FIRMWARE = {"sanitization": Sanitization(firmware="ResetBIOS", firmware_required=True)}
KEY, HOME = "metal-evidence-key", "metal-system"
AWAY = 4 * 3600.0
OWED = "Error SanitizationOwed, Ready=False SanitizationOwed, Sanitized=False SanitizationOwed"


async def _spoil_key(world: FailingPlane) -> None:
    data = {"private.pem": base64.b64encode(b"nonsense").decode()}
    await world.client.create(SECRET, {"metadata": {"name": KEY, "namespace": HOME}, "data": data})


async def _delete_key(world: FailingPlane) -> None:
    await world.client.delete(SECRET, KEY, HOME)


async def _stop_manager(world: FailingPlane) -> None:
    """The erasure ends meanwhile, and its deadline passes."""
    world.network.unmount_all()
    await world.manager.stop(grace=0.0)
    await asyncio.sleep(AWAY)
    await world.restart_manager()
    world.machine.note("manager")


async def _keeps_its_data(world: FailingPlane) -> None:
    """The drive keeps the tenant's data; `status.tenancy.sanitization` is empty."""
    assert world.machine.state.disk.marker
    assert [server.status.tenancy.sanitization for server in await world.servers()] == [""]


async def _is_erased(world: FailingPlane) -> None:
    """The drives are erased; `status.tenancy.sanitization` is empty."""
    assert not world.machine.state.disk.marker
    assert [server.status.tenancy.sanitization for server in await world.servers()] == [""]


SIGNING = Fault(
    _spoil_key, _delete_key, what="The Secret with the signing key of the evidence holds no key.",
    remedy="Delete or restore the Secret.",
)  # fmt: skip
OUTAGE = Fault(_stop_manager, what="The manager is away for four hours, longer than the deadline of the erasure.")
DRIVE = "(serial SIM007000000-D0, slot Disk 0)"
BIOS = "the BIOS is not … its defaults (Failed)"
OFF = "the machine powered off before its boot was complete"
RETRY = End.RETRY_SERVER

ROWS = (
    *at("erasure", "lying_drive", wait="Sanitization", reports=OWED, end=RETRY, also=_keeps_its_data,
        message=f"drive nvme0n1 {DRIVE} is not erased (Failed)"),
    *at("erasure", "dying_drive", wait="Sanitization", reports=OWED, end=RETRY, also=_keeps_its_data,
        message=f"drive nvme0n1 {DRIVE} is not erased (Failed) … input/output error"),
    *at("release", "missing_drive", wait="Sanitization", reports=OWED, end=RETRY, also=_keeps_its_data, config=ERASED,
        message=f"drive nvme0n1 {DRIVE} was in the server and is missing"),
    *at("erasure", "slow_drives", wait="Sanitization", reports=OWED, end=RETRY, also=_keeps_its_data,
        config=HURRIED, minutes=30, message=f"drive nvme0n1 {DRIVE} is not erased, at 25 %: 0.2 h were not sufficient"),
    *at("erasure", "power_loss_in_sanitization", wait="Sanitization", reports=AGAIN, minutes=1.5, message=OFF),
    *at("release", "power_loss_in_sanitization", wait="Sanitization", also=_keeps_its_data, end=RETRY,
        reports=FAILED, config=ERASED, minutes=30, message=OFF),
    *at("erasure", "outage longer than the deadline", inject=OUTAGE, config=HURRIED, minutes=30),
    *at("release", "refuses_bios", wait="Sanitization", reports=f"{OWED}, Event FirmwareReset", end=RETRY,
        config=FIRMWARE, also=_is_erased, message=BIOS),
    *at("release", "forgets_bios", wait="Sanitization", reports=f"{OWED}, Event FirmwareReset", end=RETRY,
        config=FIRMWARE, also=_is_erased, message=f"{BIOS} … but reports nothing as pending"),
    *at("release", "keeps_bios", wait="Sanitization", reports=f"{OWED}, Event FirmwareReset", end=RETRY,
        config=FIRMWARE, also=_is_erased, message=f"{BIOS} … but the BMC still reports it as pending"),
    *at("erasure", "unusable signing key", wait="Repair", reports="Error SigningKeyUnusable", end=RETRY,
        inject=SIGNING, also=_is_erased, message="no private key in PEM"),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_fault_of_an_erasure_is_reported_and_ends(row: Row) -> None:
    """Each row reports what it names and nothing worse, and ends as it says."""
    check(row, await live(row))
