"""Where an image is read: the mirrors of its registry in their order, and the registry itself."""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from metal.boot.errors import ImageError
from metal.boot.oci import Reference, canonical_registry, endpoint
from metal.boot.registry.settings import RegistryClientSettings, RegistryServer
from metal.boot.registry.watched_file import FileInvalid, WatchedFile

TOKEN_SERVICES: Mapping[str, tuple[str, ...]] = {
    "docker.io": ("auth.docker.io",),
    "registry.gitlab.com": ("gitlab.com",),
}
"""Token services of public registries that are not on the registry's own host."""


@dataclass(frozen=True)
class Place:
    """A repository of a registry or mirror."""

    server: RegistryServer
    repository: str
    scheme: str

    @property
    def registry(self) -> str:
        """Registry or mirror, as host or host:port."""
        return self.server.name

    @property
    def name(self) -> str:
        """Registry and repository."""
        return f"{self.registry}/{self.repository}"

    @property
    def base_url(self) -> str:
        """The URL of the repository, with a slash at the end."""
        return f"{self.scheme}://{endpoint(self.registry)}/v2/{self.repository}/"

    @property
    def token_services(self) -> tuple[str, ...]:
        """Hosts besides the registry's own that may receive its credentials."""
        return (*self.server.token_services, *TOKEN_SERVICES.get(self.registry, ()))


class Places:
    """The places of images, with the limit of requests and the certificate authorities of each registry."""

    def __init__(self, settings: RegistryClientSettings) -> None:
        self._pause = settings.mirror_pause
        self._insecure = frozenset(map(canonical_registry, settings.insecure))
        self._servers = {canonical_registry(server.name): server for server in settings.servers}
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._authorities = {
            name: WatchedFile(Path(server.ca_file), authorities_of)
            for name, server in self._servers.items()
            if server.ca_file
        }
        self._last_until: dict[str, float] = {}

    def of(self, image: Reference) -> list[Place]:
        """The places to try, in order: those that failed a short time ago come last."""
        registry = canonical_registry(image.registry)
        own = self._place(registry, image.repository)
        mirrors = (mirror.partition("/") for mirror in own.server.mirrors)
        found = [self._place(host, f"{path}/{own.repository}".lstrip("/")) for host, _, path in mirrors]
        now = asyncio.get_running_loop().time()
        return sorted([*found, own], key=lambda place: self._last_until.get(place.registry, 0.0) > now)

    def failed(self, place: Place, exc: ImageError) -> None:
        """Try this place after others for a while, unless the failure is about the image alone."""
        if exc.transient:
            self._last_until[place.registry] = asyncio.get_running_loop().time() + self._pause

    def slot(self, place: Place) -> asyncio.Semaphore:
        """To be held during a request."""
        return self._slots.setdefault(place.registry, asyncio.Semaphore(place.server.max_requests))

    def tls(self, place: Place) -> ssl.SSLContext | bool:
        """The verification of certificates: of the system, or with the authorities of the registry. Raises
        ImageError."""
        file = self._authorities.get(place.registry)
        try:
            return file.value() if file is not None else True
        except FileInvalid as exc:
            raise ImageError("AuthoritiesInvalid", f"registries.servers: caFile {exc}", transient=True) from None

    def _place(self, registry: str, repository: str) -> Place:
        name = canonical_registry(registry)
        server = self._servers.get(name, RegistryServer())
        return Place(replace(server, name=name), repository, "http" if name in self._insecure else "https")


def authorities_of(raw: bytes) -> ssl.SSLContext:
    """TLS that accepts certificates of the system's authorities and of these (PEM). Raises ValueError."""
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(cadata=raw.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError, ValueError):
        raise ValueError("has no PEM certificates: write those of the registry's certificate authority") from None
    return context
