"""A control plane with an embedded API in this process, with or without a simulated fleet."""

import asyncio
import sys
from pathlib import Path

import structlog
from prometheus_client import CollectorRegistry

from metal.api.kinds import METAL_GROUP, kinds
from metal.api.server import Server
from metal.apiserver.server import EmbeddedAPI
from metal.bmc.redfish.pool import RedfishPool
from metal.cli.run.home_lease import PREFIX, release_former
from metal.cli.run.process import candidate
from metal.cli.run.simulated_fleet import FleetOptions, SimulatedFleet
from metal.codegen.crd import crds
from metal.config import Config
from metal.config.check import split_listen
from metal.controllers.endpoint.prefix_file import PrefixFile
from metal.kube.cache.informer import Informer
from metal.kube.controller.metrics import ClientMetrics
from metal.kube.controller.tasks import first
from metal.kube.meta.clock import system_clock
from metal.listener.metrics import Metrics as ListenerMetrics
from metal.manager import Manager, Parts
from metal.sim.images.registry import DEFAULT_PORT as IMAGES_PORT

_log = structlog.get_logger("metal")
_NO_PROBE_IMAGE = """
probeImage is not set: servers wait for it in state Discovery, after timeouts.bootConfig in state Error. To build and
publish a probe image:
  make images IMAGES_ARGS="--kernel generic"
  .venv/bin/python images/push.py .cache/images/out/discovery http://HOST:PORT/os/discovery:latest
then set probeImage: HOST:PORT/os/discovery:latest and registries.insecure: ["HOST:PORT"] (or registries.allowed, for
https) in the file of --config, and start again.
"""


class Standalone:
    """All parts of `metalctl up`: `start` them, watch `servers`, and `stop` them."""

    def __init__(self, data: Path, config: Config, fleet: FleetOptions) -> None:
        self.simulated = SimulatedFleet(fleet, data, config) if fleet.machines else None
        config = self.simulated.adapt(config) if self.simulated else config
        self.data, self.config = data, config
        registry = CollectorRegistry()
        listeners = ListenerMetrics(registry)
        self.api = EmbeddedAPI(data, system_clock, limits=config.connection_limits(), metrics=listeners)
        file = Path(config.mac_prefixes_file) if config.mac_prefixes_file else None
        prefixes = PrefixFile(file, extra=self.simulated.prefixes() if self.simulated else None)
        observe = ClientMetrics(registry).observe
        elector = candidate(config, self.api.client("metal-operator-election", observer=observe), prefix=PREFIX)
        pool = RedfishPool(permit=elector.require, registry=registry, silent_budget=config.silent_budget)
        self.manager = Manager(
            Parts(
                self.api.client(observer=observe), pool, config, prefixes, data / "images", registry=registry,
                elector=elector, health=self.api.backend.health, listeners=listeners,
            )
        )  # fmt: skip

    @property
    def servers(self) -> Informer[Server]:
        """Informer of all servers."""
        return self.manager.runtime.informer(self.manager.kinds.server)

    async def start(self) -> None:
        """Start the parts in the order of their dependencies. Raises OSError if an address is in use."""
        await self.api.start()
        await release_former(
            self.api.client(), self.config.election.lease, self.config.namespace, empty=self.api.backend.store.was_empty
        )
        await self.api.install_crds(crds(kinds(self.config.api_group, self.config.boot_group)))
        await self.api.listen(*split_listen(self.config.listen.api), advertise=self.config.advertise.api)
        if self.simulated is not None:
            await self.simulated.start()
        await self.manager.listen()
        await self.manager.start()
        _log.info("control plane is up", api=self.api.url, boot=self.config.boot_url, registry=self.config.registry_url)
        if self.simulated is not None:
            await self.simulated.run(self.api.client("metal-sim"), self.manager.kinds)

    async def run(self, stop: asyncio.Event) -> None:
        """Return when `stop` is set. Raises Crashed when a background task of any part ends."""
        simulated = [] if self.simulated is None else [self.simulated.crash()]
        await first(self.manager.run(stop), self.api.crash(), *simulated)

    async def stop(self) -> None:
        """Stop the parts in reverse order. Acknowledged writes are stored."""
        await self.manager.stop()
        if self.simulated is not None:
            await self.simulated.stop()
        await self.api.stop()

    def greeting(self) -> str:
        """Return where the kubeconfig is, next steps, and what the configuration lacks."""
        path, group = self.api.kubeconfig, self.config.api_group
        other_group = "" if group == METAL_GROUP else f" --api-group {group}"
        sample_fits = self.simulated is not None and self.simulated.images.port == IMAGES_PORT and not other_group
        then = "apply -f config/samples/first-claim.yaml" if sample_fits else "get bmcs,endpoints"
        return (
            f"{'' if self.config.probe_image else _NO_PROBE_IMAGE}"
            f"\nkubeconfig: {path}   (Ctrl-C stops; the same command continues)\ntry:\n"
            f"  kubectl --kubeconfig {path} get servers -w\n"
            f"  kubectl --kubeconfig {path} {then}\n"
            f"  {_metalctl()} status --kubeconfig {path}{other_group}"
        )


def _metalctl() -> str:
    """Return how to call this program from another terminal in the same folder."""
    program = Path(sys.argv[0])
    if program.name != "metalctl":
        return "metalctl"
    here = Path.cwd()
    return str(program.relative_to(here)) if program.is_relative_to(here) else str(program)
