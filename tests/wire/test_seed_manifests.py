"""The promised manifests, applied by kubectl to the embedded API over TLS and to kube-apiserver."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from metal.api.kinds import kinds
from metal.apiserver.server import EmbeddedAPI
from metal.codegen.crd import crds
from metal.kube.meta.clock import system_clock
from tests.api.schemas import SAMPLES, documents
from tests.apiserver.kubectl import program

pytestmark = [pytest.mark.wire, pytest.mark.needs("kubectl"), pytest.mark.asyncio(loop_scope="module")]

SEEDS = sorted((SAMPLES / "seed").glob("*.yaml"))
OURS = sorted(path for path in SAMPLES.glob("*.yaml") if path.name != "mac-prefixes.yaml")
GROUPS = ("metal.ironcore.dev", "metal.openkcm.dev")
NAMESPACES = ("metal-system", "default", "defauilt")
"""The second one is spelled so in a promised manifest."""


class Kubectl:
    """Runs kubectl with a kubeconfig; its caches stay in a directory of the test."""

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(home)}

    async def __call__(self, *arguments: str) -> str:
        process = await asyncio.create_subprocess_exec(
            program(), *arguments, env=self._environment,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, error = await process.communicate()
        assert process.returncode == 0, error.decode()
        assert not error, error.decode()
        return out.decode()


@pytest_asyncio.fixture(
    scope="module", loop_scope="module", params=["tls", pytest.param("kube", marks=pytest.mark.kube)]
)
async def kubectl(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Kubectl]:
    """kubectl with an API that serves the kinds under two groups: the project's, and the distribution's."""
    folder, home = tmp_path_factory.mktemp("api"), tmp_path_factory.mktemp("home")
    if request.param == "kube":
        made = Kubectl(request.getfixturevalue("cluster").kubeconfig, home)
        await _prepare(made, folder)
        yield made
        return
    api = EmbeddedAPI(folder, system_clock)
    await api.start()
    await api.listen(port=0)
    made = Kubectl(api.kubeconfig, home)
    await _prepare(made, folder)
    yield made
    await api.stop()


async def _prepare(kubectl: Kubectl, folder: Path) -> None:
    definitions = [crd for group in GROUPS for crd in crds(kinds(group))]
    spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in NAMESPACES]
    manifest, waited = folder / "kinds.yaml", folder / "crds.yaml"
    manifest.write_text(yaml.safe_dump_all([*definitions, *spaces]))
    waited.write_text(yaml.safe_dump_all(definitions))
    await kubectl("apply", "--server-side", "--force-conflicts", "-f", str(manifest))
    await kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", str(waited))


@pytest.mark.parametrize("path", [*SEEDS, *OURS], ids=lambda path: str(path.relative_to(SAMPLES)))
async def test_kubectl_applies_the_manifest_and_reads_it_back(kubectl: Kubectl, path: Path) -> None:
    """kubectl applies it without a warning; nothing of its spec is lost; a second apply changes nothing."""
    await kubectl("apply", "-f", str(path))
    for document in documents(path):
        read = json.loads(await kubectl("get", *_reference(document), "-o", "json"))
        assert _contains(read.get("spec"), document.get("spec"))
    again = await kubectl("apply", "-f", str(path))
    ours = [line for line in again.splitlines() if not line.startswith("secret/")]  # stringData is write-only
    assert ours
    assert all(line.endswith("unchanged") for line in ours), again
    for document in documents(path):
        await kubectl("delete", *_reference(document), "--wait=false")


async def test_kubectl_lists_everything_by_its_category(kubectl: Kubectl) -> None:
    """`kubectl get metal` shows objects of several kinds, and the columns show the waits."""
    await kubectl("apply", "-f", str(SAMPLES / "endpoint.yaml"), "-f", str(SAMPLES / "bmc.yaml"))
    shown = await kubectl("get", "metal")
    assert "endpoint.metal.ironcore.dev/bmc-rack1-01" in shown
    assert "bmc.metal.ironcore.dev/bmc-rack1-02" in shown
    assert "WAITING-FOR" in shown


async def test_kubectl_explains_fields_with_our_sentences(kubectl: Kubectl) -> None:
    """`kubectl explain` prints the docstring of a field, with the allowed values."""
    text = " ".join((await kubectl("explain", "server.spec.reclaimPolicy")).split())
    assert "What happens after the claim is deleted. Recycle sanitizes the server and makes it available again." in text
    assert "Retain keeps it in state Released." in text
    assert "Recycle Retain" in text or "Recycle, Retain" in text  # versions of kubectl differ


async def test_unquoted_power_is_refused_with_the_name_of_the_field(kubectl: Kubectl, tmp_path: Path) -> None:
    """YAML reads an unquoted On as a boolean; the error names the field."""
    path = tmp_path / "claim.yaml"
    path.write_text((SAMPLES / "seed" / "serverclaim.yaml").read_text().replace('"On"', "On"))
    with pytest.raises(AssertionError, match=r"spec\.power"):
        await kubectl("apply", "-f", str(path))


def _reference(document: dict[str, object]) -> list[str]:
    metadata = document["metadata"]
    assert isinstance(metadata, dict)
    group, _, version = str(document["apiVersion"]).rpartition("/")
    kind = f"{document['kind']}.{version}.{group}" if group else str(document["kind"])
    namespace = metadata.get("namespace")
    return [f"{kind}/{metadata['name']}", *(["-n", str(namespace)] if namespace else [])]


def _contains(whole: object, part: object) -> bool:
    """Whether every member of `part` is in `whole`; defaults may have been added."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(_contains(whole.get(key), value) for key, value in part.items())
    if isinstance(part, list):
        return isinstance(whole, list) and len(whole) == len(part) and all(map(_contains, whole, part))
    return whole == part
