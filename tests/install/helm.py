"""helm with folders of its own, so that nothing of the machine's helm is read or written."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

TOP = Path(__file__).resolve().parents[2]
CHART = TOP / "charts/metal-operator"
KUBE_VERSION = "v1.35.4"
SMALLEST = CHART / "ci/smallest-values.yaml"
VALUE_SETS = sorted((CHART / "ci").glob("*-values.yaml"))


class Helm:
    """Runs helm against the cluster of a kubeconfig."""

    def __init__(self, folder: Path, kubeconfig: Path | None = None) -> None:
        told = subprocess.run([TOP / "tools/kube", "helm"], stdout=subprocess.PIPE, text=True, check=True).stdout
        self._program = told.strip()
        self._rendered: dict[tuple[str | Path, ...], str] = {}
        homes = {f"HELM_{kind}_HOME": str(folder / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        self._environment = {**os.environ, **homes, "KUBECONFIG": str(kubeconfig or folder / "none")}

    def run(self, *words: str | Path, fails: bool = False) -> str:
        """What helm prints; with `fails`, what it complains of, and it must complain."""
        done = subprocess.run([self._program, *words], env=self._environment, capture_output=True, text=True)
        if fails:
            assert done.returncode != 0, f"helm did not refuse: {done.stdout}"
            return done.stderr
        assert done.returncode == 0, done.stderr
        return done.stdout

    def template(self, *words: str | Path, chart: Path = CHART, namespace: str = "metal-system") -> list[Any]:
        """The objects that a release would have."""
        asked = ("template", "metal-operator", chart, "--namespace", namespace, "--kube-version", KUBE_VERSION, *words)
        if asked not in self._rendered:
            self._rendered[asked] = self.run(*asked)
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        return [document for document in yaml.load_all(self._rendered[asked], loader) if document]


def of_kind(objects: Sequence[Any], kind: str) -> list[Any]:
    """Those of one kind."""
    return [one for one in objects if one["kind"] == kind]


def only(objects: Sequence[Any], kind: str) -> Any:
    """The only one of a kind."""
    (found,) = of_kind(objects, kind)
    return found
