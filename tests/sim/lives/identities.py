"""Rules that make several objects describe one machine, or a machine differ from what describes it."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from metal.api.names import ACCEPT_INTERFACES
from metal.sim.bmc.redfish_service import SimBMC
from metal.sim.faults import NAMES
from metal.sim.machine.identity import swapped
from tests.sim.lives.stage import SECONDS, WHICH, Fleet
from tests.sim.plane import KINDS

MOST_BMCS = 4
"""BMCs of all machines."""
FAULTS = st.sampled_from([name for name in ("dead", "http_500", "rejects_writes", "slow") if name in NAMES])


class Identities(Fleet):
    """Rules for BMCs, Servers, mainboards, drives and network interfaces."""

    def __init__(self) -> None:
        super().__init__()
        self.swaps: list[bool] = []
        """The exchanges of drives so far: whether it was the first ones only."""

    @rule(which=WHICH, seconds=SECONDS)
    def show_twice(self, which: int, seconds: float) -> None:
        """Another BMC shows a machine, too."""
        self.do(self._show_twice(which), seconds)

    async def _show_twice(self, which: int) -> None:
        if len(self.world.fleet.bmcs) < MOST_BMCS:
            self.world.fleet.add_bmc(self.machines[which])
            await self.world.announce()

    @rule(which=WHICH, seconds=SECONDS)
    def apply_bmc(self, which: int, seconds: float) -> None:
        """Another BMC object is applied for the same BMC."""
        self.do(self._apply_bmc(which), seconds)

    async def _apply_bmc(self, which: int) -> None:
        found = (await self.world.client.list(KINDS.bmc)).items
        if found:
            spec = msgspec.to_builtins(found[which % len(found)].spec)
            await self.world.client.create(KINDS.bmc, {"metadata": {"name": "again"}, "spec": spec})

    @rule(which=WHICH, flipped=st.booleans(), bmc=WHICH, seconds=SECONDS)
    def apply_server(self, which: int, flipped: bool, bmc: int, seconds: float) -> None:
        """A Server with the UUID of a machine is applied, in either byte order, perhaps with another machine's BMC."""
        self.do(self._apply_server(which, flipped, bmc), seconds)

    async def _apply_server(self, which: int, flipped: bool, bmc: int) -> None:
        uuid = self.machines[which].identity.uuid
        found = (await self.world.client.list(KINDS.bmc)).items
        spec: dict[str, Any] = {"systemUUID": swapped(uuid) if flipped else uuid}
        if found:
            spec["bmcRef"] = {"name": found[bmc % len(found)].metadata.name}
        await self.world.client.create(KINDS.server, {"metadata": {"name": f"twin-{which}"}, "spec": spec})

    @rule(which=WHICH, on=st.booleans(), seconds=SECONDS)
    def flip_uuid(self, which: int, on: bool, seconds: float) -> None:
        """A BMC reports the UUID in the other byte order, or in the former one again."""
        self.machines[which].faults.flips_uuid = on
        self.do(asyncio.sleep(0), seconds)

    @rule(which=WHICH, keep_serial=st.booleans(), keep_bmc=st.booleans(), button=st.booleans(), seconds=SECONDS)
    def replace_mainboard(self, which: int, keep_serial: bool, keep_bmc: bool, button: bool, seconds: float) -> None:
        """A technician replaces a mainboard, and may switch the machine on."""
        self.do(self._replace_mainboard(which, keep_serial, keep_bmc, button), seconds)

    async def _replace_mainboard(self, which: int, keep_serial: bool, keep_bmc: bool, button: bool) -> None:
        machine = self.machines[which]
        self.world.fleet.replace_mainboard(machine, keep_serial=keep_serial, keep_bmc=keep_bmc)
        if button:
            machine.press_power_button()
        await self.world.announce()

    @rule(only_first=st.booleans(), button=st.booleans(), seconds=SECONDS)
    def swap_drives(self, only_first: bool, button: bool, seconds: float) -> None:
        """A technician exchanges the drives of the machines, or one of each, and may switch both on.

        Not during a network boot: drives are read before it, and what is put in afterwards is not seen before it ends.
        """
        if not self.boots():
            self.do(_now(lambda: self._swap_drives(only_first, button)), seconds)

    def boots(self) -> bool:
        """Whether a machine boots from the network, or will when it is switched on."""
        return any(machine.state.override.is_network or machine.state.netbooting for machine in self.machines)

    def _swap_drives(self, only_first: bool, button: bool) -> None:
        self.swaps.append(only_first)
        first, second = self.machines
        first.swap_drives(second, only_first=only_first)
        for machine in self.machines if button else []:
            machine.press_power_button()

    @rule(which=WHICH, on=st.booleans(), seconds=SECONDS)
    def report_foreign_interface(self, which: int, on: bool, seconds: float) -> None:
        """The probe reports an interface that the BMC does not show, or no longer; the machine is discovered again."""
        self.machines[which].faults.foreign_interface = on
        self.do(self._operate(which, "retry"), seconds)

    @rule(which=WHICH, seconds=SECONDS)
    def accept_interfaces(self, which: int, seconds: float) -> None:
        """An administrator accepts the interfaces that the probe reported."""
        self.do(self._operate(which, ACCEPT_INTERFACES), seconds)

    async def _operate(self, which: int, operation: str) -> None:
        server = await self.world.server_of(self.machines[which])
        if server is not None:
            body = {"metadata": {"annotations": {KINDS.key("operation"): operation}}}
            await self.world.client.patch(KINDS.server, server.metadata.name, body)

    @rule(which=WHICH, cut=st.booleans(), seconds=SECONDS)
    def power_outside(self, which: int, cut: bool, seconds: float) -> None:
        """A machine loses its power, or its power button is pressed."""
        machine = self.machines[which]
        self.do(_now(machine.lose_power if cut else machine.press_power_button), seconds)

    @rule(which=WHICH, fault=FAULTS, seconds=SECONDS)
    def break_bmc(self, which: int, fault: str, seconds: float) -> None:
        """A BMC stops answering, fails, or is slow."""
        self.machines[which].faults.switch(fault)
        self.do(asyncio.sleep(0), seconds)

    @precondition(lambda self: self.started and any(machine.faults.active for machine in self.machines))
    @rule(seconds=SECONDS)
    def repair(self, seconds: float) -> None:
        """All faults are removed."""
        for machine in self.machines:
            for fault in machine.faults.active:
                machine.faults.switch(fault, False)
        self.do(asyncio.sleep(0), seconds)

    def bmcs_of(self, which: int) -> list[SimBMC]:
        """The BMCs that show a machine."""
        return [bmc for bmc in self.world.fleet.bmcs.values() if bmc.machine is self.machines[which]]


async def _now(act: Callable[[], None]) -> None:
    """Let a machine act in a task of the loop."""
    act()
