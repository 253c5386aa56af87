"""Third-party Python clients, used as a site's scripts would, on both homes."""

import asyncio
import secrets
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import kubernetes
import pytest
import urllib3
from kubernetes import dynamic, utils, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.informer import ADDED, DELETED, MODIFIED, SharedInformer
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

from tests.conformance.homes import Home, home

pytestmark = pytest.mark.wire

GROUP, VERSION = "metal.ironcore.dev", "v1alpha1"
PATIENCE = 30


@pytest.fixture(params=["tls", pytest.param("kube", marks=pytest.mark.kube)])
async def api(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Home]:
    """Both homes."""
    cluster = request.getfixturevalue("cluster") if request.param == "kube" else None
    async with home(request.param, tmp_path, cluster) as made:
        yield made


class Site:
    """A client, a namespace of its own, and names that are unique to this site."""

    def __init__(self, kubeconfig: Path) -> None:
        self.api = kubernetes.config.new_client_from_config(str(kubeconfig))
        self.core = kubernetes.client.CoreV1Api(self.api)
        self.custom = kubernetes.client.CustomObjectsApi(self.api)
        self.suffix = secrets.token_hex(4)
        self.space = f"site-{self.suffix}"
        self.core.create_namespace({"metadata": {"name": self.space}})

    def server(self, name: str) -> dict[str, Any]:
        """A new Server that carries the site's label."""
        return {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "Server",
            "metadata": {"name": f"{name}-{self.suffix}", "labels": {"site": self.suffix}},
            "spec": {"systemUUID": "38947555-7742-3448-3784-823347823834"},
        }

    def servers(self, **more: Any) -> Any:
        """List (or watch) the Servers of this site."""
        return self.custom.list_cluster_custom_object(
            GROUP, VERSION, "servers", label_selector=f"site={self.suffix}", **more
        )

    def create(self, name: str) -> Any:
        return self.custom.create_cluster_custom_object(GROUP, VERSION, "servers", self.server(name))

    def patch_status(self, name: str, status: dict[str, Any]) -> Any:
        return self.custom.patch_cluster_custom_object_status(
            GROUP, VERSION, "servers", f"{name}-{self.suffix}", {"status": status}
        )

    def delete(self, name: str) -> Any:
        return self.custom.delete_cluster_custom_object(GROUP, VERSION, "servers", f"{name}-{self.suffix}")

    def close(self) -> None:
        """Delete everything of this site."""
        for server in self.servers()["items"]:
            self.custom.delete_cluster_custom_object(GROUP, VERSION, "servers", server["metadata"]["name"])
        self.core.delete_namespace(self.space)
        self.api.close()


@pytest.fixture
async def site(api: Home) -> AsyncIterator[Site]:
    """A client of the package `kubernetes`; it blocks, so everything with it runs in threads."""
    made = await asyncio.to_thread(Site, api.kubeconfig)
    yield made
    await asyncio.to_thread(made.close)


async def test_built_in_kinds_by_typed_methods(site: Site) -> None:
    """Secrets and ConfigMaps are created, patched, listed and deleted as models; errors carry code and reason."""

    def script() -> tuple[Any, Any, list[str], ApiException, ApiException]:
        meta = kubernetes.client.V1ObjectMeta(name="login")
        secret = kubernetes.client.V1Secret(metadata=meta, string_data={"user": "root"})
        site.core.create_namespaced_secret(site.space, secret)
        patched = site.core.patch_namespaced_secret("login", site.space, {"stringData": {"password": "x"}})
        with pytest.raises(ApiException) as twice:
            site.core.create_namespaced_secret(site.space, secret)
        names = [s.metadata.name for s in site.core.list_namespaced_secret(site.space).items]
        gone = site.core.delete_namespaced_secret("login", site.space)
        with pytest.raises(ApiException) as missing:
            site.core.read_namespaced_secret("login", site.space)
        return patched, gone, names, twice.value, missing.value

    patched, gone, names, twice, missing = await asyncio.to_thread(script)

    assert patched.data == {"user": "cm9vdA==", "password": "eA=="}
    assert (gone["status"], gone["details"]["name"], names) == ("Success", "login", ["login"])
    assert (twice.status, twice.reason, '"reason":"AlreadyExists"' in str(twice.body)) == (409, "Conflict", True)
    assert (missing.status, '"reason":"NotFound"' in str(missing.body)) == (404, True)


