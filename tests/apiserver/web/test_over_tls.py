"""The HTTP client and informers of metal.kube against the embedded API over TLS."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from metal.apiserver.server import EmbeddedAPI
from metal.kube.cache.informer import Informer
from metal.kube.client.errors import AlreadyExists, Conflict, Expired, Invalid, NotFound, Unauthorized, Unavailable
from metal.kube.client.http import HTTPClient
from metal.kube.client.kubeconfig import load
from metal.kube.meta.clock import system_clock
from tests.apiserver.widgets import WIDGET, Widget, crd


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[EmbeddedAPI]:
    """An API that listens, with a disk under it."""
    made = EmbeddedAPI(tmp_path / "data", system_clock)
    await made.start()
    await made.install_crds([crd()])
    await made.listen(port=0)
    yield made
    await made.stop()


@pytest.fixture
async def client(api: EmbeddedAPI) -> AsyncIterator[HTTPClient]:
    """A client by the kubeconfig that the API wrote."""
    async with HTTPClient(load(api.kubeconfig)) as made:
        yield made


def _widget(name: str, size: int = 1) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"size": size}}


async def test_an_object_lives_and_dies_over_the_wire(client: HTTPClient) -> None:
    """create, get, patch, status, apply, delete: each answer is the object as it now is."""
    made = await client.create(WIDGET, _widget("a"))
    patched = await client.patch(WIDGET, "a", {"spec": {"size": 2}}, "default")
    status = await client.patch_status(WIDGET, "a", {"status": {"phase": "Ready"}}, "default")
    applied = await client.apply(WIDGET, _widget("a", 5), manager="m")
    read = await client.get(WIDGET, "a", "default")
    await client.delete(WIDGET, "a", "default", uid=made.metadata.uid)
    with pytest.raises(NotFound):
        await client.get(WIDGET, "a", "default")
    assert (made.spec.size, patched.spec.size, status.status.phase, applied.spec.size) == (1, 2, "Ready", 5)
    assert read == applied
    assert made.metadata.generation < applied.metadata.generation


async def test_refusals_arrive_as_their_own_errors(client: HTTPClient) -> None:
    """409 with both reasons, 422 with the field, 404."""
    made = await client.create(WIDGET, _widget("a"))
    with pytest.raises(AlreadyExists):
        await client.create(WIDGET, _widget("a"))
    await client.patch(WIDGET, "a", {"spec": {"size": 2}}, "default")
    with pytest.raises(Conflict):
        await client.patch(
            WIDGET,
            "a",
            {"metadata": {"resourceVersion": made.metadata.resource_version}, "spec": {"size": 3}},
            "default",
        )
    with pytest.raises(Invalid, match=r"spec\.size"):
        await client.patch(WIDGET, "a", {"spec": {"size": -1}}, "default")
    with pytest.raises(NotFound):
        await client.patch_status(WIDGET, "b", {"status": {}}, "default")


async def test_a_watch_from_too_far_back_says_expired(api: EmbeddedAPI, client: HTTPClient) -> None:
    """410 inside the stream is raised, so that an informer lists again."""
    made = await client.create(WIDGET, _widget("a"))
    await client.patch(WIDGET, "a", {"spec": {"size": 2}}, "default")
    store = api.backend.store
    store.hub.restart(store.version)
    with pytest.raises(Expired):
        await anext(aiter(client.watch(WIDGET, resource_version=made.metadata.resource_version)))


async def test_an_informer_follows_over_the_wire_and_through_a_restart(tmp_path: Path) -> None:
    """After the API stops and starts again on the same port, the cache recovers without help."""
    api = EmbeddedAPI(tmp_path / "data", system_clock)
    await api.start()
    await api.install_crds([crd()])
    port = await api.listen(port=0)
    async with HTTPClient(load(api.kubeconfig), total=2) as client:
        informer: Informer[Widget] = Informer(client, WIDGET)
        seen: asyncio.Queue[list[str]] = asyncio.Queue()
        informer.add_handler(lambda _, __: seen.put_nowait([w.metadata.name for w in informer.items()]))
        task = asyncio.create_task(informer.run())
        await asyncio.wait_for(informer.synced.wait(), 5)
        await api.client().create(WIDGET, _widget("a"))
        assert await asyncio.wait_for(seen.get(), 5) == ["a"]
        await api.stop()
        api = EmbeddedAPI(tmp_path / "data", system_clock)
        await api.start()
        await api.client().create(WIDGET, _widget("b"))
        await api.client().delete(WIDGET, "a", "default")
        await api.listen(port=port)
        async with asyncio.timeout(15):
            while await seen.get() != ["b"]:
                pass
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await api.stop()


async def test_a_thousand_objects_come_in_pages_and_all(api: EmbeddedAPI, client: HTTPClient) -> None:
    """The client follows `continue` to the end."""
    await asyncio.gather(*(api.client().create(WIDGET, _widget(f"w{n:04}")) for n in range(1200)))
    page = await client.list(WIDGET, "default")
    assert [w.metadata.name for w in page.items] == [f"w{n:04}" for n in range(1200)]


async def test_nobody_without_a_token_and_nobody_home(api: EmbeddedAPI, tmp_path: Path) -> None:
    """401 for a wrong token; a closed port is Unavailable, not a hang."""
    text = api.kubeconfig.read_text()
    token = next(line.split()[-1] for line in text.splitlines() if "token:" in line)
    wrong = tmp_path / "wrong"
    wrong.write_text(text.replace(token, "not-" + token))
    async with HTTPClient(load(wrong)) as client:
        with pytest.raises(Unauthorized):
            await client.list(WIDGET)
    dead = tmp_path / "dead"
    dead.write_text(text.replace(api.url, "https://127.0.0.1:1"))
    async with HTTPClient(load(dead)) as client:
        with pytest.raises(Unavailable):
            await client.list(WIDGET)


async def test_kinds_are_found_over_the_wire_as_in_process(api: EmbeddedAPI, client: HTTPClient) -> None:
    """The same resources by both ways, for the core group and one of a CRD; NotFound where there is none."""
    for api_version in ("v1", WIDGET.api_version):
        assert set(await client.resources(api_version)) == set(await api.client().resources(api_version))
    with pytest.raises(NotFound):
        await client.resources("nobody.example/v1")
