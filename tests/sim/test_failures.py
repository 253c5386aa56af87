"""What a user sees of each fault of a machine or its BMC, and how it ends: the rows of docs/failures.md."""

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from metal.api.core import EVENT
from metal.sim.faults import NAMES
from metal.sim.machine import Machine
from tests.mutants.stories import at_rest, change_server, discovered, release
from tests.sim.plane import KINDS, OPTIONS, Plane, is_ready, plane

pytestmark = [pytest.mark.looptime, pytest.mark.life]
PAGE = Path(__file__).parents[2] / "docs" / "failures.md"


@dataclass(frozen=True)
class Row:
    """One fault, in the order of docs/failures.md. An empty text stands for nothing of that sort."""

    fault: str
    wait: str = ""
    """Name of a wait in status.wait."""
    condition: str = ""
    """`type=status reason` of the Server."""
    event: str = ""
    """Reason of a Warning Event on the Server."""
    error: str = ""
    """Reason of status.failure, when it ends in Error."""
    retry: bool = False
    """A person has to say retry once the fault is mended."""
    when: str = "claim"
    """claim: the fault comes before a claim's boot; lease: before discovery; release: before the claim goes."""
    minutes: int = 20
    """How long the fault lasts."""


ROWS = (
    Row("dead", "BMC", "BMCReachable=False ConnectionFailed", "ConnectionFailed", "BMCConnectionFailed"),
    Row("hangs", "BMC", "BMCReachable=False Timeout", "Timeout", "BMCTimeout"),
    Row("wrong_password", "BMC", "BMCReachable=False AuthenticationFailed", "AuthenticationFailed",
        "BMCAuthenticationFailed", retry=True),
    Row("slow", "PowerOn"),
    Row("ignores_once", condition="BootOverrideCleared=True Cleared"),
    Row("drops_override", "BootRetry", "Ready=False NetworkBootFailed", "NetworkBootFailed", "NetworkBootFailed",
        retry=True),
    Row("ignores_reset", "PowerOn", "Ready=False PowerOnTimeout", "Error", "PowerOnTimeout", retry=True),
    Row("lies_power", "ClaimBoot", "Ready=False BootRetry", "NetworkBootFailed", minutes=32),
    Row("boots_disk", "ClaimBoot", "Ready=False BootRetry", "NetworkBootFailed", minutes=32),
    Row("dies_after_script", "ClaimBoot", "Ready=False BootRetry", "NetworkBootFailed", minutes=32),
    Row("second_fetch", event="BootWindowClosed"),
    Row("never_reports", "ProbeReport", "Ready=False BootRetry", "NetworkBootFailed", when="lease", minutes=32),
    Row("reports_late", "ProbeReport", when="lease"),
    Row("ignores_graceful", "PowerOff", event="ForcedOff", when="release"),
)  # fmt: skip


async def _begin(world: Plane, row: Row) -> Machine:
    machine = world.fleet.machines[0]
    if row.when == "lease":
        machine.faults.switch(row.fault)
        await world.announce()
        return machine
    await discovered(world)
    if row.when == "claim":
        machine.faults.switch(row.fault)
    await world.add_claim()
    if row.when == "release":
        await world.until_claim(is_ready)
        await asyncio.sleep(60)
        machine.faults.switch(row.fault)
        await release(world)
    return machine


async def _watch(world: Plane, minutes: int) -> set[str]:
    """Everything that the Server said meanwhile: waits, conditions, failures."""
    said: set[str] = set()
    for _ in range(minutes * 12):
        await asyncio.sleep(5)
        for server in await world.servers():
            status = server.status
            said.add(status.wait.for_ if status.wait is not None else "")
            said.add(status.failure.reason if status.failure is not None else "")
            said |= {f"{one.type}={one.status} {one.reason}" for one in status.conditions}
    events = (await world.client.list(EVENT)).items
    return said | {f"Event {event.reason}" for event in events if event.type == "Warning"}


@pytest.mark.parametrize("row", ROWS, ids=[row.fault for row in ROWS])
async def test_a_fault_is_seen_and_left_behind(row: Row) -> None:
    """It shows as a wait, a condition, an Event or Error, as the page says; mended, everything comes to rest."""
    async with plane(1, seed=7, options=replace(OPTIONS, stale=10.0, late=400.0)) as world:
        machine = await _begin(world, row)
        said = await _watch(world, row.minutes)
        machine.faults.switch(row.fault, False)
        if row.retry:
            retry: dict[str, object] = {"metadata": {"annotations": {KINDS.key("operation"): "retry"}}}
            await change_server(world, machine, retry)
            for bmc in (await world.client.list(KINDS.bmc)).items:
                await world.client.patch(KINDS.bmc, bmc.metadata.name, retry)
        await at_rest(world)
    expected = {row.wait, row.condition, row.error, f"Event {row.event}" if row.event else ""} - {""}
    assert expected <= said, sorted(said)
    assert not row.error or row.error in said


def test_the_page_says_what_is_tested() -> None:
    """Each fault of the simulator that a machine can have has a row there, with the very words."""
    page = {line.split("|")[1].strip(" `"): line for line in PAGE.read_text().splitlines() if line.startswith("| `")}
    for row in ROWS:
        for word in (row.wait, row.condition, row.event, row.error):
            assert f"`{word}`" in page[row.fault] or not word, (row.fault, word)
    assert {row.fault for row in ROWS} <= set(NAMES)
