"""One server, up to three claims, a maintenance and every fault, in any order that hypothesis thinks of.

The invariants are looked at after every step; in the end the faults stop, and everything comes to rest.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

import looptime
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from metal.kube.errors import ApiError, NotFound
from tests.mutants.stories import at_rest, maintain
from tests.sim.plane import KINDS, Plane, plane

pytestmark = pytest.mark.life

CLAIMS = st.sampled_from(["c1", "c2", "c3"])
POWER = st.sampled_from(["On", "On", "Off"])
SECONDS = st.sampled_from([0.5, 5, 30, 200])
FAULTS = st.sampled_from([
    "dead", "hangs", "http_5xx", "ignores_graceful", "ignores_once", "never_reports", "slow", "dies_after_script",
    "second_fetch", "drops_override", "ignores_reset", "boots_disk", "stale_power", "wrong_password", "reports_late",
])  # fmt: skip


class Life(RuleBasedStateMachine):
    """A plane in virtual time, whose loop runs while a rule does."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = looptime.new_event_loop(start=0)
        self.context: AbstractAsyncContextManager[Plane] = plane(1, seed=3)
        self.world = self.run(self.context.__aenter__())
        self.maintained = False

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    async def _then(self, work: Coroutine[Any, Any, Any], seconds: float) -> None:
        """What is refused is refused; whatever was done, time passes."""
        with suppress(ApiError):
            await work
        await asyncio.sleep(seconds)

    @initialize(seconds=SECONDS)
    def announce(self, seconds: float) -> None:
        self.run(self._then(self.world.announce(), seconds))

    @rule(name=CLAIMS, power=POWER, seconds=SECONDS)
    def claim(self, name: str, power: str, seconds: float) -> None:
        self.run(self._then(self.world.add_claim(name, power=power), seconds))

    @rule(name=CLAIMS, seconds=SECONDS)
    def release(self, name: str, seconds: float) -> None:
        self.run(self._then(self.world.client.delete(KINDS.claim, name, "default"), seconds))

    @rule(name=CLAIMS, field=st.sampled_from(["power", "image"]), power=POWER, seconds=SECONDS)
    def change(self, name: str, field: str, power: str, seconds: float) -> None:
        value = power if field == "power" else "images.sim/probe:latest"
        body = {"spec": {field: value}}
        self.run(self._then(self.world.client.patch(KINDS.claim, name, body, "default"), seconds))

    @rule(name=CLAIMS, number=st.sampled_from([0, 1, 2, 3]), seconds=SECONDS)
    def ask_for_another_boot(self, name: str, number: int, seconds: float) -> None:
        body = {"spec": {"bootGeneration": number}}
        self.run(self._then(self.world.client.patch(KINDS.claim, name, body, "default"), seconds))

    @rule(fault=FAULTS, seconds=SECONDS)
    def break_something(self, fault: str, seconds: float) -> None:
        self.world.fleet.machines[0].faults.switch(fault)
        self.run(asyncio.sleep(seconds))

    @precondition(lambda self: bool(self.world.fleet.machines[0].faults.active))
    @rule(seconds=SECONDS)
    def mend(self, seconds: float) -> None:
        for fault in self.world.fleet.machines[0].faults.active:
            self.world.fleet.machines[0].faults.switch(fault, False)
        self.run(asyncio.sleep(seconds))

    @rule(seconds=SECONDS)
    def lose_power(self, seconds: float) -> None:
        self.run(self._then(self._lose_power(), seconds))

    @rule(seconds=SECONDS)
    def kill_the_manager(self, seconds: float) -> None:
        self.run(self._then(self.world.restart_manager(), seconds))

    @rule(seconds=SECONDS)
    def maintain(self, seconds: float) -> None:
        self.maintained = not self.maintained
        self.run(self._then(self._maintenance(self.maintained), seconds))

    @rule(seconds=SECONDS)
    def retry(self, seconds: float) -> None:
        self.run(self._then(self._retry(), seconds))

    @invariant()
    def nothing_is_violated(self) -> None:
        self.world.check()

    async def _lose_power(self) -> None:
        self.world.fleet.machines[0].lose_power()

    async def _maintenance(self, on: bool) -> None:
        await maintain(self.world, self.world.fleet.machines[0], on=on)

    async def _retry(self) -> None:
        body = {"metadata": {"annotations": {KINDS.key("operation"): "retry"}}}
        for server in await self.world.servers():
            if server.status.state == "Error":
                with suppress(NotFound):
                    await self.world.client.patch(KINDS.server, server.metadata.name, body)

    def teardown(self) -> None:
        try:
            self.run(self._settle())
        finally:
            self.run(self.context.__aexit__(None, None, None))
            self.run(self.loop.shutdown_asyncgens())
            self.loop.close()

    async def _settle(self) -> None:
        """The faults stop, and a person does what Error asks for."""
        machine = self.world.fleet.machines[0]
        for fault in machine.faults.active:
            machine.faults.switch(fault, False)
        with suppress(AssertionError):
            await self._maintenance(False)
        for _ in range(4):
            await asyncio.sleep(1500)
            await self._retry()
        await at_rest(self.world)


TestLife = Life.TestCase
TestLife.settings = settings(
    max_examples=3, stateful_step_count=8, deadline=None, suppress_health_check=list(HealthCheck)
)
