"""Reads an Ignition config as the operating system would: which files and units, and whether it starts metalprobe."""

import base64
import binascii
import gzip
import shlex
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec

_REGISTRY = "--registry-url"


class IgnitionError(Exception):
    """The config is not valid, and Ignition would stop."""


@dataclass(frozen=True)
class Probe:
    """The metalprobe command of a unit: a report, or with `task` (JSON) an erasure."""

    registry_url: str
    uuid: str
    token: str = field(repr=False)
    task: str = ""


@dataclass(frozen=True)
class Config:
    """Files and units of the config, by path and name."""

    files: dict[str, bytes] = field(repr=False)
    units: dict[str, str] = field(repr=False)

    @property
    def hostname(self) -> str:
        """Content of /etc/hostname."""
        return self.files.get("/etc/hostname", b"").decode("utf-8", "replace").strip()

    def probe(self) -> Probe | None:
        """The probe, if a unit starts one. Raises IgnitionError for an invalid command line."""
        for text in self.units.values():
            for line in text.splitlines():
                if line.startswith("ExecStart=") and _REGISTRY in line:
                    return self._probe(line.removeprefix("ExecStart="))
        return None

    def _probe(self, command: str) -> Probe:
        try:
            words = shlex.split(command)
        except ValueError as exc:
            raise IgnitionError(f"the probe's command line cannot be read: {exc}") from None
        given = _options(words)
        token = given.get("--token", "")
        if token.startswith("@"):
            token = self.files.get(token[1:], b"").decode("ascii", "replace").strip()
        task = self.files.get(given.get("--task", ""), b"").decode("utf-8", "replace")
        if "sanitize" in words and not task:
            raise IgnitionError("the probe is to erase, and has no task")
        return Probe(given.get(_REGISTRY, ""), given.get("--server-uuid", ""), token, task)


def read(raw: bytes) -> Config:
    """Parse a config. Raises IgnitionError."""
    try:
        tree: Any = msgspec.json.decode(raw)
        version = tree["ignition"]["version"]
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
        raise IgnitionError("this is no Ignition config") from None
    if not str(version).startswith(("2.", "3.")):  # a Flatcar of today reads both
        raise IgnitionError(f"Ignition version {version!r} is not supported")
    files = (tree.get("storage") or {}).get("files") or []
    units = (tree.get("systemd") or {}).get("units") or []
    return Config(
        files={file["path"]: _contents(file.get("contents") or {}) for file in files},
        units={unit["name"]: unit.get("contents") or "" for unit in units if unit.get("enabled", True)},
    )


def _options(words: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name.startswith("--"):
            found[name] = value if equals else (words[number + 1] if number + 1 < len(words) else "")
    return found


def _contents(contents: dict[str, Any]) -> bytes:
    source = contents.get("source") or ""
    if not source.startswith("data:"):
        return b""  # remote files are not fetched: simulated machines do not use them
    head, _, tail = source.partition(",")
    plain = unquote_to_bytes(tail)
    try:
        plain = base64.b64decode(plain, validate=True) if head.endswith(";base64") else plain
        return gzip.decompress(plain) if contents.get("compression") == "gzip" else plain
    except (binascii.Error, OSError, EOFError) as exc:
        raise IgnitionError(f"a file's contents cannot be read: {exc}") from None
