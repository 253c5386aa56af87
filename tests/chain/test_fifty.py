"""Fifty machines on a real kube-apiserver, with the manager as a process that has the generated rights and no other."""

import signal
import time
from itertools import pairwise

import pytest
import uvloop

from metal.sim.options import Options
from tests.chain.replicas import PASSWORD, Site
from tests.kubeapi.cluster import KubeCluster, free_ports

pytestmark = [pytest.mark.kube, pytest.mark.timeout(240)]
MACHINES = 50


def test_fifty_machines_from_lease_to_claim_and_back(cluster: KubeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is found, discovered, claimed, booted, given back and Available again; the API refuses no request."""
    options = Options(power=0.3, boot=0.5, shutdown=0.2, latency=0.005, port=free_ports(1)[0], password=PASSWORD)
    told = uvloop.run(_walk(Site(cluster, "fifty", MACHINES, options)))
    with capsys.disabled():
        print(f"\n  {MACHINES} machines on kube-apiserver: {told}", end="")  # noqa: T201 - what one runs this for


async def _walk(site: Site) -> str:
    async with site.run():
        refused = site.forbidden()
        manager = await site.add_replica()
        times = [time.monotonic()]
        await site.announce()
        await site.until_available(150)
        times.append(time.monotonic())
        names = {f"claim-{number}" for number in range(MACHINES)}
        for name in sorted(names):
            await site.add_claim(name)

        async def all_ready() -> bool:
            return await site.ready_claims() == names

        await site.until(all_ready, 60)
        times.append(time.monotonic())
        for name in sorted(names):
            await site.drop_claim(name)
        await site.until_available(60)
        times.append(time.monotonic())
        assert await manager.end(signal.SIGTERM) == 0, manager.tail()
        assert site.forbidden() == refused, manager.tail()
        assert "forbidden" not in manager.log.read_text().lower()
        assert all(machine.state.power == "Off" for machine in site.fleet.machines)
        site.check()
    spans = [f"{after - before:.1f} s" for before, after in pairwise(times)]
    return f"Available after {spans[0]}, claimed and booted in {spans[1]}, given back in {spans[2]}"
