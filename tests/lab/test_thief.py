"""A client that is faster than the machine and fetches script and Ignition, and sends a false report."""

import pytest

from tests.lab.run import Run
from tests.lab.story import STEP, Chain

pytestmark = [pytest.mark.lab, pytest.mark.timeout(400)]


def test_a_false_report_does_not_end_the_discovery(chain: Chain, run: Run) -> None:
    """Without a known lease the first requester is served. Only the machine's own report is used for the Server."""
    chain.plug_in_bmc()
    neighbor, uuid = chain.neighbor, chain.machine.uuid
    token = run.wait_for("a boot window", lambda: neighbor.steal_script(uuid), STEP)

    report_token = neighbor.steal_report_token(uuid, token)
    if report_token:
        neighbor.report(uuid, report_token)

    server = chain.wait_for_state("Available")
    assert [nic["macAddress"] for nic in server["status"]["networkInterfaces"]] == [chain.machine.mac]
