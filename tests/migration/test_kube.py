"""The takeover on a real kube-apiserver: their CRDs and objects first, ours applied over them."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from metal.api.server import Server
from metal.bmc.redfish.pool import RedfishPool
from metal.controllers.endpoint.prefix_file import PrefixFile
from metal.kube.client.errors import NotFound
from metal.kube.client.http import HTTPClient
from metal.kube.client.kubeconfig import load
from metal.kube.client.protocol import Client
from metal.kube.meta.clock import system_clock
from metal.kube.meta.conditions import is_true
from metal.manager import Manager, Parts
from metal.sim.images.local import LocalImages
from metal.sim.options import Options
from metal.sim.sites.fleet import Fleet
from tests.crds import crds
from tests.kubeapi.cluster import KubeCluster
from tests.migration.site import ALL, KINDS, LEFT, everything, go_crds, install, leave, read, server_name
from tests.sim.plane import CONFIG

_PASSWORD = "factory-default-17"
_SETTLED = 8.0
"""Seconds that our manager gets; every server has been looked at several times by then."""


@asynccontextmanager
async def _managed(client: Client, fleet: Fleet) -> AsyncIterator[Manager]:
    config = CONFIG
    pool = RedfishPool(fleet.transport_factory)
    parts = Parts(
        client, pool, config, PrefixFile(), Path("unused"), clock=system_clock, rng=random.Random(1),
        images=LocalImages(),
    )  # fmt: skip
    manager = Manager(parts)
    await manager.start()
    try:
        yield manager
    finally:
        await manager.stop(grace=0.5)


def _moved(fleet: Fleet) -> list[str]:
    felt = ("reset", "power", "override", "fetch")
    return [str(entry) for m in fleet.machines for entry in fleet.history.of(m.identity.uuid, *felt)]


async def _server(client: Client, number: int) -> Server:
    return await client.get(KINDS.server, server_name(number, LEFT[number]))


@pytest.mark.kube
@pytest.mark.timeout(120)
async def test_the_same_twenty_servers_on_a_real_api(cluster: KubeCluster) -> None:
    """Nothing moves, nothing is lost, and a claim taken over can be deleted."""
    fleet = Fleet(len(LEFT), seed=3, options=Options(power=0.2, boot=1.0, shutdown=0.2, password=_PASSWORD))
    async with HTTPClient(load(cluster.kubeconfig)) as client:
        await install(client, go_crds())
        await _there(client)
        await leave(client, fleet.machines, _PASSWORD)
        before = [doc async for doc in everything(client)]
        await install(client, crds(KINDS))
        await fleet.start()
        async with _managed(client, fleet):
            await asyncio.sleep(_SETTLED)
            assert _moved(fleet) == []
            for number in (9, 10, 11):
                claim = await client.get(KINDS.claim, f"claim-{number}", "tenants")
                assert is_true(claim.status.conditions, "Ready")
            for doc in before:
                meta = doc["metadata"]
                if doc["kind"] in ("Server", "ServerClaim", "BMC", "ServerBootConfiguration", "Endpoint"):
                    assert (await read(client, doc["kind"], meta["name"], meta.get("namespace", "")))["spec"] == doc[
                        "spec"
                    ]
            await client.delete(KINDS.claim, "claim-13", "tenants")
            await asyncio.sleep(4)
            assert (await _server(client, 13)).status.state == "Available"
        with pytest.raises(NotFound):
            await client.get(KINDS.claim, "claim-13", "tenants")
        await fleet.stop()


async def _there(client: Client) -> None:
    """A CRD is served a moment after it was accepted."""
    async with asyncio.timeout(20):
        for kind in ALL.values():
            while True:
                try:
                    await client.list(kind)
                    break
                except NotFound:
                    await asyncio.sleep(0.2)
