"""A rack of fake BMCs behind the embedded API with the Endpoint, BMC and BMCSecret reconcilers, in virtual time."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from metal.api.bmc import BMC, BMCSecret
from metal.api.core import EVENT, LEASE, NAMESPACE
from metal.api.endpoint import Endpoint
from metal.api.kinds import kinds
from metal.api.meta import Condition, Kind
from metal.api.server import Server
from metal.apiserver.server import EmbeddedAPI
from metal.bmc.errors import BMCAuthError, BMCCertificateChanged, BMCError, BMCHostKeyChanged
from metal.bmc.pool import BMCEndpoint
from metal.bmc.power import PowerState
from metal.bmc.shell import ShellAccess
from metal.bmc.systems import ManagerInfo, SystemInfo
from metal.controllers.bmc.dns_template import Template
from metal.controllers.bmc.settings import BMCSettings
from metal.controllers.bmc.watches import setup_bmcs
from metal.controllers.bmcsecret.watches import setup_bmc_secrets
from metal.controllers.endpoint.mac_prefixes import parse
from metal.controllers.endpoint.prefix_file import PrefixFile
from metal.controllers.endpoint.settings import EndpointSettings
from metal.controllers.endpoint.watches import setup_endpoints
from metal.controllers.shared.access.bmc_endpoint import BMCEndpointDefaults
from metal.controllers.shared.scope import Context
from metal.kube.client.errors import NotFound
from metal.kube.client.protocol import Client
from metal.kube.controller.events import Recorder
from metal.kube.controller.finalizers import remove_finalizer
from metal.kube.controller.runtime import Runtime
from metal.kube.meta.clock import LoopClock
from metal.kube.meta.conditions import find
from tests.controllers.fakebmc import FakeBMC
from tests.crds import crds

KINDS = kinds()
NS = "metal-system"
START = datetime(2026, 1, 1, tzinfo=UTC)
PREFIXES = """
macPrefixes:
- macPrefix: "a0:b1:c2"
  port: 8443
  defaultCredentials:
  - {username: factory, password: pw-factory}
  - {username: integrator, password: pw-integrator}
  console: {type: ssh, port: 22}
