"""What a user sees when the erasure of a tenant's drives fails: rows of docs/failures.md."""

import asyncio
from typing import Any

import pytest

from metal.api.core import SECRET
from metal.config.options import Sanitization
from tests.sim.failing import FailingPlane, Fault, Row, at
from tests.sim.failures import check, live

pytestmark = pytest.mark.looptime
HURRIED = {"sanitization": Sanitization(timeout=600.0, rate=1 << 40)}
KEY = "metal-evidence-key"


async def _spoil(world):
    await world.client.patch(SECRET, KEY, {"data": {"private.pem": "bm9uc2Vuc2U="}}, "metal-system")
async def _restore(world):
    await world.client.delete(SECRET, KEY, "metal-system")

ROWS = (
    *(Row(f, "erasure", "Repair", "Error SanitizationOwed, Sanitized=False SanitizationOwed", retry="server", minutes=10) for f in ("lying_drive", "dying_drive", "missing_drive")),
    Row("power_loss_in_sanitization", "erasure", minutes=1.5),
    Row("power_loss_in_sanitization", "release", minutes=30, config={"sanitization": Sanitization()}),
    Row("slow_drives", "erasure", config=HURRIED, minutes=30),
    Row("signing key spoiled", "erasure", inject=Fault(_spoil, _restore)),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_fault_of_an_erasure_is_seen_and_left_behind(row: Row) -> None:
    """It shows as the page says, and nothing worse does; mended, everything comes to rest."""
    check(row, await live(row))
