"""get, describe, apply and delete against a kube-apiserver, with the same texts as with the embedded API."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from metal.kube.client.http import HTTPClient
from metal.kube.client.kubeconfig import load
from tests.cli.live import Live
from tests.kubeapi.cluster import KubeCluster, running

CRDS = Path(__file__).parents[3] / "config" / "crd"
OBJECTS = """
apiVersion: v1
kind: Namespace
metadata: {name: by-hand}
---
apiVersion: metal.ironcore.dev/v1alpha1
kind: Server
metadata: {name: by-hand, labels: {by: hand}}
spec: {systemUUID: 38947555-7742-3448-3784-823347823834}
---
apiVersion: metal.ironcore.dev/v1alpha1
kind: ServerClaim
metadata: {name: by-hand, namespace: by-hand}
spec: {power: "On", image: "x/os:1"}
"""
NAMES = ["namespace/by-hand", "server.metal.ironcore.dev/by-hand", "serverclaim.metal.ironcore.dev/by-hand"]


@pytest.fixture
def cluster() -> Iterator[KubeCluster]:
    """Start a kube-apiserver for these tests, which install CRDs under the real names."""
    with running() as started:
        yield started


@pytest.mark.kube
async def test_objects_are_the_same_on_a_cluster(cluster: KubeCluster, tmp_path: Path) -> None:
    """CRDs, names of kinds, categories, selectors, tables, dry runs, exit codes and waits work as with the embedded
    API."""
    file = tmp_path / "objects.yaml"
    file.write_text(OBJECTS)
    async with HTTPClient(load(cluster.kubeconfig)) as client:
        kube = Live(client, cluster.kubeconfig)
        code, out, err = await kube.metalctl("apply", "-f", str(CRDS), "--force-conflicts")
        assert (code, len(out.splitlines())) == (0, len(list(CRDS.glob("*.yaml")))), err
        for what in ("created", "unchanged"):
            code, out, err = await kube.metalctl("apply", "-f", str(file))
            assert (code, out.splitlines()) == (0, [f"{name} {what}" for name in NAMES]), err
        header, row = (await kube.metalctl("get", "srv", "-l", "by=hand"))[1].splitlines()
        assert (header.split()[:2], row.split()[0]) == (["NAME", "SYSTEMUUID"], "by-hand")
        assert NAMES[2] in (await kube.metalctl("get", "metal", "-n", "by-hand", "-o", "name"))[1]
        assert json.loads((await kube.metalctl("get", "server/by-hand", "-o", "json"))[1])["kind"] == "Server"
        assert "systemUUID: 38947555" in (await kube.metalctl("describe", "server", "by-hand"))[1]
        missing = await kube.metalctl("get", "srv", "nobody")
        assert missing[::2] == (3, "Error: servers nobody not found\n")
        assert (await kube.metalctl("cordon", "by-hand"))[1] == "server/by-hand cordoned\n"
        code, out, err = await kube.metalctl("delete", "scl/by-hand", "-n", "by-hand", "--wait")
        assert (code, out) == (0, "serverclaim.metal.ironcore.dev/by-hand deleted\n"), err
        assert (await kube.metalctl("delete", "server/by-hand", "namespace/by-hand"))[0] == 0
