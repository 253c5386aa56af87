"""Settings of the boot server."""

from dataclasses import dataclass, field
from pathlib import Path

from metal.boot import butane
from metal.boot.registry.settings import RegistryClientSettings
from metal.machine.boot_window import CONTEST_PERIOD


@dataclass(frozen=True)
class BootSettings:
    """How images are fetched and served. Durations are in seconds, sizes in bytes."""

    base_url: str = "http://127.0.0.1:8082"
    """Where machines reach the boot server, without a path or a slash at the end."""
    architecture: str = "amd64"
    """Architecture, as OCI names it, of servers whose inventory names none."""
    cache: Path = Path(".metal/images")
    """Folder of the image cache."""
    cache_bytes: int = 20 * 1024**3
    """Size limit of the image cache; about a hundred images."""
    ipxe: Path = Path("/usr/lib/ipxe")
    """Folder with iPXE's EFI binaries."""
    remote: RegistryClientSettings = field(default_factory=RegistryClientSettings)
    """Registries and their limits."""
    image_wait: float = 15.0
    """How long a request waits for an image that is still being fetched; then 503, which iPXE retries."""
    race_window: float = CONTEST_PERIOD.total_seconds()
    """How long a second requester stops a boot whose first requester was not verified by a DHCP lease."""
    butane: str = butane.PROGRAM
    """Program that converts Butane to Ignition: a path, or a name that is looked up in PATH."""
    secret_poll: float = 30.0
    """How often a referenced Secret is read again; Secrets in general are neither listed nor watched."""
    progress_poll: float = 2.0
    """How often the progress of a download is written to the status."""
    retry: float = 5.0
    """First pause after a transient failure of a registry; doubles up to retry_slow."""
    retry_slow: float = 300.0
    """Pause after a failure that is unlikely to be transient, such as an image that does not exist."""

    def __post_init__(self) -> None:
        if not self.base_url.startswith(("http://", "https://")) or self.base_url.endswith("/"):
            raise ValueError(f"boot base URL {self.base_url!r}: write http://HOST:PORT without a slash at the end")
