"""A fleet that enrols at a real kube-apiserver through a proxy, with the manager as a process of its own."""

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import yaml

from metal.api.core import CONFIG_MAP, EVENT
from metal.api.kinds import kinds
from metal.kube.client.errors import ApiError
from metal.kube.client.http import HTTPClient
from metal.kube.client.kubeconfig import load
from metal.sim.images.registry import ImageRegistry
from metal.sim.invariants import check_all
from metal.sim.options import Options
from metal.sim.sites.fleet import Fleet, FleetSettings
from metal.sim.sites.object_history import ObjectHistory, watched
from tests.chain.etcd_history import EtcdHistory
from tests.chain.installed import install
from tests.chain.proxy import Counts, Proxy
from tests.kubeapi.cluster import KubeCluster, free_ports

METALCTL = Path(sys.executable).with_name("metalctl")
PASSWORD = "factory-default-23"


class Enrolment:
    """One fleet under an API group and a namespace of its own, so that several follow each other on one cluster."""

    def __init__(self, cluster: KubeCluster, number: int, machines: int, folder: Path) -> None:
        self.cluster, self.folder, self.machines = cluster, folder / f"enrolment-{number}", machines
        self.namespace = f"metal-{number}"
        self.kinds = kinds(f"metal{number}.faults.test", f"boot{number}.faults.test")
        connection = load(cluster.kubeconfig)
        self.client = HTTPClient(connection)
        self.proxy = Proxy(cluster.url, connection.tls, random.Random(number))
        self.boot_port, self.registry_port, self.metrics_port, self.bmc_port = free_ports(4)
        options = Options(power=0.3, boot=0.5, shutdown=0.2, latency=0.005, port=self.bmc_port, password=PASSWORD)
        settings = FleetSettings(
            boot_url=f"http://127.0.0.1:{self.boot_port}", offset=number * machines, history_limit=None
        )
        self.fleet = Fleet(machines, seed=number, options=options, settings=settings)
        self.images = ImageRegistry(port=0)
        ours = [kind for kind in watched(self.kinds) if kind.group in (self.kinds.group, self.kinds.boot_group)]
        self.objects = EtcdHistory(cluster.etcd_url, self.fleet.history, ours)
        self.told = ObjectHistory(self.client, self.fleet.history, (CONFIG_MAP, EVENT))
        self.manager: subprocess.Popen[bytes] | None = None
        self.log = self.folder / "manager.log"

    @asynccontextmanager
    async def run(self) -> AsyncIterator["Enrolment"]:
        """Everything but the leases: CRDs, rights, fleet, proxy and manager."""
        self.folder.mkdir()
        try:
            token = await install(self.cluster, self.client, self.kinds, self.namespace)
            async with self.proxy.run():
                await self.images.start()
                await self.objects.start()
                await self.told.start()
                await self.fleet.serve()
                await self.fleet.start()
                self._start_manager(token)
                await self._is_up()
                yield self
                await self._stop_manager()
        finally:
            if self.manager is not None:
                self.manager.kill()
                self.manager.wait()
            await self.told.stop()
            await self.objects.stop()
            await self.fleet.stop()
            await self.images.stop()
            await self.client.aclose()

    async def announce(self) -> None:
        """The BMCs ask for their addresses."""
        await self.fleet.announce(self.client, self.kinds)

    async def until_available(self, *, within: float) -> float:
        """Wait until every machine's Server is Available; returns the seconds that it took."""
        begun = time.monotonic()
        while (left := self.machines - await self._available()) > 0:
            assert time.monotonic() - begun < within, f"{left} of {self.machines} not Available: {self.tail()}"
            await asyncio.sleep(0.5)
        return time.monotonic() - begun

    async def _available(self) -> int:
        try:
            servers = (await self.client.list(self.kinds.server)).items
        except ApiError:
            return 0  # it is away just now, as the scenario wants
        return sum(server.status.state == "Available" for server in servers)

    async def objects_there(self) -> dict[str, int]:
        """How many objects of each kind that a machine has one of.

        Leases of hosts are left out: one that was told while the API was away is told again when the machine renews it,
        which none does that is switched off soon.
        """
        lasting = (self.kinds.bmc, self.kinds.bmc_secret, self.kinds.server)
        found = {kind.kind: len((await self.client.list(kind)).items) for kind in lasting}
        bmcs = {machine.identity.bmc_ip for machine in self.fleet.machines}
        endpoints = (await self.client.list(self.kinds.endpoint)).items
        return found | {"Endpoint": sum(endpoint.spec.ip in bmcs for endpoint in endpoints)}

    async def settled(self) -> Counts:
        """Wait until Events, too, are written; returns the counts of everything so far."""
        counts, before = self.proxy.counts, 0
        while counts.total - before > 10:
            before = counts.total
            await asyncio.sleep(2)
        return self.proxy.count_anew()

    def check(self) -> None:
        """All invariants over all that happened."""
        check_all(self.fleet.history, {secret for m in self.fleet.machines for secret in m.secrets} | {PASSWORD})

    def power_ons(self) -> list[int]:
        """How often each machine was switched on."""
        history = self.fleet.history
        return [
            sum(entry.details["state"] == "On" for entry in history.of(machine.identity.uuid, "power"))
            for machine in self.fleet.machines
        ]

    def tail(self) -> str:
        """The end of the manager's log."""
        return self.log.read_text(errors="replace")[-3000:]

    def _start_manager(self, token: str) -> None:
        kubeconfig = self.folder / "kubeconfig"
        kubeconfig.write_text(self.cluster.kubeconfig_of(token, url=self.proxy.url))
        prefixes, config = self.folder / "prefixes.yaml", self.folder / "config.yaml"
        prefixes.write_text(self.fleet.mac_prefixes_yaml())
        config.write_text(yaml.safe_dump({
            "apiGroup": self.kinds.group, "bootGroup": self.kinds.boot_group, "namespace": self.namespace,
            "macPrefixesFile": str(prefixes), "probeImage": self.images.probe_image,
            "sanitization": {"policy": "None"},
            "registries": {"insecure": [self.images.name]},
            # A lease that was told while the API was away is never known: such a boot is believed after this time.
            "timeouts": {"raceWindow": "20s"},
            "boot": {"minimumTrust": "FirstRequest"},
            "listen": {
                "boot": f"127.0.0.1:{self.boot_port}", "registry": f"127.0.0.1:{self.registry_port}",
                "metrics": f"127.0.0.1:{self.metrics_port}",
            },
        }))  # fmt: skip
        command = [METALCTL, "manager", "--kubeconfig", kubeconfig, "--config", config, "--data", self.folder / "data",
            "--no-leader-elect",
        ]  # fmt: skip
        with self.log.open("wb") as log:
            self.manager = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log)

    async def _is_up(self) -> None:
        await self._until(lambda: "manager is up" in self.log.read_text(errors="replace"), 60)

    async def _until(self, check: Callable[[], bool], within: float) -> None:
        begun = time.monotonic()
        while not check():
            assert self.manager is not None
            assert self.manager.poll() is None, self.tail()
            assert time.monotonic() - begun < within, self.tail()
            await asyncio.sleep(0.1)

    async def _stop_manager(self) -> None:
        assert self.manager is not None
        self.manager.terminate()
        assert await asyncio.to_thread(self.manager.wait, 15) == 0, self.tail()
