"""Debian's docker-registry with the images: open over http, and private with a password and an own authority."""

import base64
import contextlib
import socket
import urllib.request
from pathlib import Path
from typing import Any

from images.push import push

from tests.kube.client.pki import Authority
from tests.lab.netns import Namespace
from tests.lab.run import Run

CONFIG = {
    "version": "0.1",
    "log": {"accesslog": {"disabled": False}, "level": "info"},
}
USER, PASSWORD = "robot", "s3cret-w0rd"
HTPASSWD = f"{USER}:$2b$05$abcdefghijklmnopqrstuuxkfnsT92cmKajQ/1kES5QAXehS5Jpc.\n"
"""bcrypt of the password."""


class OCIRegistry:
    """A registry without credentials at http://ADDRESS."""

    def __init__(self, run: Run, where: Namespace, address: str) -> None:
        self.address = address
        self._where = where
        _serve(run, where, "docker-registry", {"http": {"addr": address}})
        run.wait_for("an answer of the OCI registry", self._answers, 20)

    def push(self, layout: Path, repository: str, tag: str = "latest") -> str:
        """Push an OCI layout and return its reference, HOST:PORT/REPOSITORY:TAG."""
        reference = f"{self.address}/{repository}:{tag}"
        self._where.inside(lambda: push(layout, f"http://{reference}"))
        return reference

    def _answers(self) -> bool:
        def ask() -> bool:
            with urllib.request.urlopen(f"http://{self.address}/v2/", timeout=2) as answer:
                return bool(answer.status == 200)

        try:
            return self._where.inside(ask)
        except OSError:
            return False


class PrivateRegistry:
    """The images of the open registry at https://ADDRESS, for a user with a password."""

    def __init__(self, run: Run, where: Namespace, address: str) -> None:
        self.address, self._where = address, where
        host, _, port = address.rpartition(":")
        self._folder = run.path("registry/private/x").parent
        authority = Authority()
        pair = authority.issue("registry", address=host)
        auths = {address: {"auth": base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()}}
        run.write_json("registry/private/config.json", {"auths": auths})
        for name, content in (
            ("ca.pem", authority.pem), ("tls.pem", pair.certificate), ("tls.key", pair.key),
            ("htpasswd", HTPASSWD.encode()),
        ):  # fmt: skip
            (self._folder / name).write_bytes(content)
        tls = {"certificate": self._file("tls.pem"), "key": self._file("tls.key")}
        auth = {"htpasswd": {"realm": "private", "path": self._file("htpasswd")}}
        _serve(run, where, "private-registry", {"http": {"addr": address, "tls": tls}, "auth": auth})
        run.wait_for("the private OCI registry", lambda: where.inside(lambda: _listens(host, int(port))), 20)

    @property
    def options(self) -> dict[str, Any]:
        """The section `registries` of a configuration, with which its images can be read."""
        server = {"name": self.address, "caFile": self._file("ca.pem")}
        return {"allowed": [self.address], "authFile": self._file("config.json"), "servers": [server]}

    def private(self, reference: str) -> str:
        """The reference to the same image here."""
        return f"{self.address}/{reference.partition('/')[2]}"

    def _file(self, name: str) -> str:
        return str(self._folder / name)


def _serve(run: Run, where: Namespace, name: str, config: dict[str, Any]) -> None:
    """Start a registry; all of them have the same images."""
    storage = {"filesystem": {"rootdirectory": str(run.path("registry/data"))}}
    file = run.write_json(f"registry/{name}.yml", {**CONFIG, "storage": storage, **config})
    run.start(name, ["docker-registry", "serve", str(file)], where)


def _listens(host: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=2):
        return True
    return False
