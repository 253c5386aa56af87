"""Debian's docker-registry with the images."""

import urllib.request
from pathlib import Path

from images.push import push

from tests.lab.netns import Namespace
from tests.lab.run import Run

CONFIG = {
    "version": "0.1",
    "log": {"accesslog": {"disabled": False}, "level": "info"},
    "storage": {"filesystem": {"rootdirectory": ""}},
}


class OCIRegistry:
    """A registry without credentials at http://ADDRESS."""

    def __init__(self, run: Run, where: Namespace, address: str) -> None:
        self.address = address
        self._where = where
        config = {
            **CONFIG,
            "http": {"addr": address},
            "storage": {"filesystem": {"rootdirectory": str(run.path("registry/data"))}},
        }
        run.start(
            "docker-registry", ["docker-registry", "serve", str(run.write_json("registry/config.yml", config))], where
        )
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
