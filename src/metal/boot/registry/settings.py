"""Settings of the access to registries. RegistryServer and SigningKeys are entries of the configuration file, too."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class RegistryServer:
    """One registry or mirror."""

    name: str = field(default="", metadata={"required": True})
    """The registry, as host or host:port. Required."""
    ca_file: str = ""
    """PEM file with certificate authorities of this registry, in addition to those of the system. Read again when it
    changes."""
    mirrors: tuple[str, ...] = ()
    """Mirrors of this registry, as host[:port][/prefix], in the order in which they are tried before the registry
    itself. An image keeps its repository, below the prefix. Digests are verified in any case; what a tag refers to is
    what the mirror says."""
    token_services: tuple[str, ...] = ()
    """Hosts of token services, besides the registry's own host, that may receive its credentials. Only needed where the
    registry names another host: the credentials are sent to no host that is not listed. Known are auth.docker.io of
    docker.io and gitlab.com of registry.gitlab.com."""
    max_requests: int = 16
    """Maximum number of requests to this registry at the same time, including downloads."""


@dataclass(frozen=True)
class SigningKeys:
    """Public keys for images with a common prefix."""

    prefix: str = field(default="", metadata={"required": True})
    """Registry, or registry and the first parts of the repository, such as registry.example/os. The longest prefix of
    an image applies. Required."""
    files: tuple[str, ...] = field(default=(), metadata={"required": True})
    """PEM files, each with an ECDSA P-256 or Ed25519 public key (cosign.pub). A signature by one of them suffices.
    Read again when they change. Required."""


@dataclass(frozen=True)
class RegistryClientSettings:
    """Allowed registries, how each is accessed, time and size limits."""

    allowed: tuple[str, ...] = ("ghcr.io",)
    """Registries that images may come from, as host or host:port."""
    insecure: tuple[str, ...] = ()
    """Registries that are contacted over http; they need not be listed in `allowed`."""
    servers: tuple[RegistryServer, ...] = ()
    """Registries and mirrors with options of their own."""
    keys: tuple[SigningKeys, ...] = ()
    """Keys that images must be signed with."""
    connect_seconds: float = 10.0
    """Seconds for a connection to be established."""
    manifest_seconds: float = 30.0
    """Seconds for a whole manifest or config, and until the first byte of a blob, from one registry or mirror."""
    silence_seconds: float = 30.0
    """Seconds without data after which the transfer of a blob fails."""
    blob_seconds: float = 3600.0
    """Seconds for a whole blob."""
    mirror_pause: float = 60.0
    """Seconds for which a registry or mirror that failed is tried after the others."""
    largest_document: int = 4 * 1024 * 1024
    """Bytes of a manifest or config."""
    largest_blob: int = 8 * 1024**3
    """Bytes of a layer."""
