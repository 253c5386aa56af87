"""Settings of the boot server: each with a meaning, a unit and the reason for its default."""

from dataclasses import dataclass, field
from pathlib import Path

from metal.boot.remote import RemoteSettings
from metal.machine.boot_window import CONTEST_PERIOD


@dataclass(frozen=True)
class BootSettings:
    """How images are had and served. Durations are in seconds, sizes in bytes."""

    base_url: str = "http://127.0.0.1:8082"
    """Where machines reach the boot server, without a path or a slash at the end."""
    architecture: str = "amd64"
    """Architecture of the machines, as OCI names it."""
    cache: Path = Path(".metal/images")
    """Folder of the image cache."""
    cache_bytes: int = 20 * 1024**3
    """What the cache may hold; about a hundred images."""
    remote: RemoteSettings = field(default_factory=RemoteSettings)
    """Registries and their limits."""
    image_wait: float = 15.0
    """How long a request waits for an image that is still being fetched; then 503, and iPXE asks again."""
    race_window: float = CONTEST_PERIOD.total_seconds()
    """How long a boot may be contested where no DHCP lease tells whose it was; as long as the controllers doubt it."""
    secret_poll: float = 30.0
    """How often a referenced Secret is read again; Secrets in general are neither listed nor watched."""
    progress_poll: float = 2.0
    """How often the progress of a download is shown."""
    retry: float = 5.0
    """First pause after a registry failed for a moment; doubles up to retry_slow."""
    retry_slow: float = 300.0
    """Pause after what is unlikely to heal by itself, such as an image that does not exist."""

    def __post_init__(self) -> None:
        if not self.base_url.startswith(("http://", "https://")) or self.base_url.endswith("/"):
            raise ValueError(f"boot base URL {self.base_url!r}: write http://HOST:PORT without a slash at the end")
