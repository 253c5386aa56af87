"""A message of any length does not keep a status from being written."""

import pytest

from metal.bmc.errors import BMCTimeout
from tests.controllers.world import world

pytestmark = pytest.mark.looptime


async def test_a_message_that_is_too_long_for_a_condition_is_shortened() -> None:
    """metav1.Condition allows 32,768 characters; the API refuses a status with more."""
    async with world() as w:
        w.bmc.failure = BMCTimeout("no answer " * 4000)
        await w.add_server()
        server = await w.until_true(lambda s: any(c.type == "BMCReachable" for c in s.status.conditions))
    longest = max(len(condition.message) for condition in server.status.conditions)
    assert longest == 32768
