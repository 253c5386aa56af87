"""The simulated fleet of `metalctl up --fleet`: images, BMCs and machines."""

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from metal.api.kinds import Kinds
from metal.config import Config
from metal.config.options import BMCOptions
from metal.controllers.endpoint.mac_prefixes import Prefixes, parse
from metal.kube.client.protocol import Client
from metal.kube.controller.tasks import Tasks, completed, first
from metal.sim.images.registry import DEFAULT_PORT as IMAGES_PORT
from metal.sim.images.registry import ImageRegistry
from metal.sim.machine.store import Unreadable
from metal.sim.options import DEFAULT_PORT as BMC_PORT
from metal.sim.options import Carrier, Options
from metal.sim.sites.fleet import Fleet, FleetSettings

_log = structlog.get_logger("metal.sim")
_SAVE_EVERY = 2.0
"""Seconds between saves of a large fleet; a crash loses the changes since the last one."""
_FEW = 64
"""Up to this number of machines, each change is saved at once, and a crash loses nothing."""


@dataclass(frozen=True)
class FleetOptions:
    """Number of simulated machines, and their ports."""

    machines: int = 0
    bmc_port: int = BMC_PORT
    images_port: int = IMAGES_PORT
    carriers: tuple[frozenset[Carrier], ...] = Options.carriers
    """What their BMCs offer to carry boot secrets."""


class SimulatedFleet:
    """A fleet with its state in `data`. Its servers start before, and its machines after, the control plane."""

    def __init__(self, options: FleetOptions, data: Path, config: Config) -> None:
        self.file, self._certificates, self._ca = data / "fleet.json", data / "fleet-tls.pem", data / "fleet-ca.pem"
        self.images = ImageRegistry(port=options.images_port)
        settings = FleetSettings(boot_url=config.boot_url, changed=self._changed)
        # BMC objects in a folder of a version whose fleets had no certificates say http.
        scheme = "http" if self.file.exists() and not self._certificates.exists() else "https"
        bmcs = Options(port=options.bmc_port, scheme=scheme, carriers=options.carriers)
        self.fleet = Fleet(options.machines, options=bmcs, settings=settings)
        self._tasks = Tasks("simulated fleet")

    def adapt(self, config: Config) -> Config:
        """Return the configuration with registry, probe image and certificate authority of the fleet.

        Raises OSError.
        """
        registries = replace(config.registries, insecure=(*config.registries.insecure, self.images.name))
        probe = config.probe_image or self.images.probe_image
        return replace(config, registries=registries, probe_image=probe, bmc=self._trusting(config.bmc))

    def _trusting(self, bmc: BMCOptions) -> BMCOptions:
        if self.fleet.options.scheme != "https":
            return bmc
        others = Path(bmc.ca_file).read_text() if bmc.ca_file else ""
        ca = self.fleet.certify(self._certificates)
        self._ca.write_text(f"{others}\n{ca}" if others else ca)
        return replace(bmc, ca_file=str(self._ca))

    def prefixes(self) -> Prefixes:
        """Return the MAC prefixes of the BMCs."""
        return parse(self.fleet.mac_prefixes_yaml(), "simulated fleet")

    async def start(self) -> None:
        """Open the sockets of images and BMCs. Raises OSError."""
        try:
            self.fleet.load(self.file)
        except Unreadable as exc:
            raise OSError(str(exc)) from None
        await completed(self.images.start())
        await completed(self.fleet.serve())

    async def run(self, client: Client, kinds: Kinds) -> None:
        """Start the machines, and request leases for the BMCs. Raises ApiError."""
        await self.fleet.start()
        self._tasks.spawn("save", self._save)
        await self.fleet.announce(client, kinds)

    async def crash(self) -> None:
        """Wait for the first background task that ends, and raise Crashed with its name."""
        await first(self._tasks.crash(), self.fleet.tasks.crash())

    async def stop(self) -> None:
        """Stop the machines and save their state."""
        saving = self._tasks.running
        await self._tasks.stop(grace=0.0)
        await self.fleet.stop()
        await self.images.stop()
        if saving:
            self.fleet.save(self.file)

    def _changed(self) -> None:
        if self._tasks.running and len(self.fleet.machines) <= _FEW:
            self._keep()

    def _keep(self) -> None:
        try:
            self.fleet.save(self.file)
        except OSError as exc:
            _log.warning("the state of the machines cannot be saved; a restart restores an older state", error=str(exc))

    async def _save(self) -> None:
        seen = -1
        while True:
            changes = sum(machine.changes for machine in self.fleet.machines)
            if changes != seen:
                self._keep()
                seen = changes
            await asyncio.sleep(_SAVE_EVERY)
