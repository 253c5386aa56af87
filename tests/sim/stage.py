"""One server in virtual time under hypothesis: what is checked after every step, and how everything comes to rest."""

import asyncio
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any

import looptime
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant

from metal.config.options import Sanitization
from metal.controllers.server.tenancy.sanitization_result import ACCEPT
from metal.kube.client.errors import ApiError, NotFound
from metal.sim.machine.machine import Machine
from tests.chain.proxy import Trouble
from tests.chain.shakyplane import ShakyPlane
from tests.mutants.stories import Restless, restless
from tests.sim.plane import CONFIG, KINDS, OPTIONS

SECONDS = st.sampled_from([0.5, 5, 30, 200, 900])
BEGINNINGS = st.sampled_from(["new", "free", "tenant", "tenant", "cleanup", "cleanup"])
PATIENCE = 7200.0
"""Seconds in which everything comes to rest after the faults, with drives erased and boots tried again."""
SLOWEST_LOOK = 400.0
"""Seconds after which a claim that no server fits has been reconciled again and names the reason."""
REST = 300.0
"""Seconds in which nothing may change then."""
BUSIEST = 25.0
"""Requests a second that one server may cost its manager under any fault, on the average of a step."""
START_UP = 600
"""Requests beside them: a manager that starts, or reaches the API again, lists everything."""
WRITES = ("create", "patch", "status", "apply", "delete")


class Stage(RuleBasedStateMachine):
    """A control plane whose event loop runs while a rule does."""

    def __init__(self) -> None:
        super().__init__()
        # time is virtual, so no idle cycle has to wait for anything from outside
        self.loop = looptime.new_event_loop(start=0, noop_cycles=0)
        self.world: ShakyPlane
        self.started = False
        self.background: list[asyncio.Task[None]] = []

    @initialize(
        policy=st.sampled_from(["None", "Clear", "Clear"]), seed=st.integers(0, 7), begins=BEGINNINGS, seconds=SECONDS
    )
    def announce(self, policy: str, seed: int, begins: str, seconds: float) -> None:
        """Start a control plane and a BMC, and reach one of the beginnings."""
        config = replace(CONFIG, sanitization=Sanitization(policy=policy))
        self.world = ShakyPlane(1, seed, config, OPTIONS)
        self.run(self.world.start())
        self.started = True
        self.do(self._begin(begins), seconds)

    async def _begin(self, begins: str) -> None:
        await self.world.announce()
        if begins in ("free", "tenant", "cleanup"):
            await self.world.until_available(1)
        if begins in ("tenant", "cleanup"):
            await self.world.add_claim("c1")
            await self.world.until_true(lambda: bool(self.world.tenants()), what="the tenant's system")
        if begins == "cleanup":
            await self.world.client.delete(KINDS.claim, "c1", "default")

    @property
    def machine(self) -> Machine:
        """The machine."""
        return self.world.fleet.machines[0]

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run the loop until this is done."""
        return self.loop.run_until_complete(work)

    def do(self, work: Awaitable[Any], seconds: float) -> None:
        """Do something that the API may refuse, let time pass, and limit the requests of the manager."""
        self.run(self._do(work, seconds))

    async def _do(self, work: Awaitable[Any], seconds: float) -> None:
        shaky, begun = self.world.shaky, self.loop.time()
        before = shaky.requests.copy()
        with suppress(ApiError):
            await work
        await asyncio.sleep(seconds)
        made = shaky.requests - before
        most = START_UP + BUSIEST * (self.loop.time() - begun)
        assert made.total() <= most, f"{made.total()} requests in {self.loop.time() - begun:g} s: {made.most_common(6)}"

    def meanwhile(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something during the next steps."""
        self.background.append(self.loop.create_task(work))

    async def each_server(self, body: dict[str, Any]) -> None:
        """Change every server."""
        for server in await self.world.servers():
            with suppress(NotFound):
                await self.world.client.patch(KINDS.server, server.metadata.name, body)

    async def operate(self, word: str) -> None:
        """Annotate every server with an operation."""
        await self.each_server({"metadata": {"annotations": {KINDS.key("operation"): word}}})

    @invariant()
    def nothing_is_violated(self) -> None:
        """All invariants hold over the whole history."""
        if self.started:
            self.judge()

    def judge(self) -> None:
        """Check the invariants that hold for this machine's rules. Raises InvariantViolation."""
        self.world.check()

    def teardown(self) -> None:
        """Wait for rest, and stop everything."""
        try:
            if self.started:
                self.run(self._settle())
                self.judge()
        finally:
            if self.started:
                self.run(self._end())
            self.run(self.loop.shutdown_asyncgens())
            self.loop.close()

    async def _end(self) -> None:
        for task in self.background:
            task.cancel()
        await asyncio.gather(*self.background, return_exceptions=True)
        await self.world.stop()

    async def _settle(self) -> None:
        """Remove the faults, and do what each state requests from an administrator. Raises Restless."""
        await asyncio.gather(*self.background)
        self.world.shaky.trouble = Trouble()
        for machine in self.world.fleet.machines:
            for fault in machine.faults.active:
                machine.faults.switch(fault, False)
        await self._let_go()
        end = self.loop.time() + PATIENCE
        while problem := await self._unrest():
            if self.loop.time() > end:
                raise Restless(problem)
            await self._help()
            await asyncio.sleep(60)
        await self._stay()

    async def _unrest(self) -> str:
        servers = await self.world.servers()
        waits = next((server.status.waiting_for for server in servers if server.status.waiting_for), "")
        return await restless(self.world) or (waits if servers else "there is no server")

    async def _let_go(self) -> None:
        """End maintenances and parking."""
        for maintenance in (await self.world.client.list(KINDS.maintenance)).items:
            meta = maintenance.metadata
            with suppress(NotFound):
                await self.world.client.delete(KINDS.maintenance, meta.name, meta.namespace)
        await self.operate("unpark")

    async def _help(self) -> None:
        for server in await self.world.servers():
            failure, body = server.status.failure, dict[str, Any]()
            if server.status.state == "Error":
                owed = failure is not None and failure.reason == "SanitizationOwed" and self.accepts
                body = {"metadata": {"annotations": {KINDS.key("operation"): ACCEPT if owed else "retry"}}}
            elif server.status.state == "Released":
                body = {"spec": {"serverClaimRef": None}}
            with suppress(ApiError):
                await self.world.client.patch(KINDS.server, server.metadata.name, body)

    accepts = False
    """Whether the administrator accepts a sanitization failure, rather than erase again."""

    async def _stay(self) -> None:
        """What is at rest stays at rest: no machine is touched, and nothing but heartbeats is written."""
        await asyncio.sleep(SLOWEST_LOOK)
        before, known = self.world.shaky.requests.copy(), len(self._deeds())
        await asyncio.sleep(REST)
        if problem := await self._unrest():
            raise Restless(f"it was at rest, and now {problem}")
        moved = self._deeds()[known:]
        assert not moved, f"at rest, and yet: {moved}"
        made = self.world.shaky.requests - before
        writes = {what: n for what, n in made.items() if what.split()[0] in WRITES and not what.endswith("configmaps")}
        assert not writes, f"at rest, and yet: {writes}"

    def _deeds(self) -> list[str]:
        return [str(entry) for entry in self.world.fleet.history.of(self.machine.identity.uuid)]
