"""What a user sees when the erasure of a tenant's drives fails, and how it ends: rows of docs/failures.md."""

import base64

import pytest

from metal.api.core import SECRET
from metal.config.options import Sanitization
from tests.sim.failing import ERASED, FailingPlane, Fault, Row, at
from tests.sim.failures import check, live

pytestmark = [pytest.mark.looptime, pytest.mark.life]
HURRIED = {"sanitization": Sanitization(timeout=600.0, rate=1 << 40)}
FIRMWARE = {"sanitization": Sanitization(firmware="ResetBIOS", firmware_required=True)}
KEY, HOME = "metal-evidence-key", "metal-system"
OWED = "Error SanitizationOwed, Ready=False SanitizationOwed, Sanitized=False SanitizationOwed"


async def _spoil_key(world: FailingPlane) -> None:
    data = {"private.pem": base64.b64encode(b"nonsense").decode()}
    await world.client.create(SECRET, {"metadata": {"name": KEY, "namespace": HOME}, "data": data})


async def _delete_key(world: FailingPlane) -> None:
    await world.client.delete(SECRET, KEY, HOME)


async def _keeps_its_data(world: FailingPlane) -> None:
    """Nobody else has the server, and nothing claims that the data is gone."""
    assert world.machine.state.disk.marker
    assert [server.status.sanitization for server in await world.servers()] == [""]


ROWS = (
    *at("erasure", "lying_drive dying_drive", wait="Sanitization", says=OWED, retry="server", also=_keeps_its_data),
    *at("release", "missing_drive", wait="Sanitization", says=OWED, retry="server", also=_keeps_its_data,
        config=ERASED),
    *at("erasure", "slow_drives", wait="Sanitization", says=OWED, retry="server", also=_keeps_its_data,
        config=HURRIED, minutes=30),
    *at("erasure", "power_loss_in_sanitization", wait="Sanitization",
        says="Ready=False BootRetry, Event NetworkBootFailed", minutes=1.5),
    *at("release", "power_loss_in_sanitization", wait="Sanitization", also=_keeps_its_data, retry="server",
        says="Ready=False BootRetry, Event NetworkBootFailed, Error NetworkBootFailed", config=ERASED, minutes=30),
    *at("release", "refuses_bios forgets_bios keeps_bios", wait="Sanitization", says=f"{OWED}, Event FirmwareReset",
        retry="server", config=FIRMWARE),
    *at("erasure", "the signing key is unusable", wait="Repair", says="Error SigningKeyUnusable", retry="server",
        inject=Fault(_spoil_key, _delete_key)),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_fault_of_an_erasure_is_seen_and_left_behind(row: Row) -> None:
    """It shows as the page says, and nothing worse does; mended, everything comes to rest."""
    check(row, await live(row))
