"""Random failures of a BMC in random order: the invariants hold at every step."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from metal.bmc.errors import BMCAuthError, BMCError, BMCServerError, BMCTimeout, BMCUnreachable
from metal.bmc.shell import ShellAccess
from metal.bmc.systems import ManagerInfo
from tests.controllers.rack import KINDS, Rack, RackBMC, condition, rack, ready

pytestmark = pytest.mark.looptime
SETTINGS: dict[str, Any] = {
    "auto_reset": True, "reset_after": 120.0, "reset_again": 600.0, "reset_timeout": 200.0, "credentials_rest": 120.0,
    "event_url": "http://192.0.2.100:10001", "event_heartbeat": 60.0,
}  # fmt: skip
FAILURES: tuple[BMCError | None, ...] = (
    None, None, BMCServerError("500"), BMCUnreachable("refused"), BMCTimeout("mute"), BMCAuthError("401"),
)  # fmt: skip
RESTARTS = ("graceful-restart-bmc", "force-ssh-reset-bmc")
OPERATIONS = (*RESTARTS * 3, "accept-certificate", "accept-host-key", "retry", "nonsense")


class Walk:
    """Performs random actions, lets time pass, and checks the invariants."""

    def __init__(self, r: Rack, bmc: RackBMC, seed: int) -> None:
        self.r, self.bmc, self.rng = r, bmc, random.Random(seed)
        self.sent: Counter[str] = Counter()
        self.violations: list[str] = []
        self.log: list[str] = []
        self.acts: list[Callable[[], Awaitable[None]]] = [
            *(self.fail,) * 2, *(self.operate,) * 3, *(self.person,) * 2, self.fail_ssh, self.restart, self.forget,
            self.new_certificate, self.new_host_key,
        ]  # fmt: skip
        self._redfish, self._ssh = bmc.reset_manager, r.shell.run
        bmc.reset_manager = self.over_redfish  # type: ignore[method-assign]  # what is sent is counted
        r.shell.run = self.over_ssh  # type: ignore[method-assign]  # a double

    async def over_redfish(self, uuid: str = "") -> None:
        await self._redfish(uuid)
        await self.note()

    async def over_ssh(self, access: ShellAccess, command: str) -> None:
        await self._ssh(access, command)
        await self.note()

    async def note(self) -> None:
        """A restart was sent: it must have been recorded before."""
        status = (await self.r.bmc()).status
        told = condition(await self.r.bmc(), "Reset")
        if status.restart is None or told.status != "True":
            self.violations.append("a restart that is not in status")
            return
        self.sent[str(status.restart.at)] += 1

    async def fail(self) -> None:
        self.bmc.failure = self.rng.choice(FAILURES)

    async def fail_ssh(self) -> None:
        self.r.shell.failure = self.rng.choice(FAILURES)
        self.r.shell.hangs = self.rng.random() < 0.2

    async def operate(self) -> None:
        await self.r.operate(KINDS.bmc, "b1", self.rng.choice(OPERATIONS))

    async def person(self) -> None:
        """An administrator accepts what the status reports."""
        status = (await self.r.bmc()).status
        if status.certificate is not None and status.certificate.refused:
            await self.r.operate(KINDS.bmc, "b1", "accept-certificate")
        elif status.ssh_host_key is not None and status.ssh_host_key.refused:
            await self.r.operate(KINDS.bmc, "b1", "accept-host-key")

    async def restart(self) -> None:
        await self.r.restart(self.rng.randrange(1 << 30))

    async def new_certificate(self) -> None:
        """Rare, since a BMC that is not trusted is not restarted either."""
        if self.rng.random() < 0.3:
            self.bmc.certificate = f"{self.rng.randrange(1 << 30):064x}"

    async def new_host_key(self) -> None:
        if self.rng.random() < 0.3:
            self.r.shell.key = f"SHA256:{self.rng.randrange(1 << 30)}"

    async def forget(self) -> None:
        self.bmc.destinations.clear()

    async def step(self) -> None:
        """One random action, some time, and a check."""
        act = self.rng.choice(self.acts)
        self.log.append(act.__name__)
        await act()
        await asyncio.sleep(self.rng.choice((0.1, 1, 20, 90, 200)))
        await self.check()

    async def check(self) -> None:
        """Nothing is sent twice or unrecorded, and no restart is awaited past its deadline."""
        assert self.violations == [], self.log
        assert all(count == 1 for count in self.sent.values()), self.log
        found = await self.r.bmc()
        status = found.status
        waiting = [c for c in status.conditions if c.type == "Reset" and c.status == "True"]
        if waiting:
            assert status.restart is not None
            assert status.restart.until is not None
            assert self.r.clock() < status.restart.until + timedelta(seconds=5), self.log
            assert status.waiting_for, self.log

    async def come_to_rest(self) -> None:
        """The faults end, and an administrator accepts what the BMC presents."""
        self.bmc.failure, self.r.shell.failure, self.r.shell.hangs = None, None, False
        await asyncio.sleep(250)
        for operation in ("accept-certificate", "retry"):
            await self.r.operate(KINDS.bmc, "b1", operation)
            await asyncio.sleep(200)
        await asyncio.sleep(600)
        found: Any = await self.r.bmc()
        assert ready(found) == ("True", "Connected"), (found.status, self.log)
        assert found.status.certificate.sha256 == self.bmc.certificate
        assert [c.status for c in found.status.conditions if c.type == "Reset"] in ([], ["False"]), self.log
        assert [known.uri for known in self.bmc.destinations] == [found.status.events_subscription_link], self.log


@pytest.mark.behaviour("BMC", "Under random faults each requested restart is sent at most once, and ends.")
@pytest.mark.parametrize("seed", range(8))
async def test_restarts_end_and_are_sent_once_whatever_happens(seed: int) -> None:
    """Under failures, requests, changes and crashes each restart is sent at most once, and ends."""
    async with rack(**SETTINGS) as r:
        bmc = r.plug(1, info=ManagerInfo(uri="m", manufacturer="Dell Inc."))
        await r.add_bmc(1, tls={"trustOnFirstUse": True})
        await asyncio.sleep(5)
        walk = Walk(r, bmc, seed)
        for _ in range(80):
            await walk.step()
        await walk.come_to_rest()
    assert sum(walk.sent.values()) > 0
