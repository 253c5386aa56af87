"""The three ways, as fixtures."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from metal.apiserver.server import EmbeddedAPI
from metal.kube.client.http import HTTPClient
from metal.kube.client.kubeconfig import from_file
from metal.kube.meta.clock import Clock, system_clock
from tests.conformance.api import GROUP, Api, definition
from tests.conformance.ways import InProcess, OverHTTP, Way, administrator
from tests.kubeapi.cluster import KubeCluster

EMBEDDED = ("inprocess", "tls")
KUBE = pytest.param("kube", marks=pytest.mark.kube)


@pytest.fixture(params=[*EMBEDDED, KUBE])
async def api(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Api]:
    """An API with the Widget CRD, through each of the three ways."""
    async with AsyncExitStack() as stack:
        yield await _ready(request, tmp_path, stack)


@pytest.fixture(params=["tls", KUBE])
async def http(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Api]:
    """An API with the Widget CRD over HTTP, for cases about headers, bodies and paths."""
    async with AsyncExitStack() as stack:
        yield await _ready(request, tmp_path, stack)


async def _ready(request: pytest.FixtureRequest, folder: Path, stack: AsyncExitStack) -> Api:
    if request.param == "kube":
        way: Way = await stack.enter_async_context(kube(request.getfixturevalue("cluster")))
    else:
        way = await stack.enter_async_context(embedded(request.param, folder))
    api = Api(way, may_differ=request.node.get_closest_marker("differs") is not None)
    await install(api)
    stack.push_async_callback(api.delete, f"/api/v1/namespaces/{api.space}")
    return api


async def install(api: Api) -> None:
    """Make the namespace of a case, and the Widget CRD where it is missing."""
    crd = definition()
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    if (await api.get(f"{path}/{crd['metadata']['name']}")).code == 404:
        (await api.create(path, crd)).ok()
    await established(api, crd["metadata"]["name"])
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": api.space}}
    (await api.create("/api/v1/namespaces", space)).ok()


async def established(api: Api, name: str) -> None:
    """Wait until a CRD is served."""
    async with asyncio.timeout(20):
        while True:
            got = await api.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
            conditions = {c["type"]: c["status"] for c in got.body.get("status", {}).get("conditions") or ()}
            plural, _, group = name.partition(".")
            served = conditions.get("Established") == "True"
            if served and (await api.get(f"/apis/{group}/v1/{plural}")).code == 200:
                return
            await asyncio.sleep(0.05)


@asynccontextmanager
async def embedded(name: str, folder: Path, clock: Clock = system_clock) -> AsyncIterator[Way]:
    """A fresh embedded API."""
    server = EmbeddedAPI(folder / "data", clock)
    await server.start()
    try:
        if name == "inprocess":
            yield InProcess(server, administrator())
            return
        await server.listen("127.0.0.1", 0)
        connection = from_file(server.kubeconfig)
        assert connection.tls is not None
        assert connection.token is not None
        way = OverHTTP("tls", server.url, connection.token(), connection.tls, HTTPClient(connection))
        try:
            yield way
        finally:
            await way.aclose()
    finally:
        await server.stop()


@asynccontextmanager
async def kube(cluster: KubeCluster) -> AsyncIterator[Way]:
    """The session's kube-apiserver."""
    tls = ssl.create_default_context(cafile=str(cluster.authority))
    way = OverHTTP("kube", cluster.url, cluster.token, tls, HTTPClient(from_file(cluster.kubeconfig)))
    try:
        yield way
    finally:
        await way.aclose()


__all__ = ["GROUP", "api", "established", "http"]
