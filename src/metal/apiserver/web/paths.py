"""Paths of the Kubernetes API (API concepts, "Resource URIs")."""

from typing import NamedTuple
from urllib.parse import unquote


class Target(NamedTuple):
    """The resource, object and subresource of a path."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


_OF_NAMESPACE = frozenset({"status", "finalize"})


def segments(raw_path: str) -> list[str]:
    """The decoded segments of a raw path."""
    return [unquote(part) for part in raw_path.split("/") if part]


def target(parts: list[str]) -> Target | None:
    """The target of a path below /api/v1 or /apis/GROUP/VERSION, or None when it is no resource path."""
    if parts[:1] == ["api"] and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    if rest[0] == "namespaces" and len(rest) > 2 and not (len(rest) == 3 and rest[2] in _OF_NAMESPACE):
        namespace, rest = rest[1], rest[2:]
    else:
        namespace = ""
    return Target(group, version, rest[0], namespace, "".join(rest[1:2]), "/".join(rest[2:]))
