"""The probe's Ignition (spec 3.2.0): metalprobe, its unit and its task. The boot server adds the report's token."""

import base64
import hashlib
import json
import re
from typing import Any

from metal.api.names import REPORT_TOKEN_FILE
from metal.api.sanitization import KnownDrive
from metal.evidence.volumes import may_be_volume

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_URL = re.compile(r"https?://[A-Za-z0-9.\[\]:_~/-]+")
PROBE_PATH = "/opt/metalprobe/metalprobe.pyz"
TASK_PATH = "/etc/metalprobe/sanitization.json"

_UNIT = """[Unit]
Description={what}
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/bin/python3 {probe}{command} --registry-url {url} --server-uuid {uuid} --token @{token}{more}
StandardError=journal+console
Restart=on-failure
RestartSec=5
# A rejected or malformed report is not repeated: the token is valid once. Nor is an erasure that was not confirmed.
RestartPreventExitStatus=65 75 77

[Install]
WantedBy=multi-user.target
"""


def discovery(probe: bytes, registry_url: str, uuid: str) -> str:
    """The Ignition JSON of a discovery. Raises ValueError for a URL or UUID that a unit cannot contain."""
    unit = _unit("Reports this machine's hardware", registry_url, uuid)
    return _config("metalprobe.service", unit, _file(PROBE_PATH, 0o755, probe))


def sanitization(probe: bytes, registry_url: str, uuid: str, policy: str, drives: tuple[KnownDrive, ...]) -> str:
    """The Ignition JSON of a sanitization with this policy. Raises ValueError as `discovery` does."""
    unit = _unit("Erases this machine's drives", registry_url, uuid, command=" sanitize", more=f" --task {TASK_PATH}")
    listed = [
        {"name": d.name, "serialNumber": d.serial_number, "wwn": d.wwn, "size": d.size, "slot": d.slot,
         "mayBeVolume": may_be_volume(d, drives)}
        for d in drives
    ]  # fmt: skip
    task = json.dumps({"policy": policy, "drives": listed}, sort_keys=True).encode()
    files = (_file(PROBE_PATH, 0o755, probe), _file(TASK_PATH, 0o600, task))
    return _config("metalprobe-sanitize.service", unit, *files)


def _unit(what: str, registry_url: str, uuid: str, *, command: str = "", more: str = "") -> str:
    if not _UUID.fullmatch(uuid):
        raise ValueError(f"the server's systemUUID {uuid!r} is not a UUID; correct spec.systemUUID")
    if not _URL.fullmatch(registry_url):
        raise ValueError(f"the registry URL {registry_url!r} is not a plain http or https URL")
    return _UNIT.format(
        what=what, probe=PROBE_PATH, command=command, url=registry_url, uuid=uuid, token=REPORT_TOKEN_FILE, more=more
    )


def _file(path: str, mode: int, content: bytes) -> dict[str, Any]:
    source = "data:;base64," + base64.b64encode(content).decode()
    return {"path": path, "mode": mode, "contents": {"source": source}}


def _config(unit_name: str, unit: str, *files: dict[str, Any]) -> str:
    config: dict[str, Any] = {
        "ignition": {"version": "3.2.0"},
        "storage": {"files": list(files)},
        "systemd": {"units": [{"name": unit_name, "enabled": True, "contents": unit}]},
    }
    return json.dumps(config, sort_keys=True)


def digest(text: str) -> str:
    """The first 16 hexadecimal digits of an Ignition's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def base64_text(text: str) -> str:
    """A text as the value of a Secret's data."""
    return base64.b64encode(text.encode()).decode()
