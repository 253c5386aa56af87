"""The product: `metalctl up` in the operator's namespace, and kubectl beside it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.lab.netns import Namespace
from tests.lab.run import Run

METALCTL = str(Path(sys.executable).with_name("metalctl"))
KUBECTL = str(Path(__file__).resolve().parents[2] / "tools/kubectl")
START = 60
"""Seconds until the API answers, with both processors busy."""


class Operator:
    """The whole control plane in one process; `kubeconfig` works inside the namespace only."""

    def __init__(self, run: Run, where: Namespace, config: dict[str, Any]) -> None:
        self._run, self._where, self._config = run, where, config
        self.data = run.path("operator/data/x").parent
        self.kubeconfig = self.data / "kubeconfig"
        self._kubectl = subprocess.run([KUBECTL], capture_output=True, text=True, check=True).stdout.strip()
        self.start()

    def start(self) -> None:
        """Start it, or start it again on the same data."""
        path = self._run.path("operator/config.yaml")
        path.write_text(yaml.safe_dump(self._config))
        command = [METALCTL, "up", "--data", str(self.data), "--config", str(path)]
        self._run.start("operator", command, self._where)
        self._run.wait_for("an answer of our API", self._answers, START)

    @property
    def lease_hook(self) -> list[str]:
        """The command that DHCP servers call for each lease, without their arguments."""
        return [METALCTL, "lease-hook", "--kubeconfig", str(self.kubeconfig)]

    def kubectl(self, *arguments: str, given: str = "") -> str:
        """Run kubectl and return its output; an error has what it printed."""
        return self._ask([self._kubectl, "--kubeconfig", str(self.kubeconfig), *arguments], given)

    def metalctl(self, *arguments: str) -> str:
        """Run metalctl and return its output; an error has what it printed."""
        return self._ask([METALCTL, *arguments, "--kubeconfig", str(self.kubeconfig)])

    def _ask(self, command: list[str], given: str = "") -> str:
        done = subprocess.run(self._where.command(*command), capture_output=True, text=True, check=False, input=given)
        if done.returncode:
            name, arguments = Path(command[0]).name, " ".join(command[1:])
            raise RuntimeError(f"{name} {arguments}: {(done.stdout + done.stderr).strip()}")
        return done.stdout

    def objects(self, kind: str, *arguments: str) -> list[dict[str, Any]]:
        """All objects of a kind."""
        listed: list[dict[str, Any]] = json.loads(self.kubectl("get", kind, "-o", "json", *arguments))["items"]
        return listed

    def apply(self, *manifests: dict[str, Any]) -> None:
        """kubectl apply."""
        self.kubectl("apply", "-f", "-", given=yaml.safe_dump_all(manifests))

    def keep_state(self) -> None:
        """Write every object and Event to the logs, for the analysis of a failed test."""
        metal = "endpoints.metal.ironcore.dev,bmcs,servers,serverclaims,serverbootconfigurations,sanitizationevidences"
        kinds = f"{metal},ipxebootconfigs,events"
        done = subprocess.run(
            self._where.command(self._kubectl, "--kubeconfig", str(self.kubeconfig), "get", "-A", "-o", "yaml", kinds),
            capture_output=True,
            text=True,
            check=False,
        )
        self._run.path("objects.yaml").write_text(done.stdout + done.stderr)

    def _answers(self) -> bool:
        if not self.kubeconfig.exists():
            return False
        try:
            self.kubectl("get", "servers")
        except RuntimeError:
            return False
        return True
