"""The embedded API, the Server and ServerClaim reconcilers and fake BMCs, under virtual time."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from metal.api.boot_window import BootWindow, Trust
from metal.api.claim import ServerBootConfiguration, ServerClaim
from metal.api.core import CONFIG_MAP, EVENT, NAMESPACE, Event
from metal.api.kinds import kinds
from metal.api.meta import Kind
from metal.api.sanitization import DriveErasure, SanitizationEvidence
from metal.api.server import Server
from metal.apiserver.server import EmbeddedAPI
from metal.controllers.claim.settings import ClaimSettings
from metal.controllers.claim.watches import setup_claims
from metal.controllers.maintenance.settings import MaintenanceSettings
from metal.controllers.maintenance.watches import setup_maintenances
from metal.controllers.readiness.watches import setup_readiness
from metal.controllers.server.settings import ServerSettings
from metal.controllers.server.watches import setup_servers
from metal.controllers.shared.metrics.metrics import Metrics
from metal.controllers.shared.scope import Context
from metal.evidence import record
from metal.evidence.drives import digest
from metal.evidence.report import SanitizationReport
from metal.kube.client.errors import AlreadyExists, NotFound
from metal.kube.controller.events import Recorder
from metal.kube.controller.runtime import Runtime
from metal.kube.meta.clock import LoopClock
from metal.machine import boot_window
from tests.controllers.fakebmc import MAC, URI, UUID, FakeBMC, FakePool
from tests.controllers.tap import Tap
from tests.crds import crds

KINDS = kinds()
NS = "metal-system"
CLIENT = "10.9.9.9"
"""Address of the machine's network card."""
START = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = ServerSettings(
    namespace=NS,
    probe_image="reg/probe:1",
    registry_url="http://10.0.0.1:10000",
    probe_bundle=b"probe",
    sanitization_policy="None",
)


