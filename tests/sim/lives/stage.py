"""Two physical machines in virtual time under hypothesis, each claim with an Ignition of its own.

The host name in the Ignition is the name of its Secret, so that `metal.sim.invariants.physical` knows whose system runs
on a machine and whose data is on a drive.
"""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from metal.api.core import SECRET
from metal.config.options import Sanitization
from metal.kube.client.errors import ApiError
from metal.sim.history import MachineEvent
from metal.sim.invariants import check_bounded, check_deadlines, check_load, check_physical, check_secrets
from metal.sim.machine.machine import Machine
from tests.chain.shakyplane import ShakyPlane
from tests.sim.plane import CONFIG, KINDS, OPTIONS
from tests.sim.stage import Stage

SECONDS = st.sampled_from([0.5, 20, 120, 600])
NAMES = st.sampled_from(["c1", "c1", "c2"])
WHICH = st.sampled_from([0, 0, 1])


class Fleet(Stage):
    """A control plane with two machines, of which one or both may have a tenant."""

    def __init__(self) -> None:
        super().__init__()
        self.number = 0

    @initialize(seed=st.integers(0, 7), tenants=st.sampled_from([0, 1, 1, 2]), seconds=SECONDS)
    def announce(self, seed: int, tenants: int, seconds: float) -> None:
        """Start a control plane and two BMCs, discover the machines, and give some to tenants."""
        config = replace(CONFIG, sanitization=Sanitization(policy="Clear"))
        self.world = ShakyPlane(2, seed, config, OPTIONS)
        self.run(self.world.start())
        self.started = True
        self.do(self._begin_with(tenants), seconds)

    async def _begin_with(self, tenants: int) -> None:
        await self.world.announce()
        await self.world.until_available(2)
        for number in range(tenants):
            await self.add_claim(f"c{number + 1}")
        await self.world.until_true(lambda: len(self.world.tenants()) == tenants, what="the tenants' systems")

    @property
    def machines(self) -> list[Machine]:
        """The machines."""
        return self.world.fleet.machines

    async def add_claim(self, name: str, power: str = "On") -> None:
        """Create a claim with an Ignition of its own."""
        self.number += 1
        secret = f"{name}-{self.number}"
        file = f'{{"path":"/etc/hostname","contents":{{"source":"data:,{secret}"}}}}'
        ignition = f'{{"ignition":{{"version":"3.2.0"}},"storage":{{"files":[{file}]}}}}'
        body = {"metadata": {"name": secret, "namespace": "default"}, "stringData": {"ignition": ignition}}
        await self.world.client.apply(SECRET, body, manager="test")
        spec = {"power": power, "image": "images.sim/demo:latest", "ignitionSecretRef": {"name": secret}}
        claim: dict[str, Any] = {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
        await self.world.client.create(KINDS.claim, claim)

    @rule(name=NAMES, power=st.sampled_from(["On", "On", "Off"]), seconds=SECONDS)
    def claim(self, name: str, power: str, seconds: float) -> None:
        """Create a claim."""
        self.do(self.add_claim(name, power), seconds)

    @rule(name=NAMES, power=st.sampled_from(["On", "Off"]), seconds=SECONDS)
    def change_power(self, name: str, power: str, seconds: float) -> None:
        """Change the power of a claim."""
        self.do(self.world.client.patch(KINDS.claim, name, {"spec": {"power": power}}, "default"), seconds)

    @rule(name=NAMES, seconds=SECONDS)
    def release(self, name: str, seconds: float) -> None:
        """Delete a claim."""
        self.do(self.world.client.delete(KINDS.claim, name, "default"), seconds)

    @rule(seconds=SECONDS)
    def kill_the_manager(self, seconds: float) -> None:
        """The manager is killed without grace and started again."""
        self.do(self.world.restart_manager(), seconds)

    def judge(self) -> None:
        """Machines and drives are judged, not objects: other clients write here what no controller would."""
        history = self.world.fleet.history
        check_physical(history)
        check_bounded(history)
        check_deadlines(history)
        check_load(self.world.busiest())
        check_secrets(history, {secret for machine in self.machines for secret in machine.secrets})

    def _deeds(self) -> list[str]:
        return [str(entry) for entry in self.world.fleet.history if isinstance(entry, MachineEvent)]

    async def try_(self, work: Any) -> None:
        """Do something that the API may refuse."""
        try:
            await work
        except ApiError:
            return
