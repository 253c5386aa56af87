"""Ignition configs: validates structure and limits, and adds a file. Errors have a JSON path.

Spec 3.0 to 3.5 is validated in full. Configs of spec 2, as Cluster API's kubeadm bootstrap provider writes them, are
accepted from users as they are: only the system that boots with one knows what it means.
"""

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from metal.boot.errors import IgnitionError
from metal.boot.ignition_rules import ROOT

EMPTY = b'{"ignition":{"version":"3.0.0"}}'
LARGEST = 4 * 1024 * 1024
"""Bytes of one config."""
DEEPEST = 32
"""Levels of nesting."""
_VERSION = re.compile(r"3\.[0-5]\.0")
_FORMER = re.compile(r"2\.[0-9]\.0(-[a-z]{1,20})?")


def accept(raw: bytes) -> str:
    """The spec version of a user's config: 3.x is valid then, 2.x is not validated. Raises IgnitionError."""
    config = _read(raw)
    version = _version(config)
    if is_validated(version):
        _check(config)
    return version


def is_validated(version: str) -> bool:
    """Whether configs of this spec version are validated."""
    return not version.startswith("2.")


def validate(raw: bytes) -> dict[str, Any]:
    """The decoded config. Raises IgnitionError for a config that Ignition itself would reject.

    Unknown members are accepted, because Ignition only warns about them.
    """
    config = _read(raw)
    if not is_validated(version := _version(config)):
        raise IgnitionError("$.ignition.version", f"is {version}; 3.0.0 to 3.5.0 can be validated and extended")
    _check(config)
    return config


def add_file(raw: bytes, path: str, content: bytes, mode: int = 0o600) -> bytes:
    """The config with one more file (data URL, RFC 2397). An entry for the same path is replaced.

    Raises IgnitionError.
    """
    config = validate(raw)
    data = "data:;base64," + base64.b64encode(content).decode()
    entry = {"path": path, "overwrite": True, "mode": mode, "contents": {"source": data}}
    storage = dict(config.get("storage") or {})
    others = [file for file in storage.get("files") or [] if file.get("path") != path]
    storage["files"] = [*others, entry]
    return json.dumps(config | {"storage": storage}, separators=(",", ":")).encode()


def _check(config: dict[str, Any]) -> None:
    ROOT.check(config, "$")
    _unique(config, "storage", "files", "path")
    _unique(config, "systemd", "units", "name")


def _read(raw: bytes) -> dict[str, Any]:
    if len(raw) > LARGEST:
        raise IgnitionError("$", f"the config has {len(raw)} bytes, {LARGEST} are allowed")
    config = _decode(raw)
    _depth(config)
    return config


def _decode(raw: bytes) -> dict[str, Any]:
    try:
        config = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise IgnitionError("$", f"not JSON: {exc}") from None
    if not isinstance(config, dict):
        raise IgnitionError("$", "must be an object")
    return config


def _version(config: Mapping[str, Any]) -> str:
    section = config.get("ignition")
    if not isinstance(section, dict):
        raise IgnitionError("$.ignition", "must be an object with a version, such as 3.3.0")
    version = section.get("version")
    if not isinstance(version, str) or not (_VERSION.fullmatch(version) or _FORMER.fullmatch(version)):
        raise IgnitionError("$.ignition.version", "must be 3.0.0, 3.1.0, 3.2.0, 3.3.0, 3.4.0 or 3.5.0, or of spec 2")
    return version


def _depth(config: Any) -> None:
    level = [config]
    for _ in range(DEEPEST):
        level = [child for node in level for child in _children(node)]
        if not level:
            return
    raise IgnitionError("$", f"nested deeper than {DEEPEST} levels")


def _children(node: Any) -> list[Any]:
    if isinstance(node, dict):
        return list(node.values())
    return node if isinstance(node, list) else []


def _unique(config: Mapping[str, Any], section: str, member: str, key: str) -> None:
    seen: set[str] = set()
    for number, entry in enumerate((config.get(section) or {}).get(member) or []):
        if entry[key] in seen:
            raise IgnitionError(f"$.{section}.{member}[{number}].{key}", "is there twice")
        seen.add(entry[key])
