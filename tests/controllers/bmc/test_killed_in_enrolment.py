"""A manager is killed at each write of an enrolment: the next one ends where an undisturbed one does."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from metal.controllers.shared.access.bmc_endpoint import BMCEndpointDefaults
from tests.controllers.endpoint.test_enrolment_policy import approve, policy, until
from tests.controllers.rack import KINDS, Rack, rack, ready, soon, system
from tests.controllers.tap import Tap

pytestmark = pytest.mark.looptime
UIDS = KINDS.key("bound-uids")
NEVER = 10_000
"""A number of writes that no enrolment has."""


class Killer:
    """Kills the manager of a rack at the n-th moment before or after a write, and starts another one."""

    def __init__(self, r: Rack, number: int, moment: str = "") -> None:
        self.left, self.moment, self.where, self._rack = number, moment, "", r
        self._reached = asyncio.Event()
        self.meanwhile: Callable[[], None] = lambda: None
        """What happens while no manager runs."""
        r.client = tap = Tap(r.client)
        tap.trap = self._trap
        self._task = asyncio.create_task(self._restart())

    async def _trap(self, what: str, when: str) -> None:
        if self.where or self.moment not in f"{when} {what}":
            return
        if self.left > 0:
            self.left -= 1
            return
        self.where = f"{when} {what}"
        self._reached.set()
        await asyncio.Event().wait()

    async def _restart(self) -> None:
        await self._reached.wait()
        await asyncio.sleep(0.1)
        await self._rack.runtime.stop(grace=0.0)
        self.meanwhile()
        await self._rack.start(2)

    async def end(self) -> None:
        """The restart has ended, or is not wanted any more."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def _by_approval(r: Rack) -> None:
    """Found by its lease; nothing is sent before the approval."""
    bmc = r.plug(1)
    await r.lease(1)
    await until(r, "PendingApproval")
    await asyncio.sleep(5)
    assert (bmc.calls, r.pool.looks) == ([], [])
    await approve(r)


async def _by_serial(r: Rack) -> None:
    """Found by its lease; its serial number is expected."""
    r.plug(1, present=(system(1, serial_number="sn-1"),))
    await r.lease(1)


async def _by_decision(r: Rack) -> None:
    """Found by its lease; its serial number is not expected, and it is approved before a Server is created."""
    r.plug(1)
    await r.lease(1)
    await until(r, "PendingApproval")
    await asyncio.sleep(5)
    assert await r.servers() == {}
    await approve(r)


async def _by_hand(r: Rack) -> None:
    """A BMC object, and a BMCSecret that is bound to it."""
    r.plug(1)
    await r.add_bmc(1)


Story = Callable[[Rack], Awaitable[None]]
STORIES: dict[str, tuple[Story, BMCEndpointDefaults, str]] = {
    "approved": (_by_approval, policy(manual=True), "e1"),
    "expected": (_by_serial, policy(expected=("SN 1",)), "e1"),
    "unexpected": (_by_decision, policy(expected=("SN 9",)), "e1"),
    "bound": (_by_hand, BMCEndpointDefaults(), "b1"),
}


async def _is_enrolled(r: Rack, name: str) -> bool:
    if not await r.exists(KINDS.bmc, name):
        return False
    bmc = await r.bmc(name)
    return bool(bmc.status.conditions) and ready(bmc)[0] == "True" and bool(await r.servers())


async def _end_of(story: str, number: int) -> tuple[dict[str, Any], str]:
    """What there is at the end of a story, without UIDs and times, and where the manager was killed."""
    act, defaults, name = STORIES[story]
    async with rack(started=False) as r:
        r.defaults = replace(defaults, trust_on_first_use=True)
        killer = Killer(r, number)
        await r.start()
        await act(r)
        await soon(lambda: _is_enrolled(r, name), within=900)
        await asyncio.sleep(120)
        await killer.end()
        bmc, secret, servers = await r.bmc(name), await r.secret(name), await r.servers()
    uids = msgspec.json.decode(secret.metadata.annotations.get(UIDS, "{}"))
    assert uids in ({}, {"secret": secret.metadata.uid, "users": {name: bmc.metadata.uid}})
    assert bmc.status.connected_secret_uid == secret.metadata.uid
    assert bmc.status.certificate is not None
    return {
        "servers": servers, "systems": bmc.status.systems, "annotations": bmc.metadata.annotations,
        "spec": msgspec.to_builtins(bmc.spec), "pin": bmc.status.certificate.sha256, "is bound": bool(uids),
        "conditions": {(one.type, one.status, one.reason) for one in bmc.status.conditions},
    }, killer.where  # fmt: skip


@pytest.mark.behaviour("BMC", "A manager killed at any write of an enrolment leaves what an undisturbed one does.")
@pytest.mark.parametrize("story", STORIES)
async def test_a_manager_killed_at_any_write_enrols_the_same(story: str) -> None:
    """Approved, expected by its serial number, bound to its BMCSecret: one Server, the same pin, the same binding."""
    undisturbed, _ = await _end_of(story, NEVER)
    for number in range(NEVER):
        found, where = await _end_of(story, number)
        if not where:
            break
        assert found == undisturbed, where
    assert len(undisturbed["servers"]) == 1
    assert number > 15, "an enrolment has become shorter"


@pytest.mark.behaviour("Endpoint", "A password that a device accepted is sent to no other one after a manager's end.")
@pytest.mark.parametrize(("story", "moment"), [("approved", "before"), ("approved", "after"), ("expected", "after")])
async def test_a_password_goes_only_to_the_device_that_accepted_it(story: str, moment: str) -> None:
    """Killed beside the creation of the BMCSecret; another device has the address when the next manager starts.

    No connection is made to it but one that requires the pinned certificate.
    """
    act, defaults, _ = STORIES[story]
    async with rack(started=False) as r:
        r.defaults = replace(defaults, trust_on_first_use=True)
        killer = Killer(r, 0, f"{moment} create BMCSecret")

        def replaced() -> None:
            r.plug(1, certificate="cd" * 32)

        killer.meanwhile = replaced
        await r.start()
        await act(r)
        await asyncio.sleep(600)
        other = r.pool.bmcs["192.0.2.1"]
        await killer.end()
        reasons = {ready(await r.bmc("e1"))[1], ready(await r.endpoint("e1"))[1]}
    assert killer.where
    assert other.calls
    assert (other.certificate, other.held_to) == ("cd" * 32, "ab" * 32)
    assert "CertificateChanged" in reasons
