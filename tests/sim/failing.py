"""A plane whose every part can fail, and how a server reaches each step of its life at which a fault comes."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from metal.api.claim import ServerClaim
from metal.apiserver.server import EmbeddedAPI
from metal.apiserver.storage.sqlite import SqliteJournal
from metal.bmc.redfish.pool import RedfishPool
from metal.bmc.shell import Shell, ShellAccess
from metal.config.options import BootOptions, Sanitization, Timeouts
from metal.kube.client.protocol import Client
from metal.sim.bmc.redfish_service import SimBMC
from metal.sim.images.local import LocalImages
from metal.sim.machine.machine import Machine
from metal.sim.machine.network import InProcessNetwork, Reply, Unreachable
from metal.sim.options import Options
from metal.sim.sites.object_history import ObjectHistory, watched
from tests.chain.proxy import Trouble
from tests.chain.shaky import Shaky
from tests.crds import crds
from tests.mutants.stories import discovered, release
from tests.sim.plane import CONFIG, KINDS, OPTIONS, Plane, is_ready

STEPS = {
    "enrolment": "before the BMC gets a lease",
    "inventory": "as the Server exists, before its BMC is read",
    "discovery": "as the machine is switched on for the probe",
    "report": "as the probe has its Ignition",
    "claim": "before a claim is created",
    "boot": "as the machine has the boot script of the claim",
    "tenant": "a minute after the claim's system runs",
    "release": "before the claim is deleted",
    "erasure": "as the drives are being erased",
}
"""A server's life, in order: each step, and when a fault of it comes."""
HURRY = Timeouts(discovery=700.0, claim_boot=700.0)
"""A failed boot is tried again much sooner, and still later than a missing power change is an Error."""
ERASED = {"sanitization": Sanitization()}
"""Where the drives are erased at the end of a claim."""
FIRST_REQUEST = {"boot": BootOptions(minimum_trust="FirstRequest")}
"""Where no leases are reported, and the site accepts whoever asks first."""
ERASING = replace(OPTIONS, erase=60.0, late=400.0)


class Lines(InProcessNetwork):
    """Between machines and services: `away` are base URLs that refuse connections, `ill` those that answer 500."""

    def __init__(self) -> None:
        super().__init__()
        self.away: set[str] = set()
        self.ill: set[str] = set()

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes, source_ip: str, timeout: float = 30.0
    ) -> Reply:
        if any(url.startswith(base) for base in self.away):
            raise Unreachable("connection refused")
        if any(url.startswith(base) for base in self.ill):
            return 500, {}, b""
        return await super().request(method, url, headers=headers, body=body, source_ip=source_ip, timeout=timeout)


Act = Callable[["FailingPlane"], Awaitable[None]]


async def nothing(_: "FailingPlane") -> None:
    """Do nothing."""


class Inline(ThreadPoolExecutor):
    """Does at once what another thread would do: virtual time does not wait for a real disk."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as exc:  # as a thread would hand it over
            done.set_exception(exc)
        return done


class SimShell:
    """The SSH shells of a fleet's BMCs: a restart ends the hanging of the first BMC."""

    def __init__(self, world: "FailingPlane") -> None:
        self._world = world

    async def host_key(self, address: str, port: int = 22) -> str:
        return f"SHA256:{address}"

    async def run(self, access: ShellAccess, command: str) -> None:
        self._world.machine.faults.hangs = False
        self._world.fleet.bmcs[access.address].restart()


