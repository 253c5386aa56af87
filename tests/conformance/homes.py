"""Both APIs with our kinds, for third-party programs: a kubeconfig, and a relay that cuts connections."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import aiohttp
import yaml

from metal.api.kinds import kinds
from metal.api.meta import Kind
from metal.apiserver.server import EmbeddedAPI
from metal.kube.client.errors import NotFound
from metal.kube.client.http import HTTPClient
from metal.kube.client.kubeconfig import from_file
from metal.kube.meta.clock import system_clock
from tests.conformance.relay import Relay
from tests.crds import crds
from tests.kubeapi.cluster import KubeCluster

KINDS = kinds()
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Home:
    """An API that serves our kinds. kubeconfig uses `relay`; `client` connects directly."""

    def __init__(self, name: str, relay: Relay, kubeconfig: Path, client: HTTPClient) -> None:
        self.name, self.relay, self.kubeconfig, self.client = name, relay, kubeconfig, client
        self._folder: Path | None = None
        self._api: EmbeddedAPI | None = None

    def __repr__(self) -> str:
        return f"<Home {self.name} behind {self.relay.url}>"

    @property
    def is_kube(self) -> bool:
        """Whether this is a real kube-apiserver."""
        return self._api is None

    async def restart(self) -> None:
        """The embedded API stops and starts on the same port; a cluster that others use has its connections cut."""
        if self._api is None or self._folder is None:
            self.relay.cut()
            return
        await self._api.stop()
        self._api = await _started(self._folder, self.relay.port)

    @classmethod
    async def embedded(cls, folder: Path, stack: AsyncExitStack) -> "Home":
        """A fresh embedded API over TLS."""
        api = await _started(folder / "data", 0)
        home = await _reached("tls", api.kubeconfig, folder, stack)
        home._folder, home._api = folder / "data", api
        stack.push_async_callback(home._stop)
        return home

    @classmethod
    async def kube(cls, cluster: KubeCluster, folder: Path, stack: AsyncExitStack) -> "Home":
        """The session's kube-apiserver."""
        return await _reached("kube", cluster.kubeconfig, folder, stack)

    async def _stop(self) -> None:
        assert self._api is not None
        await self._api.stop()


@asynccontextmanager
async def home(name: str, folder: Path, cluster: KubeCluster | None) -> AsyncIterator[Home]:
    """`tls` or, with a cluster, `kube`."""
    async with AsyncExitStack() as stack:
        made = await (Home.kube(cluster, folder, stack) if cluster else Home.embedded(folder, stack))
        assert made.name == name
        await _install(made.client, made.kubeconfig)
        yield made


async def _started(folder: Path, port: int) -> EmbeddedAPI:
    api = EmbeddedAPI(folder, system_clock)
    await api.start()
    await api.listen("127.0.0.1", port)
    return api


async def _reached(name: str, kubeconfig: Path, folder: Path, stack: AsyncExitStack) -> Home:
    config = _load(kubeconfig)
    cluster = config["clusters"][0]["cluster"]
    relay = Relay(urlparse(cluster["server"]).port or 443)
    await relay.start()
    stack.push_async_callback(relay.stop)
    cluster["server"] = relay.url
    relayed = folder / "relayed"
    _save(relayed, config)
    client = HTTPClient(from_file(kubeconfig))
    stack.push_async_callback(client.aclose)
    return Home(name, relay, relayed, client)


def _load(path: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(path.read_text()))


def _save(path: Path, config: dict[str, Any]) -> None:
    path.write_text(yaml.safe_dump(config))


async def _install(client: HTTPClient, kubeconfig: Path) -> None:
    """Apply our CRDs, and wait until each is served."""
    connection = from_file(kubeconfig)
    assert isinstance(connection.tls, ssl.SSLContext)
    assert connection.token is not None
    sent = {"Authorization": f"Bearer {connection.token()}"}
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=connection.tls), headers=sent, raise_for_status=True
    ) as http:
        for crd in crds(KINDS):
            url = f"{connection.url}{_CRDS}/{crd['metadata']['name']}?fieldManager=tests&force=true"
            headers = {"Content-Type": "application/apply-patch+yaml"}
            async with http.patch(url, data=json.dumps(crd), headers=headers):
                pass
    async with asyncio.timeout(20):
        for kind in KINDS.all():
            await _served(client, kind)


async def _served(client: HTTPClient, kind: Kind[Any]) -> None:
    while True:
        try:
            await client.list(kind)
        except NotFound:
            await asyncio.sleep(0.05)
        else:
            return
