"""A tenant: a claim of the demo OS, whose Ignition contains a program that runs on the machine."""

import json
import urllib.parse
from collections.abc import Mapping
from typing import Any

from tests.lab.operator import Operator

PROGRAM = "/opt/tenant.py"
UNIT = f"""\
[Unit]
Wants=network-online.target
After=network-online.target
[Service]
Type=oneshot
ExecStart=/usr/bin/python3 {PROGRAM}
StandardError=journal+console
[Install]
WantedBy=multi-user.target
"""


def claim(operator: Operator, name: str, image: str, program: str, files: Mapping[str, str]) -> None:
    """Claim a machine that runs the program, a Python text, once the network is up. `files` are its own."""
    ignition = json.dumps(_ignition({"/etc/hostname": name + "\n", PROGRAM: program, **files}))
    metadata = {"name": name, "namespace": "default"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"ignition": ignition}}
    spec = {"power": "On", "image": image, "ignitionSecretRef": {"name": name}}
    kind = {"apiVersion": "metal.ironcore.dev/v1alpha1", "kind": "ServerClaim"}
    operator.apply(secret, {**kind, "metadata": metadata, "spec": spec})


def _ignition(texts: Mapping[str, str]) -> dict[str, Any]:
    files = [
        {"path": path, "mode": 0o644, "contents": {"source": "data:," + urllib.parse.quote(text)}}
        for path, text in texts.items()
    ]
    units = [{"name": "tenant.service", "enabled": True, "contents": UNIT}]
    return {"ignition": {"version": "3.3.0"}, "storage": {"files": files}, "systemd": {"units": units}}
