"""The discovery Ignition (spec 3.2.0): metalprobe and its unit. The boot server adds the report's token."""

import base64
import json
import re
from typing import Any

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_URL = re.compile(r"https?://[A-Za-z0-9.\[\]:_~/-]+")
PROBE_PATH = "/opt/metalprobe/metalprobe.pyz"
TOKEN_PATH = "/etc/metalprobe/token"  # noqa: S105 - the path of the file, not a secret

_UNIT = """[Unit]
Description=Reports this machine's hardware
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/bin/python3 {probe} --registry-url {url} --server-uuid {uuid} --token @{token}
StandardError=journal+console
Restart=on-failure
RestartSec=5
# A report that was refused or is malformed will not become better: the token works once.
RestartPreventExitStatus=65 77

[Install]
WantedBy=multi-user.target
"""


def discovery(probe: bytes, registry_url: str, uuid: str) -> str:
    """The Ignition JSON for one server. Raises ValueError for a URL or UUID that has no place in a unit file."""
    if not _UUID.fullmatch(uuid):
        raise ValueError(f"the server's systemUUID {uuid!r} is not a UUID; correct spec.systemUUID")
    if not _URL.fullmatch(registry_url):
        raise ValueError(f"the registry URL {registry_url!r} is not a plain http or https URL")
    unit = _UNIT.format(probe=PROBE_PATH, url=registry_url, uuid=uuid, token=TOKEN_PATH)
    config: dict[str, Any] = {
        "ignition": {"version": "3.2.0"},
        "storage": {
            "files": [
                {
                    "path": PROBE_PATH,
                    "mode": 0o755,
                    "contents": {"source": "data:;base64," + base64.b64encode(probe).decode()},
                }
            ]
        },
        "systemd": {"units": [{"name": "metalprobe.service", "enabled": True, "contents": unit}]},
    }
    return json.dumps(config, sort_keys=True)


def base64_text(text: str) -> str:
    """A text as the value of a Secret's data."""
    return base64.b64encode(text.encode()).decode()
