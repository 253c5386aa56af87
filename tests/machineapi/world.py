"""An environment for boot server and registry: an API in memory with one server and its boot."""

import base64
import itertools
import json
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from metal.api.boot_window import BootWindow
from metal.api.core import SECRET
from metal.api.kinds import kinds
from metal.api.server import Server
from metal.boot.errors import ImageError
from metal.boot.images import Image, Progress
from metal.boot.manifest import Descriptor, Parts
from metal.boot.oci import parse
from metal.boot.plan import Blob
from metal.controllers.bootconfig.ipxe_boot_config import desired
from metal.machine.directory import ListingDirectory
from metal.machineapi.bootserver.service import BootService
from metal.machineapi.bootserver.settings import BootSettings
from metal.machineapi.http.refusals import Refusals
from metal.machineapi.registry.service import RegistryService, RegistrySettings
from tests.boot.programs import program
from tests.boot.registry import INITRAMFS, KERNEL, digest
from tests.kube.client.fakeapi import FakeAPI

UUID = "4c4c4544-0042-4410-8030-b4c04f4d3132"
SWAPPED = "44454c4c-4200-1044-8030-b4c04f4d3132"
MAC = "52:54:00:00:00:01"
MACHINE, NEIGHBOR = "10.0.0.7", "10.0.0.66"
IMAGE = parse(f"registry.test:5000/team/os@{digest(b'manifest')}")
IGNITION = {"ignition": {"version": "3.3.0"}, "storage": {"files": [{"path": "/etc/secret"}]}}
SPEC = {"systemUUID": UUID}


def image(command_line: str = "console=ttyS0 rdinit=/init") -> Image:
    kernel = Descriptor("application/vnd.ironcore.image.kernel", digest(KERNEL), len(KERNEL))
    initramfs = Descriptor("application/vnd.ironcore.image.initramfs", digest(INITRAMFS), len(INITRAMFS))
    return Image(IMAGE, Parts(kernel, initramfs), command_line)


@dataclass
class Clock:
    """A clock that tests move."""

    now: datetime = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@dataclass
