"""The hardware of a simulated machine as its firmware and its operating system see it.

Firmware, eraser and the reset logic all work on a `Host`: it has the saved state, the injected faults, the power state
with its history, and the connection to the network. It runs one activity at a time (a power change or a boot); a new
one replaces the former.
"""

import asyncio
import random
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from metal.kube.meta.clock import Clock, system_clock
from metal.sim.faults import Faults
from metal.sim.history import History
from metal.sim.machine.hardware import Disk, hardware
from metal.sim.machine.identity import Identity, with_new_mainboard
from metal.sim.machine.network import AnswerLost, Network, Reply, Unreachable
from metal.sim.machine.state import State
from metal.sim.options import Carrier, Options

_BIOS_OF_CARRIERS = {
    Carrier.HTTP_DEV1_URI: {"HttpDev1EnDis": "Disabled", "HttpDev1Uri": ""},
    Carrier.URL_BOOT_FILE: {"UrlBootFile": ""},
}
Lease = Callable[[str, str], Awaitable[None]]
"""Reports that DHCP gave an IP address to a MAC address."""


@dataclass(frozen=True)
class Site:
    """Settings and services that all machines of a fleet share."""

    options: Options
    network: Network
    boot_url: str
    """Base URL of the boot server, as DHCP offers it."""
    lease: Lease
    history: History
    clock: Clock = system_clock
    changed: Callable[[], None] = lambda: None
    """Called after each change of a machine that should be saved."""


