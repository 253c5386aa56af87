"""The WWW-Authenticate header of a registry (RFC 9110 section 11, distribution-spec token flow)."""

import re
from dataclasses import dataclass

_PARAMETER = re.compile(r'\s*([A-Za-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))\s*(?:,|$)')


@dataclass(frozen=True)
class Challenge:
    """The token service that a registry names."""

    realm: str
    service: str = ""


def parse_bearer(header: str) -> Challenge | None:
    """The Bearer challenge in a header, or None."""
    scheme, _, rest = header.strip().partition(" ")
    if scheme.lower() != "bearer":
        return None
    found = {}
    position = 0
    while match := _PARAMETER.match(rest, position):
        found[match[1].lower()] = re.sub(r"\\(.)", r"\1", match[2]) if match[2] is not None else match[3]
        position = match.end()
        if position >= len(rest):
            break
    realm = found.get("realm", "")
    if not realm.startswith(("http://", "https://")):
        return None
    return Challenge(realm, found.get("service", ""))
