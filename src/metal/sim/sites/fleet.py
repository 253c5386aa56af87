"""A fleet of simulated machines with their BMCs, in process or over sockets. The same seed gives the same fleet."""

import asyncio
import random
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec
import structlog

from metal.api.kinds import Kinds
from metal.bmc.pool import BMCEndpoint
from metal.kube.client.errors import ApiError
from metal.kube.client.protocol import Client
from metal.kube.controller.tasks import Tasks
from metal.kube.meta.clock import Clock, system_clock
from metal.redfish.transport import Transport
from metal.sim.bmc import tls
from metal.sim.bmc.http import BMCServer
from metal.sim.bmc.in_process import transport_factory
from metal.sim.bmc.redfish_service import SimBMC
from metal.sim.history import History
from metal.sim.machine import store
from metal.sim.machine.host import Site
from metal.sim.machine.identity import BMC_OUI, MOST, board, identity
from metal.sim.machine.machine import Machine
from metal.sim.machine.network import Network, SocketNetwork
from metal.sim.options import Options
from metal.sim.sites.leases import Leases

_log = structlog.get_logger(__name__)
RENEWAL = 60.0
"""Seconds between two renewals of the BMCs' leases, and thus until a deleted Endpoint is created again."""


@dataclass
class FleetSettings:
    """The services that a fleet uses."""

    boot_url: str = "http://127.0.0.1:8082"
    """Base URL of the boot server, as DHCP offers it."""
    network: Network = field(default_factory=SocketNetwork)
    """Network over which machines reach it."""
    clock: Clock = system_clock
    """Wall clock of the site."""
    steady: Clock | None = None
    """Clock of the history, which is never set; None for `clock`."""
    changed: Callable[[], None] = lambda: None
    """Called after each change of a machine that should be saved."""
    offset: int = 0
    """Number of the first machine."""
    history_limit: int | None = 100_000
    """Most entries kept in the history."""


