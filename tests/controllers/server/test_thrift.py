"""What a server costs: requests to its BMC, writes to the API, passes of the reconciler."""

import asyncio

import pytest

from tests.controllers.fakebmc import UUID
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime


def _forget(w: World) -> None:
    w.bmc.calls.clear()
    w.tap.writes.clear()


@pytest.mark.behaviour("Server: discovery")
async def test_an_enrolment_costs_few_requests_and_writes() -> None:
    """From created to Available: eight reads and four writes at the BMC, ten status writes at most, and one Lease."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await asyncio.sleep(5)
    leases = [write for write in w.tap.writes if " Lease " in write]
    assert leases == [f"create Lease system-{UUID}"]
    assert w.bmc.calls.count("inventory") == 1
    assert w.bmc.reads() <= 8
    assert w.bmc.writes() == ["set_network_boot", "power_on", "graceful_off"]
    assert w.tap.count("status Server s1") <= 10
    assert len(w.tap.writes) - len(leases) <= 16


@pytest.mark.behaviour("Server: network boot", "Between Bound and power-on the BMC is read once, its drives once more.")
async def test_a_claim_is_powered_on_after_one_read() -> None:
    """The drives are compared with those of other claims; then boot override and power are requested."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await asyncio.sleep(10)
        _forget(w)
        await w.add_claim()
        await w.until_true(lambda s: s.spec.boot_configuration_ref is not None)
        await asyncio.sleep(0.5)
        await w.config_ready("c1", "default")
        await asyncio.sleep(1)
        assert w.bmc.calls == ["system", "inventory", "set_network_boot", "power_on"]
        await w.boot_claim()
        await asyncio.sleep(60)
    assert w.bmc.reads() <= 4
    assert w.tap.count("status Server s1") <= 8
    assert w.tap.count("status ServerClaim c1") <= 7


async def test_a_power_on_is_asked_for_at_once_when_the_boot_can_be_served() -> None:
    """No pause stands between a ready boot configuration and the power-on."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await w.add_claim()
        await w.until_true(lambda s: s.spec.boot_configuration_ref is not None)
        await asyncio.sleep(5)
        _forget(w)
        await w.config_ready("c1", "default")
        await asyncio.sleep(0.05)
    assert w.bmc.writes() == ["set_network_boot", "power_on"]


@pytest.mark.behaviour(
    "Server: power and resets",
    "No reconcile waits for power: a change is a named wait with a deadline, read again later.",
)
async def test_no_pass_waits_for_the_power() -> None:
    """Discovered, booted, and switched off against its system's will, which takes minutes: all passes last a moment."""
    async with world() as w:
        w.bmc.delay = 20.0
        await w.add_server()
        await w.discover()
        await w.add_claim()
        await w.boot_claim()
        w.bmc.ignores_graceful = True
        begun = w.clock()
        await w.client.delete(KINDS.claim, "c1", "default")
        waiting = await w.until_true(lambda s: s.status.wait is not None and s.status.wait.for_ == "PowerOff")
        await w.until("Available")
        took = (w.clock() - begun).total_seconds()
        told = [s for metric in w.runtime.metrics.seconds.collect() for s in metric.samples]
        (spent,) = (s.value for s in told if s.name.endswith("_sum") and s.labels["controller"] == "server")
        passes = w.passes()
    assert took > 120
    assert passes > 10
    assert spent < 0.1
    assert waiting.status.wait is not None
    assert waiting.status.wait.until is not None


async def test_an_idle_server_is_looked_at_now_and_then_and_never_written() -> None:
    """Twenty minutes of Available, then of Reserved: a read in two minutes, no write at all."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await asyncio.sleep(10)
        _forget(w)
        await asyncio.sleep(1200)
        idle = (w.bmc.reads(), w.bmc.writes(), list(w.tap.writes))
        await w.add_claim()
        await w.boot_claim()
        await asyncio.sleep(10)
        _forget(w)
        await asyncio.sleep(1200)
    assert idle[0] <= 12
    assert idle[1:] == ([], [])
    assert w.bmc.reads() <= 12
    assert (w.bmc.writes(), w.tap.writes) == ([], [])


async def test_a_release_costs_few_requests() -> None:
    """Off, looked at while it shuts down, and nothing else."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await w.add_claim()
        await w.boot_claim()
        await asyncio.sleep(10)
        _forget(w)
        await w.client.delete(KINDS.claim, "c1", "default")
        await w.until("Available")
        await asyncio.sleep(5)
    assert w.bmc.writes() == ["graceful_off"]
    assert w.bmc.reads() <= 5
    assert w.tap.count("status Server s1") <= 6