async def test_list_then_watch_sees_every_change(site: Site) -> None:
    """A watch from the list's version reports each change once and in order."""

    def script() -> list[tuple[str, str, str]]:
        site.create("a")
        listed = site.servers()
        assert [s["metadata"]["name"] for s in listed["items"]] == [f"a-{site.suffix}"]
        site.create("b")
        site.patch_status("b", {"state": "Available"})
        site.delete("a")
        told: list[tuple[str, str, str]] = []
        stream = watch.Watch()
        for event in stream.stream(
            site.servers, resource_version=listed["metadata"]["resourceVersion"], timeout_seconds=PATIENCE
        ):
            server = event["object"]
            told.append((event["type"], server["metadata"]["name"][0], server.get("status", {}).get("state", "")))
            if len(told) == 3:
                stream.stop()
        return told

    assert await asyncio.to_thread(script) == [("ADDED", "b", ""), ("MODIFIED", "b", "Available"), ("DELETED", "a", "")]


async def test_expired_watch_is_told_and_begun_again(api: Home, site: Site) -> None:
    """A watch from an expired version is answered with 410; the script lists again and continues from there."""

    def script() -> tuple[int, list[str]]:
        _until_answered(lambda: site.create("a"))
        with pytest.raises(ApiException) as expired:
            next(watch.Watch().stream(site.servers, resource_version="1", timeout_seconds=PATIENCE))
        version = site.servers()["metadata"]["resourceVersion"]
        site.create("b")
        event = next(watch.Watch().stream(site.servers, resource_version=version, timeout_seconds=PATIENCE))
        return expired.value.status, [event["type"], event["object"]["metadata"]["name"]]

    await api.restart()
    assert await asyncio.to_thread(script) == (410, ["ADDED", f"b-{site.suffix}"])


async def test_claims_are_made_changed_and_removed(site: Site) -> None:
    """A claim is created, patched, replaced with the version that was read, refused with an older one, and deleted."""
    claims = (GROUP, VERSION, site.space, "serverclaims")
    claim = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "ServerClaim",
        "metadata": {"name": "worker"},
        "spec": {"power": "On", "image": "registry.example.com/os/demo:1.0"},
    }

    def script() -> tuple[Any, int, str, int, list[Any]]:
        made = site.custom.create_namespaced_custom_object(*claims, claim)
        site.custom.patch_namespaced_custom_object(*claims, "worker", {"spec": {"power": "Off"}})
        with pytest.raises(ApiException) as stale:
            site.custom.replace_namespaced_custom_object(*claims, "worker", made)
        fresh = site.custom.get_namespaced_custom_object(*claims, "worker")
        fresh["spec"]["image"] = "registry.example.com/os/demo:2.0"
        replaced = site.custom.replace_namespaced_custom_object(*claims, "worker", fresh)
        with pytest.raises(ApiException) as wrong:
            site.custom.patch_namespaced_custom_object(*claims, "worker", {"spec": {"power": "Maybe"}})
        site.custom.delete_namespaced_custom_object(*claims, "worker")
        left = site.custom.list_namespaced_custom_object(*claims)["items"]
        return replaced, stale.value.status, str(stale.value.body), wrong.value.status, left

    replaced, stale, told, wrong, left = await asyncio.to_thread(script)

    assert (replaced["spec"]["power"], replaced["metadata"]["generation"]) == ("Off", 3)
    assert (stale, "the object has been modified" in told) == (409, True)
    assert (wrong, left) == (422, [])


async def test_dynamic_client_finds_our_kinds(site: Site) -> None:
    """Discovery finds Server; the object is applied, patched, read by label and deleted without a class for it."""

    def script() -> tuple[Any, Any, list[str], str]:
        client = dynamic.DynamicClient(site.api)
        servers = client.resources.get(api_version=f"{GROUP}/{VERSION}", kind="Server")
        applied = servers.server_side_apply(site.server("a"), field_manager="site")
        patched = servers.patch(
            {"spec": {"indicatorLED": "Lit"}}, name=applied.metadata.name, content_type="application/merge-patch+json"
        )
        names = [s.metadata.name for s in servers.get(label_selector=f"site={site.suffix}").items]
        servers.delete(name=applied.metadata.name)
        configs = client.resources.get(api_version="v1", kind="ConfigMap")
        made = configs.create({"metadata": {"name": "c"}, "data": {"a": "b"}}, namespace=site.space)
        return applied, patched, names, made.data.a

    applied, patched, names, data = await asyncio.to_thread(script)

    assert (applied.metadata.managedFields[0].manager, patched.spec.indicatorLED) == ("site", "Lit")
    assert (names, data) == ([f"a-{site.suffix}"], "b")


