"""The WWW-Authenticate headers of a registry (RFC 9110 section 11, distribution-spec token flow)."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PARAMETER = re.compile(rf'[\s,]*({_WORD})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*))')
_SCHEME = re.compile(rf"[\s,]*({_WORD})(?=\s|,|$)")
_SCOPE = re.compile(r"repository:([A-Za-z0-9._:/-]+):([a-z*,]+)")


@dataclass(frozen=True)
class Challenge:
    """The token service that a registry names, and the repository for which it wants a token."""

    realm: str
    service: str = ""
    scope: str = ""

    def scope_for(self, repository: str) -> str:
        """The scope to request: to pull, and nothing more. A registry may know the repository by another name."""
        for part in self.scope.split():
            found = _SCOPE.fullmatch(part)
            if found and not {"pull", "*"}.isdisjoint(found[2].split(",")):
                return f"repository:{found[1]}:pull"
        return f"repository:{repository}:pull"


def parse_bearer(headers: Iterable[str]) -> Challenge | None:
    """The first Bearer challenge with an absolute URL in the headers, or None."""
    for scheme, found in _challenges(headers):
        realm = found.get("realm", "")
        if scheme == "bearer" and realm.startswith(("http://", "https://")):
            return Challenge(realm, found.get("service", ""), found.get("scope", ""))
    return None


def accepts_basic(headers: Iterable[str]) -> bool:
    """Whether a challenge in the headers is Basic."""
    return any(scheme == "basic" for scheme, _ in _challenges(headers))


def _challenges(headers: Iterable[str]) -> Iterable[tuple[str, Mapping[str, str]]]:
    """Scheme and parameters of each challenge; what is no challenge ends its header."""
    for header in headers:
        position = 0
        while scheme := _SCHEME.match(header, position):
            found: dict[str, str] = {}
            position = scheme.end()
            while parameter := _PARAMETER.match(header, position):
                quoted = parameter[2]
                found[parameter[1].lower()] = parameter[3] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
                position = parameter.end()
            yield scheme[1].lower(), found
