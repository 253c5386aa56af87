"""Validates the section `registries`: its values, their combination, and the files that it names."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from metal.boot.oci import canonical_registry
from metal.boot.registry.credentials import parse_auths
from metal.boot.registry.places import authorities_of
from metal.boot.registry.signatures import prefix_of, public_key
from metal.boot.registry.watched_file import FileInvalid, WatchedFile
from metal.config.options import Registries

_HOST = r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9][A-Za-z0-9.-]*)"
_REGISTRY = re.compile(rf"{_HOST}(:[0-9]{{1,5}})?")
_PREFIX = re.compile(rf"{_HOST}(:[0-9]{{1,5}})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*")
_SECRET = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def problem(name: str, value: Any) -> str:
    """Return what is wrong with an option of the section or of an entry, with the fix; empty if it is valid."""
    if name in ("insecure", "allowed", "name"):
        return _each(
            (value,) if name == "name" else value, _REGISTRY, "write host or host:port, without a scheme or a path"
        )
    if name == "mirrors":
        return _each(value, _PREFIX, "write host[:port][/prefix], without a scheme, the prefix in lower case")
    if name == "token_services":
        return _each(value, re.compile(_HOST), "write a host, without a scheme, a port or a path")
    if name == "prefix":
        return _each((value,), _PREFIX, "write host[:port][/repository], without a scheme and a tag")
    if name == "files" and not all(value):
        return "has an empty entry: write paths of PEM files"
    if name == "files" and not value:
        return "is empty: write at least one PEM file with a public key, or remove the entry"
    if name == "max_requests" and value == 0:
        return "is 0: write at least 1"
    if name == "auth_secret" and value and not _SECRET.fullmatch(value):
        return f"is {value!r}: write the name of a Secret in lower case, such as registry-credentials"
    return ""


def combination_problem(registries: Registries) -> str:
    """Return what is wrong with a combination of options, with the fix; empty if it is valid."""
    for option, names in (
        ("servers", [canonical_registry(server.name) for server in registries.servers]),
        ("keys", [prefix_of(entry.prefix) for entry in registries.keys]),
    ):
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            return f"registries.{option} has {twice[0]} twice: make one entry of them"
    usable = set(map(canonical_registry, (*registries.allowed, *registries.insecure)))
    for entry in registries.keys:
        if prefix_of(entry.prefix).partition("/")[0] not in usable:
            return (
                f"registries.keys has {entry.prefix}, but no images may come from that registry: add it to "
                "registries.allowed, or correct the prefix"
            )
    return ""


def files_problem(registries: Registries) -> str:
    """Return why a file cannot be used, with the option that names it; empty if all can."""
    wanted: list[tuple[str, str, Callable[[bytes], object]]] = [
        ("authFile", registries.auth_file, lambda raw: parse_auths(raw, "")),
        *((f"servers: caFile of {server.name}", server.ca_file, authorities_of) for server in registries.servers),
        *((f"keys: files of {entry.prefix}", file, public_key) for entry in registries.keys for file in entry.files),
    ]
    for option, path, parse in wanted:
        try:
            if path:
                WatchedFile(Path(path), parse).value()
        except FileInvalid as exc:
            return f"{option}: {exc}"
    return ""


def _each(values: tuple[str, ...], pattern: re.Pattern[str], fix: str) -> str:
    wrong = [value for value in values if not pattern.fullmatch(value)]
    return f"has {wrong[0]!r}: {fix}" if wrong else ""
