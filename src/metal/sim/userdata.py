"""What a system does with its Ignition: be the probe, when a metalprobe unit says so, or a tenant's."""

import hashlib
import re
from base64 import b64decode
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec

from metal.sim.state import OS

TOKEN_FILE = "/etc/metalprobe/token"  # noqa: S105 - the path of the file, not a secret
_REGISTRY = re.compile(r"--registry-url[= ](\S+)")


class BadIgnition(Exception):
    """No Ignition that could be applied: a real machine would stop in its emergency shell."""


def operating_system(ignition: bytes | None, image: str) -> OS:
    """What runs from this image with this Ignition. Raises BadIgnition."""
    if ignition is None:
        return OS(kind="tenant", image=image)
    config = _config(ignition)
    digest = hashlib.sha256(ignition).hexdigest()
    probe = next((u for u in config.get("systemd", {}).get("units", []) if u.get("name") == "metalprobe.service"), None)
    if probe is None:
        return OS(kind="tenant", image=image, ignition=digest)
    found = _REGISTRY.search(probe.get("contents") or "")
    if found is None:
        raise BadIgnition("metalprobe.service has no --registry-url")
    return OS(kind="probe", image=image, ignition=digest, registry_url=found[1], token=_token(config))


def _config(ignition: bytes) -> dict[str, Any]:
    try:
        config: Any = msgspec.json.decode(ignition)
        version = config["ignition"]["version"]
    except (msgspec.DecodeError, KeyError, TypeError):
        raise BadIgnition("not an Ignition config") from None
    if not isinstance(version, str) or not version.startswith("3."):
        raise BadIgnition("ignition.version is not 3.x")
    return config  # type: ignore[no-any-return]  # it has ignition.version, so it is a dict


def _token(config: dict[str, Any]) -> str:
    for file in config.get("storage", {}).get("files", []):
        if file.get("path") == TOKEN_FILE:
            return data_url(file.get("contents", {}).get("source", "")).decode().strip()
    return ""


def data_url(url: str) -> bytes:
    """The content of a data URL (RFC 2397). Raises BadIgnition."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:"):
        raise BadIgnition("a file's source is no data URL")
    return b64decode(unquote_to_bytes(data)) if head.endswith(";base64") else unquote_to_bytes(data)
