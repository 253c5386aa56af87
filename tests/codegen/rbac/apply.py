"""Applies generated files as an administrator would, through any client."""

from typing import Any

import yaml

from metal.api.meta import Kind
from metal.kube.client.protocol import Client

_RBAC = "rbac.authorization.k8s.io"
_KINDS: dict[str, Kind[Any]] = {
    "ServiceAccount": Kind("", "v1", "ServiceAccount", "serviceaccounts", object),
    "Role": Kind(_RBAC, "v1", "Role", "roles", object),
    "RoleBinding": Kind(_RBAC, "v1", "RoleBinding", "rolebindings", object),
    "ClusterRole": Kind(_RBAC, "v1", "ClusterRole", "clusterroles", object, namespaced=False),
    "ClusterRoleBinding": Kind(_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", object, namespaced=False),
}


async def apply_all(client: Client, text: str) -> None:
    """`kubectl apply --server-side -f -`."""
    for document in yaml.safe_load_all(text):
        await client.apply(_KINDS[document["kind"]], document, manager="admin")
