"""Names that people type: short names, categories and `explain`, through a real kubectl."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from tests.conformance.api import Api, definition
from tests.conformance.conftest import established
from tests.conformance.homes import home
from tests.conformance.test_crds import CRDS
from tests.conformance.test_discovery import until

pytestmark = [pytest.mark.wire, pytest.mark.needs("kubectl")]

KUBE = pytest.param("kube", marks=pytest.mark.kube)


class Kubectl:
    """kubectl with a configuration and caches of its own."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self._options = ["--kubeconfig", str(kubeconfig), "--cache-dir", str(folder / "cache")]

    async def run(self, *words: str) -> str:
        """Its output; fails the test when it does."""
        process = await asyncio.create_subprocess_exec(
            shutil.which("kubectl") or "kubectl",
            *self._options,
            *words,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        assert process.returncode == 0, f"kubectl {' '.join(words)}: {err.decode()}"
        return out.decode()


@pytest.fixture(params=["tls", KUBE])
async def kubectl(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Kubectl]:
    """kubectl on a home that serves our kinds."""
    cluster = request.getfixturevalue("cluster") if request.param == "kube" else None
    async with home(request.param, tmp_path, cluster) as made:
        yield Kubectl(made.kubeconfig, tmp_path)


@asynccontextmanager
async def reaching(http: Api, folder: Path) -> AsyncIterator[Kubectl]:
    """kubectl on the API of a case, in its namespace."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": http.way.url, "insecure-skip-tls-verify": True}}],  # type: ignore[attr-defined]  # `http` has a way with a URL
        "users": [{"name": "it", "user": {"token": http.way.token}}],  # type: ignore[attr-defined]  # likewise
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it", "namespace": http.space}}],
    }
    path = folder / "case"
    path.write_text(yaml.safe_dump(config))
    yield Kubectl(path, folder)


async def test_our_kinds_have_short_names(kubectl: Kubectl) -> None:
    """`kubectl get srv` is `kubectl get servers.metal.ironcore.dev`; our kinds are in `metal`."""
    lines = (await kubectl.run("api-resources", "--categories=metal", "-o", "wide", "--no-headers")).splitlines()

    resources = {line.split()[0]: line.split() for line in lines}
    assert resources["servers"][1:5] == ["srv", "metal.ironcore.dev/v1alpha1", "false", "Server"]
    assert {"bmcs", "endpoints", "serverclaims", "serverbootconfigurations"} <= set(resources)
    assert resources["serverclaims"][-1] == "metal"
    assert await kubectl.run("get", "srv", "-o", "name") == await kubectl.run("get", "server", "-o", "name")
    await kubectl.run("get", "metal")


async def test_explain_reads_the_schema(kubectl: Kubectl) -> None:
    """`kubectl explain server.spec --recursive` prints each field with its type; without it the descriptions too."""
    tree = await kubectl.run("explain", "server.spec", "--recursive")
    field = await kubectl.run("explain", "srv.spec.power")

    assert "KIND:       Server" in tree
    assert "VERSION:    v1alpha1" in tree
    assert "    key\t<string> -required-\n" in tree
    assert "    enum: NoBind, Evict\n" in tree
    assert "\n  uuid\t<string>\n" in tree
    assert "FIELD: power <string>" in field
    assert len(field.partition("DESCRIPTION:")[2].strip()) > 10


async def test_a_category_holds_several_kinds(http: Api, tmp_path: Path) -> None:
    """`kubectl get CATEGORY` lists the objects of every kind that names it, by short name or category alike."""
    group, word = f"k{http.suffix}.example.org", f"toys{http.suffix}"
    crds = [definition(kind, group=group) for kind in ("Ball", "Kite")]
    for crd, short in zip(crds, ("ba", "ki"), strict=True):
        crd["spec"]["names"] |= {"shortNames": [f"{short}{http.suffix}"], "categories": [word]}
        (await http.create(CRDS, crd)).ok()
    for crd, name in zip(crds, ("red", "blue"), strict=True):
        await established(http, crd["metadata"]["name"])
        names = crd["spec"]["names"]
        head = {"apiVersion": f"{group}/v1", "kind": names["kind"], "metadata": {"name": name}}
        (await http.create(http.path(names["plural"], base=f"/apis/{group}/v1"), head)).ok()
    async with reaching(http, tmp_path) as kubectl:
        await until(
            lambda: kubectl.run("api-resources", f"--categories={word}", "-o", "name"), lambda out: out.count("\n") == 2
        )
        every = await kubectl.run("get", word, "-o", "name")
        one = await kubectl.run("get", f"ki{http.suffix}", "-o", "name")

    assert sorted(every.split()) == [f"ball.{group}/red", f"kite.{group}/blue"]
    assert one.split() == [f"kite.{group}/blue"]
    for crd in crds:
        await http.delete(f"{CRDS}/{crd['metadata']['name']}")
