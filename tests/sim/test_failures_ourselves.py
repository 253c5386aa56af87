"""What a user sees when the API fails, its disk is full, or we are killed ourselves: rows of docs/failures.md."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from metal.api.core import CONFIG_MAP
from metal.config.options import Sanitization
from tests.chain.proxy import Trouble
from tests.sim.failing import STEPS, FailingPlane, Fault, Row, at
from tests.sim.failures import check, live
from tests.sim.plane import KINDS

pytestmark = pytest.mark.looptime
ERASED = {"sanitization": Sanitization()}
EACH = " ".join(STEPS)

async def _crash(world: FailingPlane) -> None:
    world.task = asyncio.create_task(world.shaky.crash(60.0))
    await asyncio.sleep(0)

def trouble(**kind: float) -> Fault:
    async def begin(world: FailingPlane) -> None:
        world.shaky.trouble = Trouble(**kind)
    async def mend(world: FailingPlane) -> None:
        world.shaky.trouble = Trouble()
    return Fault(begin, mend)

async def _meddle(world: FailingPlane) -> None:
    """Somebody else writes to the Server all the time."""
    async def run():
        for n in range(600):
            for server in await world.servers():
                await world.client.patch(KINDS.server, server.metadata.name, {"metadata": {"labels": {"n": str(n)}}})
            await asyncio.sleep(0.1)
    world.task = asyncio.create_task(run())

async def _crash_after_keeping(world):
    shaky, apply = world.shaky, world.shaky.apply
    async def once(kind, obj, **options):
        kept = await apply(kind, obj, **options)
        if kind is CONFIG_MAP and obj["metadata"]["name"].startswith("inventory"):
            shaky.apply = apply
            await _crash(world)
        return kept
    shaky.apply = once

async def _full(world):
    world.limit_disk(1)
async def _room(world):
    world.limit_disk(1_000_000)

async def _kill(world):
    await world.restart_manager()
async def _kill_all(world):
    await world.restart_all()
async def _kill_always(world):
    async def run():
        for _ in range(12):
            await asyncio.sleep(7)
            await world.restart_manager()
    world.task = asyncio.create_task(run())

ROWS = (
    *at(EACH, "API away for a minute", inject=Fault(_crash), shaky=True, minutes=5),
    *at("enrolment claim release erasure", "watches are cut", inject=trouble(watch_life=5.0), shaky=True, minutes=3),
    *at("enrolment claim release erasure", "API refuses and loses answers", inject=trouble(share=0.3), shaky=True, minutes=5),
    *at("enrolment claim release", "API slow", inject=trouble(delay=2.0), shaky=True, minutes=5),
    *at("enrolment claim release erasure", "conflicts", inject=Fault(_meddle), minutes=5),
    *at("report", "API away once the report is kept", inject=Fault(_crash_after_keeping), shaky=True, minutes=5),
    *at(EACH, "disk full", inject=Fault(_full, _room), disk=True, minutes=5),
    *at(EACH, "manager killed", inject=Fault(_kill), minutes=5),
    *at("enrolment claim release erasure", "manager killed all the time", inject=Fault(_kill_always), minutes=5),
    *at(EACH, "killed with the API", inject=Fault(_kill_all), disk=True, minutes=5),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_fault_of_our_own_is_seen_and_left_behind(row: Row) -> None:
    """It shows as the page says, and nothing worse does; mended, everything comes to rest."""
    check(row, await live(row))
