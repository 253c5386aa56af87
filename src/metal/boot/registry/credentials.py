"""Credentials of registries in a docker config JSON (`docker login`, kubernetes.io/dockerconfigjson).

The keys of `auths` are registries, or registries with the first parts of a repository; the longest one that an image
begins with applies, as in containers-auth.json(5). A key with a scheme (https://index.docker.io/v1/) is the registry
alone. Nothing here shows a password or a token: not a repr, not an error, not a log line.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec

from metal.boot.oci import canonical_registry
from metal.boot.registry.watched_file import FileInvalid, WatchedFile


@dataclass(frozen=True)
class Credential:
    """One entry of `auths`: user and password, an identity token (OAuth2), or a token of the registry itself."""

    entry: str
    """The key in `auths`."""
    source: str
    """Where it is from: file PATH, or Secret NAMESPACE/NAME."""
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    identity_token: str = field(default="", repr=False)
    registry_token: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"the credentials for {self.entry} of {self.source}"

    @property
    def basic(self) -> str:
        """The value of an Authorization header with user and password; empty without a password."""
        pair = f"{self.user}:{self.password}".encode()
        return f"Basic {base64.b64encode(pair).decode()}" if self.password else ""


Auths = Mapping[str, Credential]
"""Credentials by registry, or by registry and the first parts of a repository."""


class CredentialSource(Protocol):
    """A docker config JSON that may change."""

    @property
    def problem(self) -> str:
        """Why the present content is not used, without anything of it; empty if it is."""
        ...

    async def auths(self, *, rejected: bool = False) -> Auths:
        """The present content, or the last one that could be used.

        rejected: a registry has just rejected a credential, so that the content may have changed.
        """
        ...


class AuthFile:
    """The docker config JSON in a file, read again when the file changes."""

    def __init__(self, path: Path) -> None:
        self._file = WatchedFile(path, lambda raw: parse_auths(raw, f"file {path}"))

    @property
    def problem(self) -> str:
        """Why the present content is not used; empty if it is."""
        return self._file.problem

    async def auths(self, *, rejected: bool = False) -> Auths:
        """The present content, or the last one that could be used."""
        try:
            return self._file.value()
        except FileInvalid:
            return {}


class Credentials:
    """The credentials of several sources; of equally long keys the one of the first source applies."""

    def __init__(self, sources: Sequence[CredentialSource] = ()) -> None:
        self._sources = sources

    @property
    def problem(self) -> str:
        """Why sources cannot be used; empty if all can."""
        return "; ".join(source.problem for source in self._sources if source.problem)

    async def of(self, name: str, *, rejected: bool = False) -> Credential | None:
        """The credential for registry/repository, or None."""
        found = [await source.auths(rejected=rejected) for source in self._sources]
        while name:
            for auths in found:
                if name in auths:
                    return auths[name]
            name = name.rpartition("/")[0]
        return None


def parse_auths(raw: bytes, source: str) -> Auths:
    """The credentials in a docker config JSON; entries without any are left out. Raises ValueError."""
    try:
        body: Any = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ValueError("is not JSON: write a docker config with the key auths") from None
    auths = body.get("auths") if isinstance(body, dict) else None
    if not isinstance(auths, dict):
        raise ValueError("has no auths: write a docker config, such as docker login creates without a credential store")
    named = ((_without_user(key), entry) for key, entry in auths.items())
    found = {_normalized(key): _credential(key, entry, source) for key, entry in named}
    return {key: credential for key, credential in found.items() if credential is not None}


def _without_user(key: str) -> str:
    """The key without user:password@, which a URL may have."""
    scheme, separator, rest = key.rpartition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


def _normalized(key: str) -> str:
    rest = key.removeprefix("https://").removeprefix("http://")
    host, _, path = rest.strip("/").partition("/")
    legacy = rest != key or path in ("v1", "v2")
    registry = canonical_registry(host)
    return registry if legacy or not path else f"{registry}/{path}"


def _credential(key: str, entry: Any, source: str) -> Credential | None:
    if not isinstance(entry, dict):
        raise ValueError(f"has no object under auths[{key!r}]")
    names = ("auth", "username", "password", "identitytoken", "registrytoken")
    values = {name: entry.get(name) or "" for name in names}
    for name, value in values.items():
        if not isinstance(value, str):
            raise ValueError(f"has no text under auths[{key!r}].{name}")
    user, password = _pair(key, values["auth"]) if values["auth"] else (values["username"], values["password"])
    if not values["registrytoken"].isascii() or not f"{values['registrytoken']} ".isprintable():
        raise ValueError(f"has no token under auths[{key!r}].registrytoken")
    made = Credential(key, source, user, password, values["identitytoken"], values["registrytoken"])
    return made if made.password or made.identity_token or made.registry_token else None


def _pair(key: str, text: str) -> tuple[str, str]:
    """User and password in the field `auth`; docker pads the password with NUL."""
    try:
        user, colon, password = base64.b64decode(text, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        colon = ""
    if not colon:
        raise ValueError(f"has no base64 of user:password under auths[{key!r}].auth") from None
    return user, password.rstrip("\0")
