"""A simulated machine: power that takes time, and what firmware and operating system do once it is there."""

import asyncio
import random
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from metal.kube.meta.clock import Clock, system_clock
from metal.sim.faults import Faults
from metal.sim.history import History
from metal.sim.machine.boot import Firmware
from metal.sim.machine.hardware import Disk, hardware
from metal.sim.machine.identity import Identity
from metal.sim.machine.network import AnswerLost, Network, Reply, Unreachable
from metal.sim.machine.state import BIOS_DEFAULTS, State
from metal.sim.options import Options

RESETS = (
    "On", "ForceOn", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "PowerCycle",
    "PushPowerButton", "Nmi",
)  # fmt: skip

Lease = Callable[[str, str], Awaitable[None]]
"""Tells whoever listens to the DHCP server that a MAC address got an IP address."""


class Busy(Exception):
    """The reset is not possible in the present power state."""


@dataclass(frozen=True)
class Site:
    """What all machines of a fleet share."""

    options: Options
    network: Network
    boot_url: str
    """Base URL of the boot server, as DHCP would hand it out."""
    lease: Lease
    history: History
    clock: Clock = system_clock
    changed: Callable[[], None] = lambda: None
    """Called whenever something about a machine is worth saving."""


class Machine:
    """One machine. `reset` is what its BMC does to it; everything else it does by itself.

    Times come from the event loop, chance from `rng`: the same seed gives the same machine.
    """

    def __init__(self, identity: Identity, site: Site, rng: random.Random, state: State | None = None) -> None:
        self.identity, self.site, self.state = identity, site, state or State()
        self.hardware = hardware(identity, rng)
        self.faults = Faults()
        self.rng = rng
        self.secrets: set[str] = set()
        """Every token the machine was given, for a test to search for."""
        self.neighbour = str(uuid.UUID(int=uuid.UUID(identity.uuid).int ^ 1))
        """UUID of another machine: of one that is nowhere, unless the fleet says which."""
        self.changes = 0
        """Counts what is worth saving."""
        self.on_power: list[Callable[[str], None]] = []
        """Called with each new power state."""
        self._firmware = Firmware(self)
        self._task: asyncio.Task[None] | None = None
        self._claimed = ""
        self._answered: set[tuple[str, str]] = set()
        self._power_seen = [(float("-inf"), self.state.power)]

    def __repr__(self) -> str:
        return f"<Machine {self.identity.name} {self.state.power} {self.state.os or 'no OS'} {self.faults!r}>"

    @property
    def reported_power(self) -> str:
        """Power state as the BMC tells it: an old one with the fault stale_power."""
        if self.faults.lies_power and self._claimed:
            return self._claimed
        if not self.faults.stale_power:
            return self.state.power
        then = asyncio.get_running_loop().time() - self.site.options.stale
        return next((state for at, state in reversed(self._power_seen) if at <= then), self._power_seen[0][1])

    @property
    def drives(self) -> tuple[Disk, ...]:
        """What an operating system sees of the drives."""
        return self.hardware.disks[1:] if self.faults.missing_drive else self.hardware.disks

    def lose_power(self) -> None:
        """Somebody pulls the plug."""
        self._lose_memory()
        self._set_power("Off")
        if self._task is not None:
            self._task.cancel()

    def note(self, what: str, **details: object) -> None:
        """Write to the history."""
        self.site.history.happened(self.identity.uuid, what, **details)
        self.changed()

    def changed(self) -> None:
        """Something is worth saving."""
        self.changes += 1
        self.site.changed()

    async def ask(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes = b"", cut: bool = False
    ) -> Reply:
        """One request of the machine. `cut`: nothing gets through. Raises Unreachable, AnswerLost."""
        if cut:
            raise Unreachable("the network does not carry it")
        source = self.identity.host_ip
        reply = await self.site.network.request(method, url, headers=headers, body=body, source_ip=source)
        if self.faults.loses_answers and (method, url) not in self._answered:
            self._answered.add((method, url))
            raise AnswerLost(reply[0])
        return reply

    async def pause(self, seconds: float) -> None:
        """Sleep about that long."""
        jitter = self.site.options.jitter
        await asyncio.sleep(seconds * self.rng.uniform(1 - jitter, 1 + jitter))

    def adopt(self, state: State | None) -> None:
        """Be what was saved; only before `resume`."""
        if state is not None:
            self.state = state
            self._power_seen = [(float("-inf"), state.power)]

    def resume(self) -> None:
        """Continue what was going on when the state was saved."""
        if self.state.power == "PoweringOff":
            self._set_power("Off")
        elif self.state.power == "PoweringOn":
            self._begin(self._switch_on())
        elif self.state.power == "On":
            self._begin(self._firmware.resume())

    async def stop(self) -> None:
        """Freeze: nothing more happens, the state stays as it is."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def reset(self, kind: str) -> None:
        """Do what the BMC was asked for; the power state follows later. Raises Busy."""
        self._check(kind)
        self.note("reset", type=kind, power=self.state.power)
        self._claimed = "Off" if kind in ("ForceOff", "GracefulShutdown") else "On"
        if not (self.faults.lies_power or self.faults.ignores_reset):
            self._act(kind)

    def press_the_button(self) -> None:
        """Somebody stands before the machine and switches it on."""
        self._on()

    def _act(self, kind: str) -> None:
        if kind in ("On", "ForceOn"):
            self._on()
        elif kind == "ForceOff":
            self._off()
        elif kind == "GracefulShutdown":
            self._shut_down()
        elif kind == "PushPowerButton":
            self._on() if self.state.power == "Off" else self._shut_down()
        elif kind != "Nmi":
            self._begin(self._restart(graceful=kind == "GracefulRestart"))

    def _check(self, kind: str) -> None:
        power = self.state.power
        if power == "PoweringOff" and kind not in ("ForceOff", "GracefulShutdown"):
            raise Busy(f"the system is switching off; {kind} is not possible now")
        if power == "PoweringOn" and kind not in ("On", "ForceOn", "ForceOff"):
            raise Busy(f"the system is switching on; {kind} is not possible now")
        if power == "Off" and kind in ("GracefulRestart", "ForceRestart", "PowerCycle", "Nmi"):
            raise Busy(f"the system is off; {kind} is not possible")

    def _on(self) -> None:
        if self.state.power == "Off":
            self._begin(self._switch_on())

    def _off(self) -> None:
        if self.state.power != "Off":
            self._begin(self._switch_off(self.site.options.power))

    def _shut_down(self) -> None:
        if self.state.power == "On" and not self.faults.ignores_graceful:
            running = self.state.os is not None
            self._begin(self._switch_off(self.site.options.shutdown if running else 0.0))

    def _begin(self, work: Awaitable[None]) -> None:
        if self._task is not None:
            self._task.cancel()
        self._task = asyncio.ensure_future(work)

    async def _switch_on(self) -> None:
        self._set_power("PoweringOn")
        await self.pause(self.site.options.power)
        self._set_power("On")
        self._start_bios()
        await self._firmware.boot()

    def _start_bios(self) -> None:
        """What the BIOS was asked for happens now."""
        bios = self.state.bios
        if self.faults.keeps_bios or not (bios.reset_pending or bios.coming):
            return
        if bios.coming.get("Tpm2Operation") == "Clear":
            bios.tpm = ""
        settled = {**bios.attributes, **bios.coming, "Tpm2Operation": "NoAction"}
        bios.attributes = dict(BIOS_DEFAULTS) if bios.reset_pending else settled
        self.note("bios", reset=bios.reset_pending, changed=sorted(bios.coming))
        bios.reset_pending, bios.coming = False, {}

    async def _switch_off(self, delay: float) -> None:
        self._set_power("PoweringOff")
        await self.pause(delay)
        self._lose_memory()
        self._set_power("Off")

    async def _restart(self, *, graceful: bool) -> None:
        if graceful and self.faults.ignores_graceful:
            return
        await self._switch_off(self.site.options.shutdown if graceful else self.site.options.power)
        await self._switch_on()

    def _lose_memory(self) -> None:
        self.state.os, self.state.netbooting = None, False

    def _set_power(self, power: str) -> None:
        if power == self.state.power:
            return
        self.state.power = power
        now = asyncio.get_running_loop().time()
        oldest = now - self.site.options.stale
        kept = [seen for seen in self._power_seen if seen[0] > oldest]
        self._power_seen = [*([s for s in self._power_seen if s[0] <= oldest][-1:]), *kept, (now, power)]
        self.note("power", state=power)
        for tell in self.on_power:
            tell(power)
