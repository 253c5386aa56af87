"""kubernetes_asyncio, used as a site's program would, on both homes: list and watch, claims, conflicts, expiry."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import kubernetes_asyncio
import pytest
from kubernetes_asyncio import dynamic, watch
from kubernetes_asyncio.client.exceptions import ApiException

from tests.conformance.homes import Home, home

pytestmark = pytest.mark.wire

SERVERS = ("metal.ironcore.dev", "v1alpha1", "servers")
PATIENCE = 30.0


@pytest.fixture(params=["tls", pytest.param("kube", marks=pytest.mark.kube)])
async def api(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Home]:
    """Both homes."""
    cluster = request.getfixturevalue("cluster") if request.param == "kube" else None
    async with home(request.param, tmp_path, cluster) as made:
        yield made


class Site:
    """A client, and names that are unique to this site."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.custom = kubernetes_asyncio.client.CustomObjectsApi(client)
        self.suffix = secrets.token_hex(4)

    async def servers(self, **more: Any) -> Any:
        """List (or watch) the Servers of this site."""
        selector = f"site={self.suffix}"
        return await self.custom.list_cluster_custom_object(*SERVERS, label_selector=selector, **more)

    async def create(self, name: str) -> Any:
        body = {
            "apiVersion": "metal.ironcore.dev/v1alpha1",
            "kind": "Server",
            "metadata": {"name": f"{name}-{self.suffix}", "labels": {"site": self.suffix}},
            "spec": {"systemUUID": "38947555-7742-3448-3784-823347823834"},
        }
        return await self.custom.create_cluster_custom_object(*SERVERS, body)

    async def patch(self, name: str, change: dict[str, Any]) -> Any:
        return await self.custom.patch_cluster_custom_object(
            *SERVERS, f"{name}-{self.suffix}", change, _content_type="application/merge-patch+json"
        )

    async def delete(self, name: str) -> Any:
        return await self.custom.delete_cluster_custom_object(*SERVERS, f"{name}-{self.suffix}")


@pytest.fixture
async def site(api: Home) -> AsyncIterator[Site]:
    """A client by the home's kubeconfig."""
    async with await kubernetes_asyncio.config.new_client_from_config(str(api.kubeconfig)) as client:
        made = Site(client)
        yield made
        for server in (await _answered(made.servers))["items"]:
            await made.custom.delete_cluster_custom_object(*SERVERS, server["metadata"]["name"])


class Informer:
    """List and watch as the documentation of kubernetes_asyncio shows it; lists again when the watch ends."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.names: set[str] = set()
        self.lists = 0
        self.changed = asyncio.Event()

    async def run(self) -> None:
        while True:
            try:
                await self._follow()
            except (ApiException, aiohttp.ClientError, TimeoutError):
                await asyncio.sleep(0.1)

    async def _follow(self) -> None:
        listed = await self._site.servers()
        self.lists += 1
        self._set({server["metadata"]["name"][0] for server in listed["items"]})
        version = listed["metadata"]["resourceVersion"]
        async with watch.Watch() as following:
            async for event in following.stream(self._site.servers, resource_version=version, timeout_seconds=5):
                name = event["object"]["metadata"]["name"][0]
                self._set(self.names - {name} if event["type"] == "DELETED" else self.names | {name})

    def _set(self, names: set[str]) -> None:
        self.names = names
        self.changed.set()

    async def becomes(self, *names: str) -> None:
        """Returns once exactly these are known. Raises TimeoutError."""
        async with asyncio.timeout(PATIENCE):
            while self.names != set(names):
                self.changed.clear()
                await self.changed.wait()


async def test_list_and_watch_stay_right_through_a_break(api: Home, site: Site) -> None:
    """The program's cache equals the API's content: through changes, deletions, and a break of every connection."""
    informer = Informer(site)
    await site.create("a")
    task = asyncio.create_task(informer.run())
    try:
        await informer.becomes("a")
        await site.create("b")
        await informer.becomes("a", "b")
        await site.delete("a")
        await informer.becomes("b")
        await api.restart()
        await _answered(lambda: site.create("c"))
        await informer.becomes("b", "c")
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert informer.lists >= 2


async def test_expired_watch_raises_410(api: Home, site: Site) -> None:
    """A watch from an expired version is refused with 410, so that the program lists again."""
    await api.restart()
    await _answered(lambda: site.create("a"))
    with pytest.raises(ApiException) as expired:
        async with watch.Watch() as following:
            await anext(following.stream(site.servers, resource_version="1", timeout_seconds=5))
    assert expired.value.status == 410


async def test_writes_are_refused_in_the_same_words(site: Site) -> None:
    """A duplicate name, an outdated version, a value outside its enumeration and an unknown name."""
    made = await site.create("a")
    await site.patch("a", {"spec": {"indicatorLED": "Lit"}})
    attempts: list[Any] = [
        lambda: site.create("a"),
        lambda: site.patch("a", {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "spec": {}}),
        lambda: site.patch("a", {"spec": {"indicatorLED": "Purple"}}),
        lambda: site.patch("b", {"spec": {"indicatorLED": "Lit"}}),
    ]
    codes = []
    for attempt in attempts:
        with pytest.raises(ApiException) as refused:
            await attempt()
        codes.append(refused.value.status)
    assert codes == [409, 409, 422, 404]


async def test_dynamic_client_applies(site: Site) -> None:
    """The dynamic client finds Server by discovery and applies it."""
    client = await dynamic.DynamicClient(site.client)
    servers = await client.resources.get(api_version="metal.ironcore.dev/v1alpha1", kind="Server")
    body = {
        "apiVersion": "metal.ironcore.dev/v1alpha1",
        "kind": "Server",
        "metadata": {"name": f"a-{site.suffix}", "labels": {"site": site.suffix}},
        "spec": {"systemUUID": "38947555-7742-3448-3784-823347823834"},
    }
    applied = await servers.server_side_apply(body=body, name=f"a-{site.suffix}", field_manager="site")
    assert applied.metadata.managedFields[0].manager == "site"


async def _answered(ask: Any) -> Any:
    """The response; requests on broken connections are repeated."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await ask()
            except aiohttp.ClientError:
                await asyncio.sleep(0.05)
