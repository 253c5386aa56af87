"""What a manager needs of a real cluster before it starts: CRDs that are served, its namespace, its rights."""

import asyncio
import subprocess
from typing import Any

from metal.api.core import CRD
from metal.api.kinds import Kinds
from metal.codegen import rbac
from metal.kube.client.errors import ApiError
from metal.kube.client.protocol import Client
from tests.crds import crds
from tests.kubeapi.cluster import KubeCluster


async def install(cluster: KubeCluster, client: Client, kinds: Kinds, namespace: str) -> str:
    """All of it; returns a token of the manager's ServiceAccount, which has the generated rights and no others."""
    for crd in crds(kinds):
        await client.apply(CRD, crd, manager="test")
    kubectl(cluster, "create", "namespace", namespace)
    kubectl(cluster, "apply", "-f", "-", text="".join(rbac.files(kinds.group, kinds.boot_group, namespace).values()))
    for kind in kinds.all():
        await _served(client, kind)
    return kubectl(cluster, "-n", namespace, "create", "token", rbac.NAME)


async def _served(client: Client, kind: Any) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                await client.list(kind)
            except ApiError:
                await asyncio.sleep(0.1)
            else:
                return


def kubectl(cluster: KubeCluster, *args: str, text: str = "") -> str:
    """Output of a kubectl command of the administrator, without the line break at its end."""
    command = ["kubectl", "--kubeconfig", str(cluster.kubeconfig), *args]
    return subprocess.run(command, input=text, text=True, check=True, stdout=subprocess.PIPE).stdout.strip()