class Host:
    """The hardware of one machine, its power state and its connection to the network.

    Times come from the event loop, randomness from `rng`: the same seed gives the same machine.
    """

    def __init__(self, identity: Identity, site: Site, rng: random.Random, state: State | None = None) -> None:
        self.identity, self.site, self.state = identity, site, state or State()
        self.hardware = hardware(identity, rng)
        self.faults = Faults()
        self.rng = rng
        self.secrets: set[str] = set()
        """Every token the machine received, for tests that search for leaked secrets."""
        self.neighbour = str(uuid.UUID(int=uuid.UUID(identity.uuid).int ^ 1))
        """UUID of another machine; of a non-existent one unless the fleet sets it."""
        self.changes = 0
        """Number of changes that should be saved."""
        self.carriers = site.options.carriers[identity.number % len(site.options.carriers)]
        """What its BMC offers."""
        self._medium_at = float("-inf")
        self.on_power: list[Callable[[str], None]] = []
        """Called with each new power state."""
        self._activity: asyncio.Task[None] | None = None
        self.claimed_power = ""
        """Power state that the last reset asked for; reported with the fault lies_power."""
        self._answered: set[tuple[str, str]] = set()
        self._power_seen = [(float("-inf"), self.state.power)]

    def __repr__(self) -> str:
        running = self.state.os or "no OS"
        return f"<{type(self).__name__} {self.identity.name} {self.state.power} {running} {self.faults!r}>"

    @property
    def reported_power(self) -> str:
        """Power state as the BMC reports it; an outdated one with the fault stale_power."""
        if self.faults.lies_power and self.claimed_power:
            return self.claimed_power
        if not self.faults.stale_power:
            return self.state.power
        then = asyncio.get_running_loop().time() - self.site.options.stale
        return next((state for at, state in reversed(self._power_seen) if at <= then), self._power_seen[0][1])

    @property
    def drives(self) -> tuple[Disk, ...]:
        """What an operating system sees of the drives."""
        return self.hardware.disks[1:] if self.faults.missing_drive else self.hardware.disks

    def replace_mainboard(self, *, keep_serial: bool = False) -> None:
        """Replace the mainboard: the machine loses power, and has another UUID; drives and their content stay.

        The serial number changes, too, unless the technician writes the old one into the new board (`keep_serial`).
        The history has the event `mainboard` with `becomes`, the new UUID, so that invariants follow the machine.
        """
        self.lose_power()
        fresh = with_new_mainboard(self.identity, keep_serial=keep_serial)
        self.note("mainboard", becomes=fresh.uuid)
        self.identity = fresh

    def swap_drives(self, other: "Host", *, only_first: bool = False) -> None:
        """Exchange all drives with another machine, or the first, from which it boots. Both lose power first.

        What is on the drives moves with them. The history has the event `drives` with the serial numbers for both.
        """
        for machine in (self, other):
            machine.lose_power()
        mine, theirs = self.hardware.disks, other.hardware.disks
        if only_first:
            mine, theirs = (mine[0], *theirs[1:]), (theirs[0], *mine[1:])
        self.hardware, other.hardware = replace(self.hardware, disks=theirs), replace(other.hardware, disks=mine)
        self.state.disk, other.state.disk = other.state.disk, self.state.disk
        for machine in (self, other):
            machine.note("drives", serials=[disk.serial for disk in machine.hardware.disks])

    @property
    def has_medium(self) -> bool:
        """Whether the BMC shows the virtual medium as inserted."""
        return bool(self.state.medium) and asyncio.get_running_loop().time() >= self._medium_at

    @property
    def bios_attributes(self) -> dict[str, str]:
        """The BIOS attributes in effect, with those of its carriers."""
        carried = [given for carrier, given in _BIOS_OF_CARRIERS.items() if carrier in self.carriers]
        return {name: value for given in carried for name, value in given.items()} | self.state.bios.attributes

    @property
    def http_url(self) -> str:
        """The URL that the firmware has for UEFI HTTP boot: from the BMC, or from a BIOS attribute in effect."""
        attributes = self.bios_attributes
        if Carrier.HTTP_BOOT_URI in self.carriers:
            return self.state.override.http_boot_uri
        if Carrier.HTTP_DEV1_URI in self.carriers and attributes.get("HttpDev1EnDis") == "Enabled":
            return attributes["HttpDev1Uri"]
        return attributes.get("UrlBootFile", "")

    def insert_medium(self, url: str) -> None:
        """Insert a virtual medium, which the BMC shows after Options.medium seconds."""
        self.state.medium = url
        self._medium_at = asyncio.get_running_loop().time() + self.site.options.medium
        self.note("medium", inserted=True)

    def eject_medium(self) -> None:
        """Eject the virtual medium, unless the fault keeps_medium is on."""
        if not self.faults.keeps_medium:
            self.state.medium = ""
        self.note("medium", inserted=bool(self.state.medium))

    def lose_power(self) -> None:
        """Lose power at once, as when the power cord is pulled."""
        self.lose_memory()
        self.set_power("Off")
        if self._activity is not None:
            self._activity.cancel()

    def note(self, what: str, **details: object) -> None:
        """Write to the history."""
        self.site.history.happened(self.identity.uuid, what, **details)
        self.changed()

    def changed(self) -> None:
        """Record a change that should be saved."""
        self.changes += 1
        self.site.changed()

    async def ask(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes = b"", cut: bool = False,
        source: str = "",
    ) -> Reply:  # fmt: skip
        """Send one HTTP request, from the host's address unless another one is given. `cut` blocks it.

        Raises: Unreachable, AnswerLost.
        """
        if cut:
            raise Unreachable("the network is interrupted")
        source = source or self.identity.host_ip
        reply = await self.site.network.request(method, url, headers=headers, body=body, source_ip=source)
        if self.faults.loses_answers and (method, url) not in self._answered:
            self._answered.add((method, url))
            raise AnswerLost(reply[0])
        return reply

    async def pause(self, seconds: float) -> None:
        """Sleep for a time with jitter."""
        jitter = self.site.options.jitter
        await asyncio.sleep(seconds * self.rng.uniform(1 - jitter, 1 + jitter))

    def adopt(self, state: State | None) -> None:
        """Take over a saved state; only before `resume`."""
        if state is not None:
            self.state = state
            self._power_seen = [(float("-inf"), state.power)]

    def begin(self, activity: Awaitable[None]) -> None:
        """Start an activity in place of the current one."""
        if self._activity is not None:
            self._activity.cancel()
        self._activity = asyncio.ensure_future(activity)

    async def stop(self) -> None:
        """Stop the current activity; the state remains unchanged."""
        if self._activity is not None:
            self._activity.cancel()
            await asyncio.gather(self._activity, return_exceptions=True)

    def lose_memory(self) -> None:
        """The running system and a network boot end with the power."""
        self.state.os, self.state.netbooting, self.state.boot_url = None, False, ""

    def set_power(self, power: str) -> None:
        """Change the power state and notify."""
        if power == self.state.power:
            return
        self.state.power = power
        now = asyncio.get_running_loop().time()
        oldest = now - self.site.options.stale
        kept = [seen for seen in self._power_seen if seen[0] > oldest]
        self._power_seen = [*([s for s in self._power_seen if s[0] <= oldest][-1:]), *kept, (now, power)]
        self.note("power", state=power)
        for listener in self.on_power:
            listener(power)
