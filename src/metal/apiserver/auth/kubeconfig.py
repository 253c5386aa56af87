"""The kubeconfig that kubectl and HTTP clients use."""

import base64
from pathlib import Path
from typing import Any

import msgspec

from metal.apiserver.auth.tokens import write_private

NAME = "metal"


def write(path: Path, *, server: str, authority: bytes, token: str, user: str = "admin") -> None:
    """Write a kubeconfig of mode 0600. server: the URL; authority: PEM of the CA certificate."""
    cluster = {"server": server, "certificate-authority-data": base64.b64encode(authority).decode()}
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": user, "namespace": "default"}}],
        "current-context": NAME,
    }
    write_private(path, msgspec.yaml.encode(config))
