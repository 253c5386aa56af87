"""A simulated machine: what its BMC can do to its power, and the power changes that follow.

`reset` checks whether the reset is possible in the present power state, records it, and starts the change; the state
changes after the times in `Options`. Switching on applies pending BIOS settings and then runs the firmware (`boot`).
"""

import random

from metal.sim.machine.boot import Firmware
from metal.sim.machine.host import Host, Site
from metal.sim.machine.identity import Identity
from metal.sim.machine.state import BIOS_DEFAULTS, State

RESETS = (
    "On", "ForceOn", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "PowerCycle",
    "PushPowerButton", "Nmi",
)  # fmt: skip


class Busy(Exception):
    """The reset is not possible in the present power state."""


class Machine(Host):
    """One machine. Its BMC calls `reset`; everything else it does by itself."""

    def __init__(self, identity: Identity, site: Site, rng: random.Random, state: State | None = None) -> None:
        super().__init__(identity, site, rng, state)
        self._firmware = Firmware(self)

    def resume(self) -> None:
        """Continue the activity that was in progress when the state was saved."""
        if self.state.power == "PoweringOff":
            self.set_power("Off")
        elif self.state.power == "PoweringOn":
            self.begin(self._switch_on())
        elif self.state.power == "On":
            self.begin(self._firmware.resume())

    def reset(self, kind: str) -> None:
        """Start a reset; the power state changes later. Raises Busy."""
        self._check(kind)
        self.note("reset", type=kind, power=self.state.power)
        self.claimed_power = "Off" if kind in ("ForceOff", "GracefulShutdown") else "On"
        if not (self.faults.lies_power or self.faults.ignores_reset):
            self._act(kind)

    def press_power_button(self) -> None:
        """Power on by the button on the machine, without the BMC."""
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
            self.begin(self._restart(graceful=kind == "GracefulRestart"))

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
            self.begin(self._switch_on())

    def _off(self) -> None:
        if self.state.power != "Off":
            self.begin(self._switch_off(self.site.options.power))

    def _shut_down(self) -> None:
        if self.state.power == "On" and not self.faults.ignores_graceful:
            running = self.state.os is not None
            self.begin(self._switch_off(self.site.options.shutdown if running else 0.0))

    async def _switch_on(self) -> None:
        self.set_power("PoweringOn")
        await self.pause(self.site.options.power)
        self.set_power("On")
        self._start_bios()
        if not self.faults.keeps_asset_tag:
            self.state.smbios_tag = self.state.asset_tag
        await self._firmware.boot()

    def _start_bios(self) -> None:
        """Apply pending BIOS changes."""
        bios = self.state.bios
        if self.faults.keeps_bios or not (bios.reset_pending or bios.pending):
            return
        if bios.pending.get("Tpm2Operation") == "Clear":
            bios.tpm = ""
        settled = {**bios.attributes, **bios.pending, "Tpm2Operation": "NoAction"}
        bios.attributes = dict(BIOS_DEFAULTS) if bios.reset_pending else settled
        self.note("bios", reset=bios.reset_pending, changed=sorted(bios.pending))
        bios.reset_pending, bios.pending = False, {}

    async def _switch_off(self, delay: float) -> None:
        self.set_power("PoweringOff")
        await self.pause(delay)
        self.lose_memory()
        self.set_power("Off")

    async def _restart(self, *, graceful: bool) -> None:
        if graceful and self.faults.ignores_graceful:
            return
        await self._switch_off(self.site.options.shutdown if graceful else self.site.options.power)
        await self._switch_on()
