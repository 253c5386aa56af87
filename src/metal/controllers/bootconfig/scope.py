"""The dependencies of the ServerBootConfiguration reconciler, and what a process remembers about each key."""

from dataclasses import dataclass

from metal.api.claim import ServerBootConfiguration
from metal.api.ipxe import IPXEBootConfig
from metal.api.server import Server
from metal.boot.images import Image, Images
from metal.controllers.bootconfig.findings import Finding
from metal.controllers.shared.scope import Context, StatusScope
from metal.kube.cache.informer import Informer
from metal.machine import architecture
from metal.machineapi.bootserver.settings import BootSettings

BY_SERVER = "bootconfig-server"
"""Index of boot configurations by the name of their server."""

Wanted = tuple[str, int, str]
"""An image reference, the generation that names it, and the architecture of the server."""

ConfigScope = StatusScope[ServerBootConfiguration]


@dataclass
class Deps:
    """What all passes share; created once."""

    context: Context
    configs: Informer[ServerBootConfiguration]
    servers: Informer[Server]
    children: Informer[IPXEBootConfig]
    images: Images
    settings: BootSettings

    @property
    def architecture_label(self) -> str:
        """Key of the label of a Server that names its architecture."""
        return self.context.kinds.key(architecture.LABEL)

    def architecture(self, server: Server) -> architecture.Found:
        """The architecture that a server boots."""
        return architecture.of_server(server, self.architecture_label, self.settings.architecture)


@dataclass
class Memo:
    """What this process remembers about a boot configuration. Losing it costs requests, never correctness."""

    failures: int = 0
    """Consecutive failed attempts to get the image."""
    ignition: tuple[tuple[str, str], Finding] | None = None
    """UID and resourceVersion of the Secret that was accepted last, and what was found."""
    resolved: tuple[Wanted, Image] | None = None
    """What was resolved last, and the image; kept during the download."""
    failed: tuple[Wanted, Finding] | None = None
    """What is not available, and why; valid until `retry_at`, also in earlier passes."""
    retry_at: float = 0.0
    """Loop time at which the registry is asked again."""