class World:
    """One server named `s1` on a fake BMC at 10.0.0.9; a test adds what it needs."""

    def __init__(self, api: EmbeddedAPI, clock: LoopClock, settings: ServerSettings) -> None:
        self.api, self.clock = api, clock
        self.client = api.client()
        self.tap = Tap(api.client())
        self.bmc = FakeBMC()
        self.pool = FakePool({"10.0.0.9": self.bmc})
        self.settings = settings
        self.runtime = self._runtime()
        self.disks: list[dict[str, Any]] = []

    def _runtime(self, seed: int = 1) -> Runtime:
        runtime = Runtime(self.tap, rng=random.Random(seed))
        recorder = Recorder(self.client, EVENT, clock=self.clock, component="test")
        runtime.background("events", recorder.run)
        metrics = Metrics(runtime.metrics.registry)
        self.context = context = Context(self.tap, KINDS, self.clock, random.Random(seed), recorder, metrics)
        setup_servers(context, runtime, self.pool, self.settings, workers=8)
        setup_claims(context, runtime, ClaimSettings(), workers=8)
        setup_maintenances(context, runtime, MaintenanceSettings(enforced_namespaces=("default",)))
        setup_readiness(context, runtime)
        return runtime

    async def restart(self, seed: int = 2) -> None:
        """The manager is killed and another one starts; nothing but the API survives."""
        await self.runtime.stop(grace=0.0)
        self.runtime = self._runtime(seed)
        await self.runtime.start()

    def passes(self, controller: str = "server") -> float:
        """How many reconciles this manager has made."""
        found = self.runtime.metrics.reconciles.collect()
        return sum(
            s.value
            for metric in found
            for s in metric.samples
            if s.name.endswith("_total") and s.labels["controller"] == controller
        )

    async def add_server(self, name: str = "s1", **spec: Any) -> Server:
        """A Server with inline access to its BMC; DHCP has given its network card an address."""
        with contextlib.suppress(AlreadyExists):
            await self.client.create(
                KINDS.endpoint, {"metadata": {"name": "lease"}, "spec": {"macAddress": MAC, "ip": CLIENT}}
            )
        await self.client.create(
            KINDS.bmc_secret,
            {
                "metadata": {"name": f"{name}-secret"},
                "data": {"username": "Zm9v", "password": "YmFy"},
                "allowedBMCs": [f"server/{name}"],
            },
        )
        inline = {
            "protocol": {"name": "Redfish", "port": 443},
            "address": spec.pop("address", "10.0.0.9"),
            "bmcSecretRef": {"name": f"{name}-secret"},
        }
        body = {
            "metadata": {"name": name, "labels": spec.pop("labels", {})},
            "spec": {"systemUUID": spec.pop("uuid", UUID), "systemURI": URI, "bmc": inline, **spec},
        }
        return await self.client.create(KINDS.server, body)

    async def add_claim(self, name: str = "c1", **spec: Any) -> ServerClaim:
        """A claim in namespace default."""
        body = {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"power": "On", "image": "reg/os:1", **spec},
        }
        return await self.client.create(KINDS.claim, body)

    async def server(self, name: str = "s1") -> Server:
        return await self.client.get(KINDS.server, name)

    async def claim(self, name: str = "c1") -> ServerClaim:
        return await self.client.get(KINDS.claim, name, "default")

    async def config(self, name: str, namespace: str = NS) -> ServerBootConfiguration:
        return await self.client.get(KINDS.boot_config, name, namespace)

    async def events(self) -> list[Event]:
        return list((await self.client.list(EVENT)).items)

    async def settle(self) -> None:
        """Let the controllers do what they can do at once."""
        await asyncio.sleep(0.5)

    async def config_ready(self, name: str, namespace: str = NS, state: str = "Ready", message: str = "") -> None:
        """Play the boot operator: the configuration can be served (or not)."""
        config = await self.config(name, namespace)
        status: dict[str, Any] = {"state": state, "observedGeneration": config.metadata.generation}
        if message:
            condition = {"type": "ImageValidation", "status": "False", "reason": "X", "message": message,
                         "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
            status["conditions"] = [condition]
        await self.client.patch_status(KINDS.boot_config, name, {"status": status}, namespace)

    async def window(self, change: Callable[[BootWindow], BootWindow], name: str = "s1") -> None:
        """Play the boot server: one transition of the server's boot window."""
        server = await self.server(name)
        assert server.status.boot_window is not None
        new = change(server.status.boot_window)
        body = {
            "metadata": {"resourceVersion": server.metadata.resource_version},
            "status": {"bootWindow": {**_nulls(new), **msgspec.to_builtins(new)}},
        }
        await self.client.patch_status(KINDS.server, name, body)

    async def fetch_script(self, name: str = "s1", token: str = "t", trust: Trust = Trust.LEASE) -> None:
        """The machine fetches its script."""
        await self.window(
            lambda w: boot_window.serve_script(
                w, self.clock(), token=token, client=CLIENT, lease_known=True, trust=trust
            ),
            name,
        )

    async def fetch_ignition(self, name: str = "s1", token: str = "t") -> None:
        """The machine fetches its Ignition."""
        await self.window(
            lambda w: boot_window.serve_ignition(w, self.clock(), token=token, report_token="r", client="192.0.2.1"),
            name,
        )

    async def report(self, name: str = "s1", **more: Any) -> None:
        """The probe reports its interface, and `more`."""
        server = await self.server(name)
        mac = next((nic.mac_address for nic in server.status.network_interfaces), "52:54:00:77:00:11")
        report = {"networkInterfaces": [{"name": "eth0", "macAddress": mac, "carrierStatus": "up",
                                         "ipAddresses": ["10.9.9.9"]}], "storage": self.disks, **more}  # fmt: skip
        window = server.status.boot_window
        boot = {KINDS.key("boot"): window.id if window is not None else ""}
        body = {
            "metadata": {"name": f"inventory-{name}", "namespace": NS, "annotations": boot},
            "data": {"report.json": msgspec.json.encode(report).decode()},
        }
        await self.client.apply(CONFIG_MAP, body, manager="registry")
        await self.window(lambda w: boot_window.accept_report(w, self.clock(), token="r"), name)

    async def ask(self, name: str = "s1") -> None:
        """Play machine and registry: the probe asks whether it may erase the disks that it sees."""
        await self._report_erasure(name, SanitizationReport(False, self._erasures(result="Pending")))
        asked = digest(self._erasures())
        await self.window(lambda w: boot_window.ask_erasure(w, self.clock(), token="r", drives=asked), name)

    async def erase(self, name: str = "s1", *, done: bool = True, asks: bool = True, **more: Any) -> None:
        """Play machine and registry: every disk is erased, once this is allowed; `more` is said of each."""
        window = (await self.server(name)).status.boot_window
        assert window is not None
        if asks and not window.erasure_asked:
            await self.ask(name)
            await self.until_true(is_erasure_allowed, name)
        done_to = {"method": "Overwrite", "class_": "Clear", "percent": 100, "samples_read": 9, "result": "Succeeded"}
        await self._report_erasure(name, SanitizationReport(done, self._erasures(**{**done_to, **more})))
        if done:
            await self.window(lambda w: boot_window.accept_report(w, self.clock(), token="r"), name)

    def _erasures(self, **more: Any) -> tuple[DriveErasure, ...]:
        return tuple(
            DriveErasure(name=d["name"], serial_number=d["serial"], size=d["sizeBytes"], **more) for d in self.disks
        )

    async def _report_erasure(self, name: str, report: SanitizationReport) -> None:
        server = await self.server(name)
        assert server.status.boot_window is not None
        evidence = await record.find_or_create(self.client, KINDS, server, server.status.boot_window)
        await record.store_report(self.client, KINDS, evidence, report, self.clock())

    async def evidence(self) -> list[SanitizationEvidence]:
        """All there is, the oldest first."""
        return sorted((await self.client.list(KINDS.evidence)).items, key=lambda one: one.metadata.resource_version)

    async def until(self, state: str, name: str = "s1", *, within: float = 300.0) -> Server:
        """Wait in virtual time until the server is in this state and settled there."""
        return await self.until_true(lambda s: s.status.state == state, name, within=within)

    async def until_gone(self, kind: Kind[Any], name: str, namespace: str = "", *, within: float = 300.0) -> None:
        """Wait in virtual time until an object is no more."""
        end = asyncio.get_running_loop().time() + within
        with contextlib.suppress(NotFound):
            while await self.client.get(kind, name, namespace):
                assert asyncio.get_running_loop().time() < end, f"{name} is still there"
                await asyncio.sleep(0.25)

    async def until_true(self, check: Callable[[Server], bool], name: str = "s1", *, within: float = 300.0) -> Server:
        """Wait in virtual time until the check holds."""
        loop = asyncio.get_running_loop()
        end = loop.time() + within
        while not check(server := await self.server(name)):
            assert loop.time() < end, f"still {server.status.state}, waiting for {server.status.waiting_for!r}"
            await asyncio.sleep(0.25)
        return server

    async def until_claim(self, check: Callable[[ServerClaim], bool], name: str = "c1") -> ServerClaim:
        """Wait in virtual time until the check holds for the claim."""
        loop = asyncio.get_running_loop()
        end = loop.time() + 300
        while not check(claim := await self.claim(name)):
            assert loop.time() < end, f"still {claim.status}"
            await asyncio.sleep(0.25)
        return claim

    async def discover(self, name: str = "s1") -> Server:
        """Walk a server to Available, playing boot operator, boot server and machine."""
        await self.boot_probe(name)
        await self.until("Available", name)
        return await self.until_true(lambda s: not s.status.waiting_for, name)

    async def boot_probe(self, name: str = "s1") -> None:
        """Walk a server to its probe's report."""
        await self.until("Discovery", name)
        await self.config_ready(name)
        await self.until_true(lambda s: s.status.power_state == "On" and s.status.boot_window is not None, name)
        await self.fetch_script(name)
        await self.fetch_ignition(name)
        await self.report(name)

    async def boot_claim(self, claim: str = "c1", name: str = "s1") -> Server:
        """Walk a claimed server through its first boot."""
        await self.until_true(lambda s: s.spec.boot_configuration_ref is not None, name)
        await asyncio.sleep(0.5)
        await self.config_ready(claim, "default")
        await self.until_true(lambda s: s.status.power_state == "On" and s.status.state == "Reserved", name)
        await self.fetch_script(name)
        await self.fetch_ignition(name)
        return await self.until_true(lambda s: s.status.tenancy.boot is not None, name)


def is_erasure_allowed(server: Server) -> bool:
    """Whether the probe may erase the disks that it asked for."""
    window = server.status.boot_window
    return window is not None and window.erasure_asked != "" and window.erasure_allowed == window.erasure_asked


def _nulls(window: BootWindow) -> dict[str, None]:
    return dict.fromkeys(("tokenDigest", "reportTokenDigest"))


@asynccontextmanager
async def world(**settings: Any) -> AsyncIterator[World]:
    """A running world under the test's virtual clock."""
    clock = LoopClock(START)
    api = EmbeddedAPI(None, clock, rng=random.Random(0))
    await api.start()
    await api.install_crds(crds(KINDS))
    made = World(api, clock, replace(SETTINGS, **settings))
    await made.client.create(NAMESPACE, {"metadata": {"name": NS}})
    await made.runtime.start()
    try:
        yield made
    finally:
        await made.runtime.stop(grace=0.0)
        await api.stop()
    assert not made.tap.undeclared
