"""Files of a site with private registries over TLS on loopback, and clients of them."""

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from metal.boot.errors import ImageError
from metal.boot.manifest import Descriptor
from metal.boot.oci import Reference
from metal.boot.registry.credentials import AuthFile
from metal.boot.registry.settings import RegistryClientSettings, RegistryServer
from metal.boot.registry_client import RegistryClient
from tests.boot import registry as oci
from tests.boot.registry import KERNEL, Registry, basic
from tests.kube.client.pki import Authority

ACCOUNT, PASSWORD = "robot:s3cret-w0rd", "s3cret-w0rd"


@dataclass
class Site:
    """Files of a site, and clients of its registries."""

    folder: Path
    authority: Authority = field(default_factory=Authority)
    clients: list[RegistryClient] = field(default_factory=list)

    @property
    def ca_file(self) -> str:
        return str(self.folder / "ca.pem")

    @property
    def auth_file(self) -> Path:
        return self.folder / "config.json"

    def trust(self, authority: Authority) -> None:
        Path(self.ca_file).write_bytes(authority.pem)

    def tls(self, **options: Any) -> ssl.SSLContext:
        return self.authority.server_context(self.folder, **options)

    def auths(self, entries: dict[str, Any]) -> None:
        """Write the docker config; an entry is user:password, or the fields themselves."""
        made = {key: {"auth": basic(value)[6:]} if isinstance(value, str) else value for key, value in entries.items()}
        self.auth_file.write_text(json.dumps({"auths": made}))

    def client(
        self, *registries: Registry, mirrors: tuple[str, ...] = (), seconds: float = 5.0, **more: Any
    ) -> RegistryClient:
        """A client that may read the first registry; the others are known, too."""
        options = {"mirrors": mirrors, **more}
        servers = [RegistryServer(registries[0].name, self.ca_file, **options)]
        servers += [RegistryServer(other.name, self.ca_file) for other in registries[1:]]
        insecure = tuple(each.name for each in registries if each.scheme == "http")
        settings = RegistryClientSettings((registries[0].name,), insecure, tuple(servers), manifest_seconds=seconds)
        made = RegistryClient(settings, credentials=[AuthFile(self.auth_file)])
        self.clients.append(made)
        return made


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Site]:
    made = Site(folder)
    made.trust(made.authority)
    try:
        yield made
    finally:
        for client in made.clients:
            await client.aclose()


@asynccontextmanager
async def another(site: Site, like: Registry | None = None, **options: Any) -> AsyncIterator[Registry]:
    async with oci.running(site.tls(**options)) as running:
        if like is not None:
            running.blobs, running.manifests = dict(like.blobs), dict(like.manifests)
        yield running


def image(registry: Registry, repository: str = "team/os") -> Reference:
    return Reference(registry.name, repository, "1")


async def read(client: RegistryClient, reference: Reference) -> bytes:
    return (await client.manifest(reference, "1")).raw


async def failure(client: RegistryClient, reference: Reference) -> ImageError:
    with pytest.raises(ImageError) as caught:
        await client.manifest(reference, "1")
    assert PASSWORD not in str(caught.value)
    assert "robot" not in str(caught.value)
    return caught.value


def kernel() -> Descriptor:
    return Descriptor("application/vnd.ironcore.image.kernel", oci.digest(KERNEL), len(KERNEL))


async def fetched(client: RegistryClient, reference: Reference) -> bytes:
    return b"".join([chunk async for chunk in client.blob(reference, kernel())])
