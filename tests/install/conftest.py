"""A cluster for installations alone: they bring CRDs and roles, which other tests have too."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver import kubectl
from tests.install.helm import Helm
from tests.kubeapi.cluster import KubeCluster, running


class Site:
    """A cluster with the programs that install on it."""

    def __init__(self, cluster: KubeCluster, folder: Path) -> None:
        self.cluster = cluster
        self.helm = Helm(folder, cluster.kubeconfig)

    def kubectl(self, *words: str | Path, stdin: str | None = None, program: str = "") -> str:
        """What kubectl prints; it must succeed."""
        environment = {**os.environ, "KUBECONFIG": str(self.cluster.kubeconfig)}
        command = [program or kubectl.program(), *words]
        done = subprocess.run(command, env=environment, input=stdin, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="package")
def site() -> Iterator[Site]:
    """One cluster for this folder; each test leaves it without releases and CRDs."""
    with running() as cluster:
        yield Site(cluster, cluster.folder / "helm")