class Fleet:
    """N machines. Use `transport_factory` in process, or `serve` over sockets; then `start`, and `stop` at the end."""

    def __init__(
        self, n: int, *, seed: int = 0, options: Options | None = None, settings: FleetSettings | None = None
    ) -> None:
        self.options, self.settings = options or Options(), settings or FleetSettings()
        self.history = History(self.settings.clock, steady=self.settings.steady, limit=self.settings.history_limit)
        site = Site(
            self.options, self.settings.network, self.settings.boot_url, self._lease, self.history,
            self.settings.clock, self.settings.changed,
        )  # fmt: skip
        numbers = range(self.settings.offset, self.settings.offset + n)
        self.machines = [Machine(identity(k, seed), site, random.Random(f"{seed}/{k}")) for k in numbers]
        for machine in self.machines[max(0, n - self.options.arm64) :]:
            machine.hardware = machine.hardware.with_arm()
        for machine, other in zip(self.machines, self.machines[1:], strict=False):
            machine.neighbour, other.neighbour = other.identity.uuid, machine.identity.uuid
        self.bmcs: dict[str, SimBMC] = {machine.identity.bmc_ip: SimBMC(machine) for machine in self.machines}
        self._seed, self._boards = seed, MOST
        self.ca_pem = ""
        self._tls: ssl.SSLContext | None = None
        self._leases: Leases | None = None
        self.tasks = Tasks("sim")
        """Background tasks, of which none may end before `stop`."""
        self._server: BMCServer | None = None

    def __repr__(self) -> str:
        return f"<Fleet {len(self.machines)} machines {self.options!r}>"

    @property
    def transport_factory(self) -> Callable[[BMCEndpoint], Transport]:
        """For RedfishPool: transports to these BMCs without sockets."""
        return transport_factory(self.bmcs)

    @property
    def requests(self) -> int:
        """Requests to all BMCs so far."""
        return sum(bmc.requests.total() for bmc in self.bmcs.values())

    def mac_prefixes_yaml(self) -> str:
        """The entry for these BMCs in a control plane's MAC prefix file."""
        options = self.options
        return (
            "macPrefixes:\n"
            f'  - macPrefix: "{BMC_OUI}"\n'
            "    manufacturer: Simulated\n"
            "    protocol: Redfish\n"
            f"    protocolScheme: {options.scheme}\n"
            f"    port: {options.port}\n"
            "    type: bmc\n"
            "    defaultCredentials:\n"
            f"      - username: {msgspec.json.encode(options.username).decode()}\n"
            f"        password: {msgspec.json.encode(options.password).decode()}\n"
        )

    def inject(self, fault: str, count: int) -> None:
        """Switch a fault on for the last `count` machines that have none yet. Raises ValueError."""
        healthy = [machine for machine in self.machines if not machine.faults.active]
        if count > len(healthy):
            raise ValueError(f"{fault}={count}: only {len(healthy)} machines are without a fault")
        for machine in healthy[len(healthy) - count :]:
            machine.faults.switch(fault)

    def add_bmc(self, machine: Machine) -> SimBMC:
        """One more BMC, at an address of its own, that shows this machine; `announce` gives it a lease.

        It has its own UUID, MAC address and sessions; its requests and faults are those of the machine. Not over
        sockets after `serve`.
        """
        self._boards -= 1
        made = SimBMC(machine, board(self._boards, self._seed))
        self.bmcs[made.board.ip] = made
        return made

    def remove_bmc(self, bmc: SimBMC) -> None:
        """Unplug a BMC: connections to its address fail from now on, and its lease is not renewed."""
        bmc.unplugged = True
        self.bmcs.pop(bmc.board.ip, None)

    def replace_mainboard(self, machine: Machine, *, keep_serial: bool = False, keep_bmc: bool = True) -> SimBMC:
        """Replace a mainboard (`Host.replace_mainboard`), and with it the BMC unless `keep_bmc`; returns the BMC.

        A new BMC has another UUID, MAC address and address; those that showed the machine are gone.
        """
        shown_by = [bmc for bmc in self.bmcs.values() if bmc.machine is machine]
        machine.replace_mainboard(keep_serial=keep_serial)
        if keep_bmc and shown_by:
            return shown_by[0]
        for bmc in shown_by:
            self.remove_bmc(bmc)
        return self.add_bmc(machine)

    def save(self, path: Path) -> None:
        """Save the state of all machines. Raises OSError."""
        store.save(path, self.machines)

    def load(self, path: Path) -> None:
        """Load the state of all machines; call before `start`. Raises store.Unreadable."""
        store.load(path, self.machines)

    def certify(self, file: Path | None = None) -> str:
        """Create the BMCs' certificate, or take it from the file that keeps it; returns that of its CA (PEM).

        Raises OSError.
        """
        now = self.settings.clock()
        made = tls.context(self.bmcs, now) if file is None else tls.kept_context(file, self.bmcs, now)
        self._tls, self.ca_pem = made
        return self.ca_pem

    async def serve(self) -> None:
        """Listen for Redfish on every BMC's address. Raises OSError."""
        if self.options.scheme == "https" and self._tls is None:
            self.certify()
        self._server = BMCServer(self.bmcs, self.options.port, tls=self._tls)
        await self._server.start()

    async def start(self) -> None:
        """Let machines continue their activities."""
        for machine in self.machines:
            machine.resume()

    async def announce(self, client: Client, kinds: Kinds) -> None:
        """Report the BMCs' leases now and at intervals; hosts get theirs when they boot. Raises ApiError."""
        self._leases = Leases(client, kinds)
        await self._leases.announce(self._bmc_leases())
        await self.tasks.stop(grace=0.0)
        self.tasks.expect_life()
        self.tasks.spawn("leases", partial(self._renew, self._leases))

    async def stop(self) -> None:
        """Stop all machines, keeping their state, and close the sockets."""
        await self.tasks.stop(grace=0.0)
        for machine in self.machines:
            await machine.stop()
        for bmc in self.bmcs.values():
            await bmc.events.stop()
        if self._server is not None:
            await self._server.stop()
        await self.settings.network.aclose()

    async def _lease(self, mac: str, ip: str) -> None:
        if self._leases is not None:
            await self._leases.give(mac, ip)

    def _bmc_leases(self) -> list[tuple[str, str]]:
        return [(bmc.board.mac, bmc.board.ip) for bmc in self.bmcs.values()]

    async def _renew(self, leases: Leases) -> None:
        while True:
            await asyncio.sleep(RENEWAL)
            try:
                await leases.announce(self._bmc_leases())
            except ApiError as exc:
                _log.warning("leases not renewed", error=str(exc))
