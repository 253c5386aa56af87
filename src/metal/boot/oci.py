"""OCI image references, in the grammar of the distribution project."""

import re
from dataclasses import dataclass, replace

_HOST = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*"
_REGISTRY = re.compile(rf"(?:{_HOST}|\[[0-9a-fA-F:]+\])(?::[0-9]{{1,5}})?")
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"{_PART}(?:/{_PART})*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
_LONGEST = 255
_DOCKER = "docker.io"
_DOCKER_ALIASES = ("docker.io", "index.docker.io", "registry-1.docker.io")


class BadReference(ValueError):
    """The text is not an image reference; str() says why."""


@dataclass(frozen=True)
class Reference:
    """An image: registry (host, with port where given), repository, and a tag or a digest or both."""

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        text = self.name
        if self.tag:
            text += f":{self.tag}"
        if self.digest:
            text += f"@{self.digest}"
        return text

    @property
    def name(self) -> str:
        """Registry and repository."""
        return f"{self.registry}/{self.repository}"

    @property
    def wanted(self) -> str:
        """What to request from the registry: the digest where there is one, else the tag."""
        return self.digest or self.tag

    def pinned(self, digest: str) -> "Reference":
        """The same image by digest alone."""
        return replace(self, tag="", digest=digest)


def parse(text: str) -> Reference:
    """Parse a reference; without tag and digest the tag is `latest`, without a registry it is docker.io.

    Raises BadReference.
    """
    rest, at, digest = text.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        raise BadReference(f"image {_shown(text)}: after @ a digest sha256:<64 hexadecimal digits> is expected")
    rest, tag = _split_tag(rest)
    if tag is not None and not _TAG.fullmatch(tag):
        raise BadReference(f"image {_shown(text)}: the tag may hold letters, digits, '.', '_' and '-', 128 at most")
    registry, repository = _split_registry(rest)
    if not _REGISTRY.fullmatch(registry):
        raise BadReference(f"image {_shown(text)}: {_shown(registry)} is not a host name with an optional port")
    if not _REPOSITORY.fullmatch(repository) or len(registry) + 1 + len(repository) > _LONGEST:
        raise BadReference(f"image {_shown(text)}: write registry/repository:tag, the repository in lower case")
    return Reference(registry, repository, tag or ("" if digest else "latest"), digest)


def _split_tag(text: str) -> tuple[str, str | None]:
    head, colon, tag = text.rpartition(":")
    if not colon or "/" in tag or (text.startswith("[") and "/" not in text):
        return text, None
    return head, tag


def _split_registry(text: str) -> tuple[str, str]:
    first, slash, rest = text.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost" or first != first.lower()):
        host = canonical_registry(first)
        return host, f"library/{rest}" if host == _DOCKER and "/" not in rest else rest
    return _DOCKER, text if slash else f"library/{text}"


def canonical_registry(registry: str) -> str:
    """Lower case, without surrounding blanks, and docker.io for all names of Docker Hub."""
    plain = registry.strip().lower()
    return _DOCKER if plain in _DOCKER_ALIASES else plain


def endpoint(registry: str) -> str:
    """The host that serves a registry."""
    return "registry-1.docker.io" if registry == _DOCKER else registry


def is_digest(text: str) -> bool:
    """Whether the text is a digest that this program can verify."""
    return bool(_DIGEST.fullmatch(text))


def _shown(text: str) -> str:
    return repr(text if len(text) <= 120 else text[:117] + "…")