async def test_manifests_are_created_from_yaml(site: Site, tmp_path: Path) -> None:
    """create_from_yaml creates every document; a second time each is refused as existing."""
    manifest = tmp_path / "site.yaml"
    manifest.write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: b}\n---\n"
        "apiVersion: v1\nkind: Secret\nmetadata: {name: two}\nstringData: {c: d}\n---\n"
        "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: three}\nspec: {holderIdentity: me}\n"
    )

    def script() -> tuple[list[str], list[int]]:
        made = utils.create_from_yaml(site.api, str(manifest), namespace=site.space)
        with pytest.raises(utils.FailToCreateError) as refused:
            utils.create_from_yaml(site.api, str(manifest), namespace=site.space)
        return [one.metadata.name for (one,) in made], [error.status for error in refused.value.api_exceptions]

    assert await asyncio.to_thread(script) == (["one", "two", "three"], [409, 409, 409])


async def test_informer_stays_right_through_a_break(api: Home, site: Site) -> None:
    """The cache of SharedInformer equals the API's content, also after every connection broke."""
    told: list[tuple[str, str]] = []
    informer = SharedInformer(site.core.list_namespaced_config_map, namespace=site.space, label_selector="site=a")
    for kind in (ADDED, MODIFIED, DELETED):
        informer.add_event_handler(kind, _recorder(told, kind))

    def create(name: str) -> None:
        made = {"metadata": {"name": name, "labels": {"site": "a"}}, "data": {"a": "1"}}
        _until_answered(lambda: site.core.create_namespaced_config_map(site.space, made))

    def within(*names: str) -> None:
        for _ in _patiently():
            if {config.metadata.name for config in informer.cache.list()} == set(names):
                return

    def script() -> None:
        site.core.delete_namespaced_config_map("a", site.space)
        within("b")
        # An object that no longer matches the selector is gone for this informer.
        site.core.patch_namespaced_config_map("b", site.space, {"metadata": {"labels": {"site": None}}})
        within()

    informer.start()
    try:
        await asyncio.to_thread(create, "a")
        await asyncio.to_thread(within, "a")
        await api.restart()
        await asyncio.to_thread(create, "b")
        await asyncio.to_thread(within, "a", "b")
        await asyncio.to_thread(script)
    finally:
        await asyncio.to_thread(informer.stop)

    assert {(ADDED, "a"), (ADDED, "b"), (DELETED, "a"), (DELETED, "b")} <= set(told)


async def test_leases_elect_one_leader_after_another(site: Site) -> None:
    """Of two candidates one leads at a time; the second takes over once the first has stopped."""
    order: list[str] = []
    first_may_stop, second_leads = threading.Event(), threading.Event()

    def lead_first() -> None:
        order.append("first leads")
        first_may_stop.wait(PATIENCE)
        raise RuntimeError("enough")  # how a leader steps back in this library

    def lead_second() -> None:
        order.append("second leads")
        second_leads.set()
        raise RuntimeError("enough")

    def candidate(name: str, lead: Callable[[], None]) -> threading.Thread:
        lock = LeaseLock("leader", site.space, name)
        config = electionconfig.Config(
            lock, 4, 3, 1, onstarted_leading=lead, onstopped_leading=lambda: order.append(f"{name} stops")
        )
        thread = threading.Thread(target=leaderelection.LeaderElection(config).run, daemon=True)
        thread.start()
        return thread

    def script() -> None:
        first = candidate("first", lead_first)
        for _ in _patiently():
            if order:
                break
        second = candidate("second", lead_second)
        assert not second_leads.wait(2.5)
        first_may_stop.set()
        for thread in (first, second):
            thread.join(PATIENCE)
            assert not thread.is_alive()

    kubernetes.client.Configuration.set_default(site.api.configuration)
    try:
        await asyncio.to_thread(script)
    finally:
        kubernetes.client.Configuration.set_default(None)

    assert order == ["first leads", "first stops", "second leads", "second stops"]


def _recorder(told: list[tuple[str, str]], kind: str) -> Callable[[Any], None]:
    return lambda config: told.append((kind, config.metadata.name))


def _until_answered(ask: Callable[[], Any]) -> None:
    for _ in _patiently():
        try:
            ask()
        except (ApiException, OSError, urllib3.exceptions.HTTPError):
            continue
        return


def _patiently() -> Iterator[None]:
    """Repeat until it succeeds or the time is over, which fails the test."""
    pause = threading.Event()
    for _ in range(PATIENCE * 20):
        yield
        pause.wait(0.05)
    pytest.fail(f"nothing came of it within {PATIENCE} s")
