"""The dependencies of the ServerBootConfiguration reconciler, and what a process remembers about each key."""

import random
from dataclasses import dataclass, field

from metal.api.claim import ServerBootConfiguration
from metal.api.ipxe import IPXEBootConfig
from metal.api.kinds import Kinds
from metal.api.server import Server
from metal.boot.images import Image, Images
from metal.controllers.bootconfig.findings import Finding
from metal.controllers.shared.metrics.metrics import Metrics, unregistered
from metal.kube.cache.informer import Informer
from metal.kube.client.protocol import Client
from metal.kube.controller.events import Recorder
from metal.kube.controller.own_writes import OwnWrites
from metal.kube.meta.clock import Clock
from metal.machineapi.bootserver.settings import BootSettings

BY_SERVER = "bootconfig-server"
"""Index of boot configurations by the name of their server."""


@dataclass
class Deps:
    """What all passes share; created once."""

    client: Client
    kinds: Kinds
    configs: Informer[ServerBootConfiguration]
    servers: Informer[Server]
    children: Informer[IPXEBootConfig]
    images: Images
    settings: BootSettings
    clock: Clock
    rng: random.Random
    recorder: Recorder
    metrics: Metrics = field(default_factory=unregistered)
    own_writes: OwnWrites = field(default_factory=OwnWrites)
    """Status writes of the reconciler, which cause no pass."""


@dataclass
class Memo:
    """What this process remembers about a boot configuration. Losing it costs requests, never correctness."""

    failures: int = 0
    """Consecutive failed attempts to get the image."""
    secret: tuple[str, str] = ("", "")
    """UID and resourceVersion of the Secret that was validated last."""
    resolved: tuple[str, int, Image] | None = None
    """Reference, generation, and what it was resolved to; kept during the download."""
    failed: tuple[str, int, Finding] | None = None
    """Image, generation, and why it is not available; valid until `retry_at`, also in earlier passes."""
    retry_at: float = 0.0
    """Loop time at which the registry is asked again."""
