"""BMCs that did not answer before the process was started."""

import pytest

from metal.bmc.errors import BMCUnreachable
from tests.controllers.rack import KINDS, rack

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize(("reason", "silent"), [("ConnectionFailed", True), ("AuthenticationFailed", False)])
async def test_a_bmc_whose_status_says_that_it_did_not_answer_is_expected_to_be_silent(
    reason: str, silent: bool
) -> None:
    """Its first request uses the budget of silent BMCs; a BMC that answered, with whatever error, is asked as usual."""
    async with rack(started=False) as r:
        r.plug(1)
        await r.add_bmc(1)
        ready = {"type": "Ready", "status": "False", "reason": reason, "message": "no answer yesterday"}
        ready["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        await r.client.patch_status(KINDS.bmc, "b1", {"status": {"conditions": [ready]}})
        await r.start()
        expected = dict(r.pool.expected_silent)
    assert ("b1" in expected) is silent
    assert not silent or isinstance(expected["b1"], BMCUnreachable)
