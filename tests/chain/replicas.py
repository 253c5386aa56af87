"""A fleet, and any number of managers as processes of their own, on a real kube-apiserver."""

import asyncio
import itertools
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from metal.api.core import LEASE, SECRET
from metal.api.kinds import kinds
from metal.api.server import Server
from metal.kube.client.errors import ApiError
from metal.kube.client.http import HTTPClient
from metal.kube.client.kubeconfig import load
from metal.sim.images.registry import ImageRegistry
from metal.sim.invariants import check_all
from metal.sim.machine.machine import Machine
from metal.sim.machine.network import Reply, SocketNetwork, Unreachable
from metal.sim.options import Options
from metal.sim.sites.fleet import Fleet, FleetSettings
from metal.sim.sites.object_history import ObjectHistory, watched
from tests.chain.cable import Cable
from tests.chain.installed import install, kubectl
from tests.kubeapi.cluster import KubeCluster, free_ports

METALCTL = Path(sys.executable).with_name("metalctl")
PASSWORD = "factory-default-29"
BOOT, REGISTRY = "http://boot.test:8082", "http://registry.test:10000"
"""What machines are told: names that lead to one replica now and to another one then, as a Service's does."""
IGNITION = (
    '{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/hostname","contents":{"source":"data:,%s"}}]}}'
)
"""Names its claim: `check_physical` recognizes by the hostname whose system a machine starts."""


class Replica:
    """One manager, behind a cable of its own to the API."""

    def __init__(self, site: "Site", number: int) -> None:
        self.site, self.number = site, number
        self.boot, self.registry, self.metrics = free_ports(3)
        self.folder = site.folder / f"manager-{number}"
        self.folder.mkdir()
        self.cable = Cable("127.0.0.1", site.cluster.port)
        self.process: subprocess.Popen[bytes] | None = None
        self.log = self.folder / "log"

    async def start(self) -> None:
        """Start the process; it is not ready yet."""
        await self.cable.start()
        kubeconfig, config = self.folder / "kubeconfig", self.folder / "config.yaml"
        kubeconfig.write_text(self.site.cluster.kubeconfig_of(self.site.token, url=self.cable.url))
        config.write_text(yaml.safe_dump(self.site.config(self)))
        command = [METALCTL, "manager", "--kubeconfig", kubeconfig, "--config", config, "--data", self.folder / "data"]
        with self.log.open("wb") as log:
            self.process = await asyncio.to_thread(subprocess.Popen, list(map(str, command)), stdout=log, stderr=log)

    async def end(self, how: signal.Signals) -> int:
        """Send the signal and wait; returns the exit code."""
        if self.alive:
            self.send(how)
        return await self.ended()

    def send(self, how: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(how)

    async def ended(self) -> int:
        """Wait for the end of one that was told to end; returns the exit code."""
        assert self.process is not None
        code = await asyncio.to_thread(self.process.wait, 30)
        await self.cable.stop()
        return code

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    async def role(self) -> str:
        """What /readyz says; empty when nobody answers."""
        return await asyncio.to_thread(self._role)

    def _role(self) -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/readyz", timeout=2) as answer:
                return str(answer.read().decode()).removeprefix("ok ")
        except OSError:
            return ""

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]


class Service:
    """Leads machines to the replicas that are alive, to another one with each request, as a Service would."""

    def __init__(self, site: "Site") -> None:
        self._site, self._turn = site, itertools.count()
        self._sockets = SocketNetwork()
        self.served: dict[int, int] = {}
        """Requests answered, by the replica's number."""

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes, source_ip: str, timeout: float = 30.0
    ) -> Reply:
        """See Network."""
        there = [one for one in self._site.replicas if one.alive and not one.cable.cut]
        turn = next(self._turn)
        for place in range(len(there)):
            replica = there[(turn + place) % len(there)]
            direct = url.replace(BOOT, f"http://127.0.0.1:{replica.boot}")
            direct = direct.replace(REGISTRY, f"http://127.0.0.1:{replica.registry}")
            with suppress(Unreachable):
                reply = await self._sockets.request(
                    method, direct, headers=headers, body=body, source_ip=source_ip, timeout=timeout
                )
                self.served[replica.number] = self.served.get(replica.number, 0) + 1
                return reply
        raise Unreachable("no replica")

    async def aclose(self) -> None:
        """Nothing to close."""


