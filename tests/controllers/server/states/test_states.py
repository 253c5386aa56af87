"""A server, its claims and everything that can go wrong, in a random order: the invariants hold at every step."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from metal.api.claim import ServerClaim
from metal.api.server import Server, State
from metal.bmc.errors import BMCTimeout
from metal.bmc.power import PowerState, ResetType
from metal.controllers.server.operations import RESETS
from metal.kube.client.errors import ApiError, Conflict, NotFound
from metal.machine import boot_window
from tests.controllers.machine import Surroundings
from tests.controllers.server.steps import maintain, operate, retry
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime
FAST = {
    "discovery_timeout": 90.0, "claim_boot_timeout": 90.0, "boot_retry": 5.0, "power_timeout": 90.0,
    "graceful_timeout": 15.0, "bmc_timeout": 60.0, "bmc_retry": 5.0, "resync": 30.0, "boot_config_timeout": 60.0,
}  # fmt: skip
UNBOUNDED = ("Repair", "Maintenance", "Release", "Unpark")
"""Waits that only people end."""
STARTS = tuple(f"reset {kind}" for kind in RESETS.values() if kind is not ResetType.FORCE_OFF)
CLAIMS = ("c1", "c2", "c3")
TARGETS = {"power_on": "On", "graceful_off": "Off", "force_off": "Off"}


class Walk:
    """Does something random, lets time pass, and checks."""

    def __init__(self, w: World, seed: int) -> None:
        self.w, self.rng = w, random.Random(seed)
        self.around = Surroundings(w)
        self.contested = 0
        self.violations: list[str] = []
        self.log: list[str] = []
        self.on_since: float | None = None
        self.acts: list[Callable[[], Awaitable[None]]] = [
            self.claim, self.claim, self.unclaim, self.flip_power, self.change_image, self.bmc, self.lose_power,
            self.ignore_graceful, self.ignore_once, self.contest, self.silence, self.restart, self.label, self.maintain,
            self.retry, self.press_the_button, self.operate, self.operate, self.park,
        ]  # fmt: skip
        w.bmc.trap = self._watch_power

    async def _watch_power(self, what: str, when: str) -> None:
        """A tenant's machine: only its own claim's power, and never the network. Nothing that is not written down."""
        if when == "after":
            return
        server, target = await self.w.server(), TARGETS.get(what, "")
        request = server.status.power_request
        if target and (request is None or request.target != target):
            self.violations.append(f"{what} without a written request")
        booted, ref = server.status.tenancy.boot, server.spec.server_claim_ref
        self._watch_network(what, server)
        if request is not None and request.reason == "parking":
            return
        claim = await self._get(ref.name) if ref is not None else None
        if server.status.state != State.RESERVED or claim is None or claim.metadata.uid != server.status.tenancy.uid:
            return
        if what == "power_on" and claim.spec.power != "On":
            self.violations.append("power_on although the claim wants it off")
        if booted is not None and (what == "set_network_boot" or (target and claim.spec.power != target)):
            self.violations.append(f"{what} although the claim has booted and wants {claim.spec.power}")

    def _watch_network(self, what: str, server: Server) -> None:
        """A reset never sends a tenant's machine to the network, and only a window of its own lets a maintenance."""
        window, booted = server.status.boot_window, server.status.tenancy.boot
        if what in STARTS and booted is not None and self.w.bmc.boot.is_network:
            self.violations.append(f"{what} with a network boot override")
        own = window is not None and window.purpose == "Maintenance"
        if server.status.state == State.MAINTENANCE and what == "set_network_boot" and not own:
            self.violations.append("a network boot in Maintenance that is not the maintenance's")

    async def _get(self, name: str) -> ServerClaim | None:
        try:
            return await self.w.claim(name)
        except NotFound:
            return None

    async def claim(self) -> None:
        name = self.rng.choice(CLAIMS)
        with contextlib.suppress(ApiError):
            await self.w.add_claim(name, power=self.rng.choice(("On", "On", "Off")))

    async def unclaim(self) -> None:
        with contextlib.suppress(NotFound):
            await self.w.client.delete(KINDS.claim, self.rng.choice(CLAIMS), "default")

    async def _change(self, **spec: str) -> None:
        with contextlib.suppress(NotFound):
            await self.w.client.patch(KINDS.claim, self.rng.choice(CLAIMS), {"spec": spec}, "default")

    async def flip_power(self) -> None:
        await self._change(power=self.rng.choice(("On", "Off")))

    async def change_image(self) -> None:
        await self._change(image=f"reg/os:{self.rng.randrange(9)}")

    async def bmc(self) -> None:
        self.w.bmc.failure = None if self.w.bmc.failure else BMCTimeout("no answer")

    async def lose_power(self) -> None:
        self.w.bmc.lose_power()

    async def press_the_button(self) -> None:
        if (await self.w.server()).spec.server_claim_ref is None:
            self.w.bmc._arrive(PowerState.ON)

    async def ignore_graceful(self) -> None:
        self.w.bmc.ignores_graceful = not self.w.bmc.ignores_graceful

    async def ignore_once(self) -> None:
        self.w.bmc.ignores_once = not self.w.bmc.ignores_once

    async def contest(self) -> None:
        window = (await self.w.server()).status.boot_window
        if window is not None and boot_window.is_contestable(window, self.w.clock()):
            with contextlib.suppress(Conflict):
                await self.w.window(boot_window.contest)
                self.contested += 1

    async def silence(self) -> None:
        self.around.silent = not self.around.silent

    async def restart(self) -> None:
        await self.w.restart(self.rng.randrange(1 << 30))

    async def label(self) -> None:
        change = {"metadata": {"labels": {"n": str(self.rng.randrange(99))}}}
        await self.w.client.patch(KINDS.server, "s1", change)

    async def maintain(self) -> None:
        template = {"name": "m", "spec": {"serverRef": {"name": "s1"}, "image": "reg/firmware:1"}}
        wanted: dict[str, Any] = {"serverPower": self.rng.choice(("", "On", "Off"))}
        if self.rng.random() < 0.5:
            wanted["serverBootConfigurationTemplate"] = template
        name, held = self.rng.choice(("m1", "m2")), (await self.w.server()).spec.server_maintenance_ref
        await maintain(self.w, on=held is None or held.name != name, name=name, **wanted)

    async def operate(self) -> None:
        await operate(self.w, self.rng.choice((*RESETS, "sing")))

    async def park(self) -> None:
        await operate(self.w, self.rng.choice(("park", "park", "unpark")))

    async def end_maintenances(self) -> None:
        for name in ("m1", "m2"):
            await maintain(self.w, on=False, name=name)

    async def retry(self) -> None:
        await retry(self.w)

    async def step(self) -> None:
        await self._mend_something()
        act = self.rng.choice(self.acts)
        self.log.append(getattr(act, "__name__", "?"))
        await act()
        for _ in range(self.rng.choice((1, 3, 8, 30))):
            await asyncio.sleep(1)
            await self.check()

    async def _mend_something(self) -> None:
        """Faults do not last, or nothing else would ever happen."""
        if self.w.bmc.failure is not None and self.rng.random() < 0.4:
            self.w.bmc.failure = None
        if self.around.silent and self.rng.random() < 0.4:
            self.around.silent = False
        server = await self.w.server()
        if server.spec.server_maintenance_ref is not None and self.rng.random() < 0.5:
            await self.end_maintenances()
        if server.status.state == State.PARKED and self.rng.random() < 0.5:
            await operate(self.w, "unpark")

    async def check(self) -> None:
        """What holds at every moment."""
        assert not self.violations, (self.violations, self.log)
        server = await self.w.server()
        waited = server.status.wait
        assert waited is None or (waited.for_ and server.status.waiting_for), self.log
        assert waited is not None or not server.status.waiting_for or server.status.state == State.ERROR, self.log
        assert waited is None or waited.until is not None or waited.for_ in UNBOUNDED, (waited, self.log)
        assert sum(self.around.served[uid] > 1 for uid in self.around.served if uid) <= self.contested, self.log
        if server.status.state == State.AVAILABLE:
            assert not server.status.tenancy.uid, self.log
            assert server.status.tenancy.sanitization == "None" or not self._tenants_before(), self.log
        self._check_power(server)
        bound = [c for c in (await self.w.client.list(KINDS.claim, "default")).items if c.status.phase == "Bound"]
        assert len(bound) <= 1 or server.spec.server_claim_ref is not None, self.log

    def _tenants_before(self) -> bool:
        return any(uid for uid in self.around.served)

    def _check_power(self, server: Server) -> None:
        now = asyncio.get_running_loop().time()
        if server.status.state != State.AVAILABLE or server.status.power_state != "On" or self.w.bmc.failure:
            self.on_since = None
            return
        self.on_since = now if self.on_since is None else self.on_since
        assert now - self.on_since < 60, self.log

    async def come_to_rest(self) -> None:
        """The faults stop; people do what Error asks for."""
        bmc = self.w.bmc
        bmc.failure, bmc.ignores_graceful, bmc.ignores_once, self.around.silent = None, False, False, False
        await self.end_maintenances()
        await operate(self.w, "unpark")
        for _ in range(3):
            await asyncio.sleep(200)
            if (await self.w.server()).status.state == State.ERROR:
                await retry(self.w)
        await asyncio.sleep(300)
        server = await self.w.server()
        assert server.status.state in (State.AVAILABLE, State.RESERVED), (server.status, self.log)
        assert server.status.wait is None, (server.status, self.log)
        await self._check_rest(server)

    async def _check_rest(self, server: Server) -> None:
        ref = server.spec.server_claim_ref
        wanted = "Off" if ref is None else (await self.w.claim(ref.name)).spec.power
        assert self.w.bmc.power == wanted, (server.status, self.log)
        passes = self.w.passes()
        await asyncio.sleep(300)
        assert self.w.passes() - passes < 30, self.log


@pytest.mark.behaviour(
    "Server: errors and deletion", "Under random faults all invariants hold, and everything comes to rest afterwards."
)
@pytest.mark.parametrize("seed", range(7))
async def test_whatever_happens_the_invariants_hold_and_everything_comes_to_rest(seed: int) -> None:
    """One claim at a time, one boot each, no foreign hand on a tenant's machine, every wait named and bounded."""
    async with world(**FAST) as w:
        await w.add_server()
        walk = Walk(w, seed)
        async with walk.around.acting():
            for _ in range(40):
                await walk.step()
            await walk.come_to_rest()
