"""Runs one row of docs/failures.md and asserts everything that the page prints of it.

`live` brings a simulated server to the step of the row, begins the fault, and lets the row's minutes pass. By then the
operation has completed where the row says COMPLETES or RECOVERS, and has not where it names another end. The fault is
removed; with RETRY_* nothing recovers for another twenty minutes, and then the operation of an administrator follows.
At the end all servers are at rest and the first one is in the row's final state. `check` compares what was reported
since the fault: each condition, Event, failure, wait and message of the row, and no other failure or warning.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from metal.kube.meta import conditions
from tests.mutants.stories import PATIENCE, Restless, at_rest, restless
from tests.sim.failing import ERASED, ERASING, HURRY, FailingPlane, go_on, reach, retry
from tests.sim.plane import KINDS, Plane
from tests.sim.reported import Report, reported
from tests.sim.rows import End, Row

UNTOUCHED = 1200.0
"""Seconds after which what has not come to rest needs an administrator."""
HOUR = 3600.0 + 300.0
"""Seconds after which credentials that were refused have been offered again, and the server is there."""
RETRIED = {End.RETRY_SERVER: "server", End.RETRY_BMC: "bmc"}


@asynccontextmanager
async def failing(row: Row) -> AsyncIterator[FailingPlane]:
    """A plane for a row, with its fault injected at its step; drives are erased where the row is of erasure."""
    policy = ERASED if row.step == "erasure" else {}
    config, options = {"timeouts": HURRY, **policy, **row.config}, replace(ERASING, **row.options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) if row.disk else None
        world = FailingPlane(row.machines, config, options, shaky=row.shaky, folder=path)
        await world.start()
        try:
            yield world
            world.check()
        finally:
            await world.stop()


async def live(row: Row) -> Report:
    """What was reported from the fault until everything was at rest. Raises Restless and AssertionError."""
    fault = row.injected
    async with failing(row) as world:
        await fault.prepare(world)
        await reach(world, row.step)
        since = world.clock.steady()
        await fault.begin(world)
        await go_on(world, row.step)
        await asyncio.sleep(row.minutes * 60)
        stood = reported(world.fleet.history, since, world.clock.steady()).stood
        await row.also(world)
        _compare_before(row, await _unrest(world, row))
        await fault.remove(world)
        await _end(world, row)
        await compare_final(world, row)
        report = reported(world.fleet.history, since, world.clock.steady())
        report.stood = stood
    return report


def _compare_before(row: Row, unrest: str) -> None:
    """What completes under the fault, or after one that lasted a moment, has done so by now; all else has not."""
    done = row.ends in (End.COMPLETES, End.RECOVERS)
    assert bool(unrest) is not done, f"{row.ends.name}: {unrest or 'everything is at rest'}"


async def _end(world: FailingPlane, row: Row) -> None:
    removed = world.clock.steady()
    if row.ends in RETRIED:
        await _stays(world, RETRIED[row.ends])
        await retry(world, RETRIED[row.ends])
    await _settle(world)
    took = (world.clock.steady() - removed).total_seconds()
    if row.ends is End.WITHIN_AN_HOUR:
        assert UNTOUCHED < took <= HOUR, took


async def compare_final(world: Plane, row: Row) -> None:
    """The server of the machine that failed ends in the state that the page names."""
    server = await world.server_of(world.fleet.machines[0])
    assert server is not None
    assert (server.status.state, server.status.tenancy.sanitization) == row.final


async def _settle(world: FailingPlane) -> None:
    machines = len(world.fleet.machines)
    await world.until(lambda servers: len(servers) == machines, within=4000, what="all servers")
    await at_rest(world)
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE
    while problem := await _ill_bmc(world) or await _unbound(world):
        if loop.time() > end:
            raise Restless(problem)
        await asyncio.sleep(30)


async def _unrest(world: FailingPlane, row: Row) -> str:
    """What is not at rest, or nothing."""
    servers = await world.servers()
    if len(servers) < row.machines:
        return f"{len(servers)} servers of {row.machines}"
    return await restless(world) or await _ill_bmc(world) or await _unbound(world)


async def _unbound(world: FailingPlane) -> str:
    """A claim without a server, or nothing."""
    for claim in (await world.client.list(KINDS.claim)).items:
        if claim.status.phase != "Bound":
            return f"claim {claim.metadata.name} is {claim.status.phase}"
    return ""


async def _ill_bmc(world: FailingPlane) -> str:
    """A BMC that is not Ready, or nothing."""
    for bmc in (await world.client.list(KINDS.bmc)).items:
        if not conditions.is_true(bmc.status.conditions, "Ready"):
            return f"BMC {bmc.metadata.name} is {bmc.status.state}: {bmc.status.conditions}"
    return ""


async def _stays(world: FailingPlane, whom: str) -> None:
    """The fault is removed, and nothing recovers without an administrator."""
    await asyncio.sleep(UNTOUCHED)
    states = [server.status.state for server in await world.servers()]
    stuck = "Error" in states if whom == "server" else await _ill_bmc(world)
    if not stuck:
        raise Restless(f"no retry was needed: {states}")


def _has(expected: str, message: str) -> bool:
    return all(part in message for part in expected.split(" … "))


def check(row: Row, report: Report) -> None:
    """Everything that the row names was reported; no failure and no warning was there that it does not name."""
    words = sorted(report.words)
    assert row.words <= report.words, (sorted(row.words - report.words), words)
    assert not row.wait or row.wait in report.waits, (dict(report.stood), words)
    errors = {word.removeprefix("Error ") for word in row.words if word.startswith("Error ")}
    assert report.errors == errors, words
    known = {word.removeprefix("Event ") for word in row.words if word.startswith("Event ")}
    assert report.warnings <= known | set(row.may_report.split()) | ({"Error"} if errors else set()), words
    messages = [message for word in row.words for message in report.messages[word]]
    assert not row.message or any(_has(row.message, one) for one in messages), messages
    failures = [message for word in row.words if word.startswith("Error ") for message in report.messages[word]]
    assert all("operation=" in one or "continues when" in one for one in failures), failures