class Shelf:
    """Images in a directory, available at once."""

    folder: Path
    found: Image = field(default_factory=image)
    failure: ImageError | None = None
    local: bool = True
    resolved: list[str] = field(default_factory=list)
    architectures: list[str] = field(default_factory=list)
    pinned: list[bool] = field(default_factory=list)
    held: dict[str, tuple[str, ...]] = field(default_factory=dict)
    wakers: list[Callable[[], None]] = field(default_factory=list)
    using: int = 0
    open_delay: Callable[[], Any] | None = None

    async def resolve(self, reference: str, architecture: str, *, pinned: bool = False) -> Image:
        self.resolved.append(reference)
        self.architectures.append(architecture)
        self.pinned.append(pinned)
        if self.failure is not None:
            raise self.failure
        return self.found

    def prefetch(self, owner: str, image: Image, wake: Callable[[], None]) -> Progress:
        self.held[owner] = tuple(blob.digest for blob in image.parts.blobs)
        self.wakers.append(wake)
        total = sum(blob.size for blob in image.parts.blobs)
        return Progress(total if self.local else total // 3, total, self.local)

    def keep(self, owner: str, digests: Collection[str]) -> bool:
        self.held[owner] = tuple(digests)
        return self.local

    def release(self, owner: str) -> None:
        self.held.pop(owner, None)

    async def open(self, blob: Blob) -> Path:
        if self.open_delay is not None:
            await self.open_delay()
        if self.failure is not None:
            raise self.failure
        path = self.folder / blob.digest.replace(":", "-")
        path.write_bytes({digest(KERNEL): KERNEL, digest(INITRAMFS): INITRAMFS}[blob.digest])
        return path

    @contextmanager
    def use(self, digest: str) -> Iterator[None]:
        self.using += 1
        yield
        self.using -= 1


class World:
    """One Server `s1` with a boot configuration, and two replicas of each service over the same API."""

    def __init__(self, folder: Path) -> None:
        self.api, self.clock, self.kinds = FakeAPI(), Clock(), kinds()
        self.images, self.metrics = Shelf(folder), CollectorRegistry()
        self.events: list[tuple[str, str, str, str]] = []
        self.refusals = Refusals(self.clock, event=self._event, registry=self.metrics)
        self._numbers = itertools.count(1)
        self.trust = "Lease"
        self.settings = BootSettings(base_url="http://10.0.0.1:8082", image_wait=5.0, butane=str(folder / "butane"))
        self.boot, self.replica = self.service(), self.service()
        self.registry = RegistryService(
            self.api, self.kinds, ListingDirectory(self.api, self.kinds), self.refusals,
            RegistrySettings(namespace="metal-system"), clock=self.clock,
        )  # fmt: skip

    async def populate(self, *, ignition: bool = True, leased: bool = True) -> None:
        """The objects: Server, ServerBootConfiguration, Secret, a Ready IPXEBootConfig, and the lease of the machine.

        Without a lease, boots have the trust FirstRequest.
        """
        self.trust = "Lease" if leased else "FirstRequest"
        if leased:
            await self.lease()
        interfaces = [{"name": "eth0", "macAddress": MAC, "source": "OutOfBand"}]
        status = {"networkInterfaces": interfaces, "powerState": "On"}
        await self.api.create(self.kinds.server, {"metadata": {"name": "s1"}, "spec": dict(SPEC), "status": status})
        await self.api.create(SECRET, secret("ignition", ignition=json.dumps(IGNITION).encode()))
        ref = {"ignitionSecretRef": {"name": "ignition"}} if ignition else {}
        await self.api.create(
            self.kinds.boot_config,
            {
                "metadata": {"name": "sbc", "namespace": "ns"},
                "spec": {"serverRef": {"name": "s1"}, "image": "x", **ref},
            },
        )
        config = await self.api.get(self.kinds.boot_config, "sbc", "ns")
        plan = image().plan(ignition=ignition)
        child = desired(config, await self.server(), plan, self.settings.base_url, self.kinds, "amd64")
        await self.api.create(self.kinds.ipxe, {**child, "status": {"state": "Ready"}})

    async def open(self, purpose: str = "Discovery", **more: Any) -> None:
        """Open a boot window, as the Server controller does before its power-on."""
        config = await self.api.get(self.kinds.boot_config, "sbc", "ns")
        window = {
            "id": f"boot-{next(self._numbers)}", "purpose": purpose, "configRef": {"namespace": "ns", "name": "sbc"},
            "configUID": config.metadata.uid, "phase": "Open", "method": "IPXE", "minimumTrust": self.trust,
            "openedAt": self.clock().isoformat(),
            "expiresAt": (self.clock() + timedelta(minutes=30)).isoformat(), **more,
        }  # fmt: skip
        await self.api.patch_status(self.kinds.server, "s1", {"status": {"bootWindow": None}})
        await self.api.patch_status(self.kinds.server, "s1", {"status": {"bootWindow": window}})

    def butane(self, body: str) -> None:
        """Install a program in the place of butane."""
        program(Path(self.settings.butane).parent, body)

    async def lease(self, ip: str = MACHINE, mac: str = MAC.upper()) -> None:
        """Report a lease, as the DHCP server's hook does."""
        name = f"lease-{next(self._numbers)}"
        await self.api.create(self.kinds.endpoint, {"metadata": {"name": name}, "spec": {"macAddress": mac, "ip": ip}})

    async def server(self) -> Server:
        return await self.api.get(self.kinds.server, "s1")

    async def window(self) -> BootWindow:
        found = (await self.server()).status.boot_window
        assert found is not None
        return found

    def refused(self, endpoint: str, reason: str) -> int:
        """The number of refusals with this reason."""
        labels = {"endpoint": endpoint, "reason": reason}
        return int(self.metrics.get_sample_value("metal_boot_refusals_total", labels) or 0)

    def service(self, settings: BootSettings | None = None) -> BootService:
        """Another replica of the boot server."""
        directory = ListingDirectory(self.api, self.kinds)
        return BootService(
            self.api, self.kinds, directory, self.images, self.refusals, settings or self.settings,
            clock=self.clock, token=lambda: f"token-{next(self._numbers)}",
        )  # fmt: skip

    def _event(self, server: Server, type: str, reason: str, message: str) -> None:
        self.events.append((server.metadata.name, type, reason, message))


def secret(name: str, **data: bytes) -> dict[str, Any]:
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    return {"metadata": {"name": name, "namespace": "ns"}, "data": encoded}