"""

T = TypeVar("T")


def uuid(number: int) -> str:
    """UUID of a system, upper case as many BMCs report it."""
    return f"AAAAAAAA-0000-0000-0000-{number:012d}"


def system(number: int, **more: Any) -> SystemInfo:
    """A system of a BMC."""
    return SystemInfo(uri=f"/redfish/v1/Systems/{number}", uuid=uuid(number), manufacturer="Contoso", **more)


@dataclass
class RackBMC(FakeBMC):
    """A BMC that checks credentials, may hang, and has any number of systems."""

    password: str = "pw-factory"
    present: tuple[SystemInfo, ...] = (system(1),)
    info: ManagerInfo = field(
        default_factory=lambda: ManagerInfo(
            uri="/redfish/v1/Managers/1", uuid="manager-1", manufacturer="Contoso", model="Joo Janta 200",
            sku="PN-1", serial_number="SN-1", firmware_version="1.45", state="Enabled", power_state=PowerState.ON,
            last_reset_time="2025-12-31T23:00:00+00:00",
        )
    )  # fmt: skip
    hangs: bool = False
    manager_failure: BMCError | None = None
    logins: list[str] = field(default_factory=list)
    offered: str = ""
    certificate: str = "ab" * 32
    held_to: str = ""

    async def ask(self, what: str) -> None:
        """Every request: hang, fail, show another certificate, or refuse the credentials offered."""
        self._called(what)
        if self.hangs:
            await asyncio.Event().wait()
        if self.held_to and self.held_to != self.certificate:
            raise BMCCertificateChanged("192.0.2.1:443", self.held_to, self.certificate)
        if self.offered != self.password:
            self.logins.append(self.offered)
            raise BMCAuthError("the BMC refuses the user name or password")

    async def systems(self) -> tuple[SystemInfo, ...]:
        await self.ask("systems")
        return self.present

    async def manager(self, uuid: str = "") -> ManagerInfo:
        await self.ask("manager")
        if self.manager_failure is not None:
            raise self.manager_failure
        return self.info

    async def reset_manager(self, uuid: str = "") -> None:
        await self.ask("reset_manager")


@dataclass
class RackPool:
    """BMCs by address. An address without one answers nothing."""

    bmcs: dict[str, RackBMC] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)
    drop_hangs: bool = False
    looks: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    """Names of the BMC objects for which a client was taken."""
    expected_silent: dict[str, BMCError] = field(default_factory=dict)

    def get(self, access: BMCEndpoint) -> RackBMC:
        self.keys.append(access.key)
        found = self.bmcs.setdefault(access.address, RackBMC(hangs=True))
        found.offered, found.held_to = access.password, access.fingerprint
        return found

    def expect_silence(self, key: str, error: BMCError) -> None:
        """Record it: here every BMC answers at once."""
        self.expected_silent[key] = error

    async def certificate(self, address: str, port: int) -> str:
        self.looks.append(f"{address}:{port}")
        found = self.bmcs.setdefault(address, RackBMC(hangs=True))
        found._called("certificate")
        return found.certificate

    async def drop(self, key: str) -> None:
        self.dropped.append(key)
        if self.drop_hangs:
            await asyncio.Event().wait()

    async def aclose(self) -> None:
        self.bmcs.clear()


@dataclass
class FakeShell:
    """Command lines of all BMCs. `commands` is what was run, with the address."""

    key: str = "SHA256:first"
    failure: BMCError | None = None
    hangs: bool = False
    commands: list[str] = field(default_factory=list)
    offered: list[str] = field(default_factory=list)

    async def host_key(self, address: str, port: int = 22) -> str:
        if self.hangs:
            await asyncio.Event().wait()
        return self.key

    async def run(self, access: ShellAccess, command: str) -> None:
        if self.failure is not None:
            raise self.failure
        if access.host_key != self.key:
            raise BMCHostKeyChanged(access.host_key, self.key, access.address)
        self.offered.append(access.password)
        self.commands.append(f"{access.address} {command}")


class Rack:
    """The API, the pool and the reconcilers. Addresses are 192.0.2.N, MAC addresses a0:b1:c2:00:00:N."""

    def __init__(self, api: EmbeddedAPI, clock: LoopClock) -> None:
        self.api, self.clock = api, clock
        self.client: Client = api.client()
        self.user: Client = api.client("somebody")
        self.pool, self.shell = RackPool(), FakeShell()
        self.prefixes = PrefixFile(extra=parse(PREFIXES))
        self.endpoint_settings, self.bmc_settings = EndpointSettings(), BMCSettings(namespace=NS)
        self.defaults = BMCEndpointDefaults()
        self.template: Template | None = None
        self.runtime = Runtime(self.client)

    async def start(self, seed: int = 1, *, endpoints: bool = True, bmcs: bool = True) -> None:
        """Start a manager; the former one must be stopped."""
        rng = random.Random(seed)
        self.runtime = runtime = Runtime(self.client, rng=rng)
        recorder = Recorder(self.user, EVENT, clock=self.clock, component="test")
        runtime.background("events", recorder.run)
        context = Context(self.client, KINDS, self.clock, rng, recorder)
        if endpoints:
            settings = self.endpoint_settings
            setup_endpoints(context, runtime, self.pool, self.prefixes, self.defaults, settings)
        if bmcs:
            made_of = (context, runtime, self.pool, self.defaults, self.bmc_settings)
            setup_bmcs(*made_of, shell=self.shell, template=self.template)
        setup_bmc_secrets(context, runtime)
        runtime.background("servers", self._end_servers)
        await runtime.start()

    async def _end_servers(self) -> None:
        """Removes the finalizer of deleted Servers, as the Server controller does, which is not here."""
        version = (await self.client.list(KINDS.server)).resource_version
        async for event in self.client.watch(KINDS.server, resource_version=version):
            server = event.object
            if server is not None and server.metadata.deletion_timestamp is not None:
                await remove_finalizer(self.client, KINDS.server, server, KINDS.key("server"))

    async def restart(self, seed: int = 2) -> None:
        """The manager is killed and another one starts; nothing but the API survives."""
        await self.runtime.stop(grace=0.0)
        await self.start(seed)

    def plug(self, number: int, **options: Any) -> RackBMC:
        """A BMC at its address."""
        self.pool.bmcs[f"192.0.2.{number}"] = found = RackBMC(**options)
        if "info" not in options:
            found.info = replace(found.info, serial_number=f"SN-{number}")
        return found

    async def lease(self, number: int, name: str = "", mac: str = "") -> Endpoint:
        """What the DHCP hook writes."""
        mac = mac or f"a0:b1:c2:00:00:{number:02x}"
        body = {
            "metadata": {"name": name or f"e{number}"},
            "spec": {"macAddress": mac, "ip": f"192.0.2.{number}"},
        }
        return await self.user.create(KINDS.endpoint, body)

    async def add_bmc(self, number: int, *, password: str = "pw-factory", **more: Any) -> None:
        """A BMC with inline access, and its BMCSecret."""
        name = f"b{number}"
        await self.add_secret(name, password)
        metadata = {"name": name, "labels": more.pop("labels", {})}
        spec = {
            "access": {"ip": f"192.0.2.{number}", "macAddress": f"a0:b1:c2:00:00:{number:02x}"},
            "bmcSecretRef": {"name": name},
            "protocol": {"name": "Redfish", "port": 443},
            **more,
        }
        await self.user.create(KINDS.bmc, {"metadata": metadata, "spec": spec})

    async def add_secret(self, name: str, password: str) -> None:
        """A BMCSecret as users write it."""
        body = {"metadata": {"name": name}, "stringData": {"username": "factory", "password": password}}
        await self.user.create(KINDS.bmc_secret, body)

    async def endpoint(self, name: str = "e1") -> Endpoint:
        return await self.client.get(KINDS.endpoint, name)

    async def bmc(self, name: str = "b1") -> BMC:
        return await self.client.get(KINDS.bmc, name)

    async def secret(self, name: str = "b1") -> BMCSecret:
        return await self.client.get(KINDS.bmc_secret, name)

    async def server(self, name: str = "b1-system-0") -> Server:
        return await self.client.get(KINDS.server, name)

    async def servers(self) -> dict[str, str]:
        """UUID by name of every Server."""
        return {s.metadata.name: s.uuid for s in (await self.client.list(KINDS.server)).items}

    async def exists(self, kind: Kind[Any], name: str) -> bool:
        try:
            await self.client.get(kind, name)
        except NotFound:
            return False
        return True

    async def exists_lease(self, uuid: str) -> bool:
        """Whether the Lease of the machine with this canonical UUID exists."""
        leases = (await self.client.list(LEASE, NS)).items
        return f"system-{uuid}" in {lease.metadata.name for lease in leases}

    async def events(self) -> list[tuple[str, str]]:
        """(name of the object, reason) of every Event."""
        await asyncio.sleep(1)
        return [(e.involved_object.name, e.reason) for e in (await self.client.list(EVENT)).items]

    async def operate(self, kind: Kind[Any], name: str, operation: str) -> None:
        """Set the operation annotation."""
        annotations = {KINDS.key("operation"): operation}
        await self.user.patch(kind, name, {"metadata": {"annotations": annotations}})


async def soon(check: Callable[[], Any], *, within: float = 10.0) -> Any:
    """Wait in virtual time until an awaitable check gives something true; returns that."""
    loop = asyncio.get_running_loop()
    end = loop.time() + within
    while not (found := await check()):
        assert loop.time() < end, "it did not happen in time"
        await asyncio.sleep(0.1)
    return found


def condition(obj: Any, type: str = "Ready") -> Condition:
    """The condition of this type."""
    found = find(obj.status.conditions, type)
    assert isinstance(found, Condition), f"no condition {type}"
    return found


def ready(obj: Any) -> tuple[str, str]:
    """Status and reason of the Ready condition."""
    found = condition(obj)
    return found.status, found.reason


@asynccontextmanager
async def rack(*, started: bool = True, **settings: Any) -> AsyncIterator[Rack]:
    """A rack under the test's virtual clock. Settings are those of EndpointSettings and BMCSettings by name."""
    clock = LoopClock(START)
    api = EmbeddedAPI(None, clock, rng=random.Random(0))
    await api.start()
    await api.install_crds(crds(KINDS))
    made = Rack(api, clock)
    for name, value in settings.items():
        for holder in ("endpoint_settings", "bmc_settings"):
            held = getattr(made, holder)
            if hasattr(held, name):
                setattr(made, holder, replace(held, **{name: value}))
    await made.client.create(NAMESPACE, {"metadata": {"name": NS}})
    if started:
        await made.start()
    try:
        yield made
    finally:
        await made.runtime.stop(grace=0.0)
        await api.stop()