class Site:
    """Fleet, images, history and replicas, under an API group and a namespace of their own."""

    def __init__(self, cluster: KubeCluster, name: str, machines: int, options: Options) -> None:
        self.cluster, self.namespace, self.machines = cluster, f"metal-{name}", machines
        self.folder = cluster.folder / f"chain-{name}"
        self.folder.mkdir()
        self.kinds = kinds(f"{name}.chain.test", f"boot-{name}.chain.test")
        self.client = HTTPClient(load(cluster.kubeconfig))
        self.replicas: list[Replica] = []
        self._numbers = itertools.count()
        self.service = Service(self)
        settings = FleetSettings(boot_url=BOOT, network=self.service, history_limit=None)
        self.fleet = Fleet(machines, options=options, settings=settings)
        self.images = ImageRegistry(port=0)
        self.objects = ObjectHistory(self.client, self.fleet.history, watched(self.kinds))
        self.token = ""

    @asynccontextmanager
    async def run(self) -> AsyncIterator["Site"]:
        """Everything but managers and leases: CRDs, rights, images, BMCs."""
        try:
            self.token = await install(self.cluster, self.client, self.kinds, self.namespace)
            await self.images.start()
            await self.objects.start()
            await self.fleet.serve()
            await self.fleet.start()
            yield self
        finally:
            for replica in self.replicas:
                await replica.end(signal.SIGKILL)
            await self.objects.stop()
            await self.fleet.stop()
            await self.images.stop()
            await self.client.aclose()
            await asyncio.sleep(0.3)  # TLS connections take a moment to say goodbye

    async def add_replica(self) -> Replica:
        """One more manager, started and not waited for."""
        replica = Replica(self, next(self._numbers))
        self.replicas.append(replica)
        await replica.start()
        return replica

    def config(self, replica: Replica) -> dict[str, Any]:
        """The configuration of one replica: the same for all but for where it listens."""
        prefixes = self.folder / "prefixes.yaml"
        prefixes.write_text(self.fleet.mac_prefixes_yaml())
        listen = {name: f"127.0.0.1:{getattr(replica, name)}" for name in ("boot", "registry", "metrics")}
        return {
            "apiGroup": self.kinds.group, "bootGroup": self.kinds.boot_group, "namespace": self.namespace,
            "macPrefixesFile": str(prefixes), "probeImage": self.images.probe_image,
            "sanitization": {"policy": "None"},
            "registries": {"insecure": [self.images.name]}, "listen": listen,
            "advertise": {"boot": BOOT, "registry": REGISTRY}, "timeouts": {"raceWindow": "1s", "resync": "5s"},
            "boot": {"minimumTrust": "FirstRequest"},
        }  # fmt: skip

    async def announce(self) -> None:
        """The BMCs ask for their addresses."""
        await self.fleet.announce(self.client, self.kinds)

    async def servers(self) -> list[Server]:
        return list((await self.client.list(self.kinds.server)).items)

    async def until_available(self, within: float) -> None:
        """Wait until every machine's Server is Available."""

        async def available() -> bool:
            found = await self.servers()
            return len(found) == self.machines and all(s.status.state == "Available" for s in found)

        await self.until(available, within)

    async def until(self, check: Callable[[], Awaitable[bool]], within: float) -> float:
        """Wait until it holds; returns the seconds that it took. Raises AssertionError with what servers wait for."""
        begun = time.monotonic()
        while True:
            with suppress(ApiError):
                if await check():
                    return time.monotonic() - begun
            if time.monotonic() - begun > within:
                raise AssertionError(f"not within {within:g} s: {await self._story()}")
            await asyncio.sleep(0.1)

    async def _story(self) -> str:
        told = [(s.metadata.name, s.status.state, s.status.waiting_for) for s in await self.servers()]
        logs = "\n".join(f"--- manager {one.number}\n{one.tail()}" for one in self.replicas[-2:])
        return f"{told}\n{logs}"

    async def add_claim(self, name: str) -> None:
        """A claim in namespace default for the demo image."""
        secret = {"metadata": {"name": name, "namespace": "default"}, "stringData": {"ignition": IGNITION % name}}
        await self.client.apply(SECRET, secret, manager="test")
        image = f"{self.images.name}/demo:latest"
        spec = {"power": "On", "image": image, "ignitionSecretRef": {"name": name}}
        await self.client.create(self.kinds.claim, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})

    async def drop_claim(self, name: str) -> None:
        await self.client.delete(self.kinds.claim, name, "default")

    async def ready_claims(self) -> set[str]:
        """Names of the claims whose system runs."""
        found = (await self.client.list(self.kinds.claim, "default")).items
        return {
            claim.metadata.name
            for claim in found
            if any(c.type == "Ready" and c.status == "True" for c in claim.status.conditions)
        }

    async def running_claims(self) -> set[str]:
        """Names of the claims whose machine has come up: later than Ready, which says that it fetched all it needs."""
        up = {machine.identity.uuid for machine in self.fleet.machines if _runs_tenant(machine)}
        held = {server.spec.server_claim_ref.name for server in await self.servers()
                if server.spec.server_claim_ref is not None and server.uuid in up}  # fmt: skip
        return held & await self.ready_claims()

    async def holder(self) -> str:
        """Who has the Lease, as it is stored."""
        return (await self.client.get(LEASE, "metal-operator", self.namespace)).spec.holder_identity

    def check(self) -> None:
        """All invariants over all that happened, and no machine was switched on more often than there were reasons."""
        check_all(self.fleet.history, {secret for m in self.fleet.machines for secret in m.secrets} | {PASSWORD})

    def forbidden(self) -> int:
        """How many requests the API has refused with 403 so far, by its own count."""
        text = kubectl(self.cluster, "get", "--raw", "/metrics")
        lines = [line for line in text.splitlines() if line.startswith("apiserver_request_total{")]
        return sum(int(float(line.rpartition(" ")[2])) for line in lines if 'code="403"' in line)


def _runs_tenant(machine: Machine) -> bool:
    system = machine.state.os
    return machine.state.power == "On" and system is not None and system.kind == "tenant"
