"""A neighbour who is faster than the machine and goes all the way: script, Ignition, a false report."""

import pytest

from tests.lab.run import Run
from tests.lab.story import STEP, Chain

pytestmark = [pytest.mark.lab, pytest.mark.timeout(400)]


def test_a_false_report_does_not_end_the_discovery(chain: Chain, run: Run) -> None:
    """No lease of the machine is known, so the first to ask is served. Still only the machine's own report counts."""
    chain.plug_in_bmc()
    neighbor, uuid = chain.neighbor, chain.machine.uuid
    token = run.wait_for("a boot window", lambda: neighbor.steal_script(uuid), STEP)

    report_token = neighbor.steal_report_token(uuid, token)
    if report_token:
        neighbor.report(uuid, report_token)

    server = chain.wait_for_state("Available")
    assert [nic["macAddress"] for nic in server["status"]["networkInterfaces"]] == [chain.machine.mac]