class FailingPlane(Plane):
    """A control plane with machines whose every part can fail."""

    def __init__(
        self, n: int, config: dict[str, Any], options: Options, *, shaky: bool = False, folder: Path | None = None
    ) -> None:
        self.folder = folder
        self._tasks: list[asyncio.Future[None]] = []
        self.claimed: Act = nothing
        """What happens as soon as there is a claim."""
        self.before = 0
        """What a fault counted when it began."""
        self.machine_requests = 0
        """Requests to the machine's BMC when a fault began."""
        self.password = ""
        """The password before a fault."""
        self.added: SimBMC
        """A BMC that was added."""
        self.lines = Lines()
        self.registry = LocalImages()
        self.shaky: Shaky | None = None
        self._is_shaky = shaky
        super().__init__(n, 7, replace(CONFIG, **config), options)

    async def add_claim(self, name: str = "c1", **spec: Any) -> ServerClaim:
        made = await super().add_claim(name, **spec)
        await self.claimed(self)
        return made

    def _network(self) -> InProcessNetwork:
        return self.lines

    def _images(self) -> LocalImages:
        return self.registry

    def _shell(self) -> Shell:
        return SimShell(self)

    def _pool(self) -> RedfishPool:
        return RedfishPool(self.fleet.transport_factory, certificate_of=self._certificate)

    async def _certificate(self, address: str, port: int) -> str:
        return self.fleet.bmcs[address].certificate

    def _api(self, seed: int) -> EmbeddedAPI:
        api = EmbeddedAPI(self.folder, self.clock, rng=random.Random(seed))
        self.journal = api.backend.store._journal
        if isinstance(self.journal, SqliteJournal):
            self.journal._thread.shutdown()
            self.journal._thread = Inline()
        return api

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something in the background; `stop` waits for it, and raises what it raised."""
        self._tasks.append(asyncio.ensure_future(work))

    async def stop(self) -> None:
        await asyncio.gather(*self._tasks)
        await super().stop()

    def fill_disk(self) -> None:
        """Fill the disk of the API: SQLite itself refuses each insert."""
        self._sql(
            "CREATE TABLE ballast (x)",
            "CREATE TEMP TRIGGER full BEFORE INSERT ON main.objects BEGIN INSERT INTO ballast "
            "VALUES (zeroblob(1000000)); END",
            "PRAGMA max_page_count = 1",
        )

    def empty_disk(self) -> None:
        """Free the disk of the API."""
        self._sql("PRAGMA max_page_count = 1000000", "DROP TRIGGER full", "DROP TABLE ballast")

    def _sql(self, *statements: str) -> None:
        assert isinstance(self.journal, SqliteJournal)
        assert self.journal._db is not None
        for statement in statements:
            self.journal._db.execute(statement)

    async def restart_all(self) -> None:
        """Kill the process of API and manager; another one starts from the disk."""
        self.network.unmount_all()
        await self.manager.stop(grace=0.0)
        await self.objects.stop()
        await self.api.stop()
        self.seed += 1
        self.api = self._api(self.seed)
        self.client = self.api.client()
        await self.api.start()
        await self.api.install_crds(crds(self.kinds))
        self.objects = ObjectHistory(self.client, self.fleet.history, watched(self.kinds))
        await self.objects.start()
        self.manager = self._manager(self.seed)
        await self.start_manager()
        await self.announce()

    def manager_client(self) -> Client:
        if not self._is_shaky:
            return super().manager_client()
        trouble = self.shaky.trouble if self.shaky is not None else Trouble()
        self.shaky = Shaky(self.api.client(), random.Random(self.seed))
        self.shaky.trouble = trouble
        return self.shaky

    @property
    def machine(self) -> Machine:
        """The first one: the one that fails."""
        return self.fleet.machines[0]


def _first(world: Plane) -> Machine:
    """The machine that fails."""
    return world.fleet.machines[0]


async def reach(world: Plane, step: str) -> None:
    """Wait for the moment at which a fault of this step comes."""
    if step in ("inventory", "discovery", "report"):
        await world.announce()
        await _soon(world, _MOMENTS[step])
    elif step in ("claim", "boot"):
        await discovered(world)
        if step == "boot":
            await claim(world)
            await _soon(world, _MOMENTS[step])
    elif step != "enrolment":
        await discovered(world)
        await claim(world)
        await world.until_claim(is_ready)
        await world.until_true(lambda: _first(world) in world.tenants(), what="the tenant's system")
        await asyncio.sleep(60)
        if step == "erasure":
            await release(world)
            await _soon(world, _MOMENTS[step])


async def claim(world: Plane) -> None:
    """Create the claim c1, for the machine that fails where there are several."""
    named = await world.server_of(_first(world)) if len(world.fleet.machines) > 1 else None
    spec: dict[str, Any] = {} if named is None else {"serverRef": {"name": named.metadata.name}}
    await world.add_claim(**spec)


async def go_on(world: Plane, step: str) -> None:
    """What users do next, with the fault present."""
    if step == "enrolment":
        await world.announce()
    elif step == "claim":
        await claim(world)
    elif step == "release":
        await release(world)


Moment = Callable[[Plane], Awaitable[bool]]


async def _is_listed(world: Plane) -> bool:
    return bool(await world.servers())


async def _is_starting(world: Plane) -> bool:
    return _first(world).state.power == "PoweringOn"


async def _has_ignition(world: Plane) -> bool:
    return await _phase(world) == "IgnitionServed"


async def _has_script(world: Plane) -> bool:
    return await _phase(world) == "ScriptServed"


async def _erases(world: Plane) -> bool:
    """The registry has allowed the erasure."""
    machine = _first(world)
    reports = [entry.details for entry in world.fleet.history.of(machine.identity.uuid, "report")]
    system = machine.state.os
    return system is not None and system.kind == "sanitizer" and bool(reports) and reports[-1]["status"] == 200


async def _phase(world: Plane) -> str:
    server = await world.server_of(_first(world))
    window = server.status.boot_window if server is not None else None
    return window.phase if window is not None else ""


_MOMENTS: dict[str, Moment] = {
    "inventory": _is_listed, "discovery": _is_starting, "report": _has_ignition, "boot": _has_script,
    "erasure": _erases,
}  # fmt: skip


async def _soon(world: Plane, moment: Moment) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + 600
    while not await moment(world):
        assert loop.time() < end, f"not within 600 s: {moment.__name__}"
        await asyncio.sleep(0.1)


async def retry(world: FailingPlane, whom: str) -> None:
    """An administrator has removed the fault and asks for another try."""
    body = {"metadata": {"annotations": {KINDS.key("operation"): "retry"}}}
    kind = KINDS.server if whom == "server" else KINDS.bmc
    for one in (await world.client.list(kind)).items:
        await world.client.patch(kind, one.metadata.name, body)
