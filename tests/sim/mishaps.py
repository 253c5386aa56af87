"""Rules for random faults of a server, its BMC, the manager and the API."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from metal.kube.client.errors import ApiError
from metal.sim.faults import NAMES
from tests.chain.proxy import Trouble
from tests.sim.plane import KINDS
from tests.sim.stage import SECONDS, Stage

UNSEEN = ("lies_power",)
"""Faults that cannot be detected: the BMC of a machine that does nothing reports success."""
FAULTS = st.sampled_from([name for name in NAMES if name not in UNSEEN])
TROUBLES = st.sampled_from([Trouble(share=0.2), Trouble(watch_life=5.0), Trouble(delay=1.0), Trouble(), Trouble()])


class Mishaps(Stage):
    """Rules for faults."""

    @rule(fault=FAULTS, seconds=SECONDS)
    def break_something(self, fault: str, seconds: float) -> None:
        """A fault of the machine or its BMC."""
        self.machine.faults.switch(fault)
        self.do(asyncio.sleep(0), seconds)

    @precondition(lambda self: self.started and bool(self.machine.faults.active))
    @rule(seconds=SECONDS)
    def remove_faults(self, seconds: float) -> None:
        """All faults are removed."""
        for fault in self.machine.faults.active:
            self.machine.faults.switch(fault, False)
        self.do(asyncio.sleep(0), seconds)

    @rule(seconds=SECONDS)
    def lose_power(self, seconds: float) -> None:
        """The machine loses its power for a moment."""
        self.do(_now(self.machine.lose_power), seconds)

    @rule(seconds=SECONDS)
    def press_power_button(self, seconds: float) -> None:
        """The power button of the machine is pressed."""
        self.do(_now(self.machine.press_power_button), seconds)

    @rule(seconds=SECONDS)
    def kill_the_manager(self, seconds: float) -> None:
        """The manager is killed without grace and started until it runs."""
        self.do(self._restart(), seconds)

    async def _restart(self) -> None:
        while True:
            try:
                return await self.world.restart_manager()
            except ApiError:
                await asyncio.sleep(5)

    @rule(away=st.sampled_from([10.0, 60.0]), seconds=SECONDS)
    def lose_the_api(self, away: float, seconds: float) -> None:
        """The API is unreachable for a while, watches are cut, and their versions are forgotten."""
        self.meanwhile(self.world.shaky.crash(away))
        self.do(asyncio.sleep(0), seconds)

    @rule(trouble=TROUBLES, seconds=SECONDS)
    def trouble_the_api(self, trouble: Trouble, seconds: float) -> None:
        """Requests of the manager fail or take long, or watches are cut; or this ends."""
        self.world.shaky.trouble = replace(trouble)
        self.do(asyncio.sleep(0), seconds)

    @rule(every=st.sampled_from([0.3, 2.0]), seconds=SECONDS)
    def meddle(self, every: float, seconds: float) -> None:
        """Another client writes to every server and claim: the manager gets conflicts."""
        self.meanwhile(self._meddle(every, 30))
        self.do(asyncio.sleep(0), seconds)

    async def _meddle(self, every: float, times: int) -> None:
        for number in range(times):
            body = {"metadata": {"annotations": {"example.com/meddled": str(number)}}}
            await self.each_server(body)
            for claim in (await self.world.client.list(KINDS.claim)).items:
                with suppress(ApiError):
                    await self.world.client.patch(KINDS.claim, claim.metadata.name, body, "default")
            await asyncio.sleep(every)


async def _now(act: Callable[[], None]) -> None:
    """Let the machine act in a task of its loop."""
    act()
