"""A client that is faster than the machine and fetches its script, where the site permits that."""

from collections.abc import Iterator

import pytest

from tests.lab import story
from tests.lab.run import Run
from tests.lab.site import Site
from tests.lab.story import NOTHING_ERASED, STEP, Chain

pytestmark = [pytest.mark.lab, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def chain(run: Run, site: Site) -> Iterator[Chain]:
    """A site that permits FirstRequest."""
    with story.begin(run, site, settings={**NOTHING_ERASED, "boot": {"minimumTrust": "FirstRequest"}}) as begun:
        yield begun


def test_a_false_report_does_not_end_the_discovery(chain: Chain, run: Run) -> None:
    """A client that asks first may get a script once the BMC shows On, but no Ignition; only the machine reports."""
    chain.plug_in_bmc()
    run.wait_for("a Server", lambda: chain.operator.objects("servers"), STEP)
    server = chain.wait_for_state("Available", attacked=True)
    assert [nic["macAddress"] for nic in server["status"]["networkInterfaces"]] == [chain.machine.mac]
    assert chain.neighbor.answers
    assert [url for url, _, _ in chain.neighbor.won() if "/ipxe/" not in url] == []
