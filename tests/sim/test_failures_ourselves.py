"""What a user sees when the API fails, its disk is full, or we are killed ourselves: rows of docs/failures.md."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from metal.api.core import CONFIG_MAP
from metal.kube.client.errors import ApiError
from tests.chain.proxy import Trouble
from tests.chain.shaky import Shaky
from tests.sim.failing import STEPS, FailingPlane, Fault, Row, at
from tests.sim.failures import check, live
from tests.sim.plane import KINDS

pytestmark = [pytest.mark.looptime, pytest.mark.life]
EACH = " ".join(STEPS)
BUSY = "enrolment erasure"
"""The steps after whose beginning the most is written."""


def shaky(world: FailingPlane) -> Shaky:
    """The manager's way to the API."""
    assert world.shaky is not None
    return world.shaky


async def _crash(world: FailingPlane) -> None:
    """Nobody answers the manager for a minute, every watch is cut, and its version is forgotten."""
    world.spawn(shaky(world).crash(60.0))
    await asyncio.sleep(0)


def trouble(**kind: float) -> Fault:
    """The API does this to every request of the manager."""

    async def begin(world: FailingPlane) -> None:
        shaky(world).trouble = Trouble(**kind)

    async def mend(world: FailingPlane) -> None:
        shaky(world).trouble = Trouble()

    return Fault(begin, mend)


async def _meddle(world: FailingPlane) -> None:
    """Somebody else writes to every Server several times a second."""

    async def write() -> None:
        for number in range(150):
            for server in await world.servers():
                label = {"metadata": {"labels": {"number": str(number)}}}
                await world.client.patch(KINDS.server, server.metadata.name, label)
            await asyncio.sleep(0.2)

    world.spawn(write())


class Forgetful:
    """Applies; right after the first report was kept, the API is gone."""

    def __init__(self, world: FailingPlane) -> None:
        self._world, self._apply = world, shaky(world).apply
        self._forgets = True

    async def apply(self, kind: Any, obj: Mapping[str, Any], *, manager: str, force: bool = True) -> Any:
        kept = await self._apply(kind, obj, manager=manager, force=force)
        if self._forgets and kind is CONFIG_MAP and str(obj["metadata"]["name"]).startswith("inventory"):
            self._forgets = False
            await _crash(self._world)
        return kept


async def _go_once_the_report_is_kept(world: FailingPlane) -> None:
    shaky(world).apply = Forgetful(world).apply  # type: ignore[method-assign]  # the one method that matters


async def _fill(world: FailingPlane) -> None:
    world.fill_disk()


async def _empty(world: FailingPlane) -> None:
    world.empty_disk()


async def _says_so(world: FailingPlane) -> None:
    """Whoever wants to write hears why it is refused; reading goes on."""
    with pytest.raises(ApiError, match=r"database or disk is full; check free space"):
        await world.client.create(KINDS.claim, {"metadata": {"name": "c2", "namespace": "default"}})
    assert len(await world.servers()) == 1


async def _kill(world: FailingPlane) -> None:
    await world.restart_manager()


async def _kill_all(world: FailingPlane) -> None:
    await world.restart_all()


async def _kill_again_and_again(world: FailingPlane) -> None:
    async def kill() -> None:
        for _ in range(12):
            await asyncio.sleep(7)
            await world.restart_manager()

    world.spawn(kill())


ROWS = (
    *at(EACH, "the API is away for a minute", inject=Fault(_crash), shaky=True, minutes=5),
    *at(BUSY, "watches are cut", inject=trouble(watch_life=5.0), shaky=True, minutes=3),
    *at(BUSY, "the API refuses, or its answers are lost", inject=trouble(share=0.3), shaky=True, minutes=5),
    *at(BUSY, "the API is slow", inject=trouble(delay=2.0), shaky=True, minutes=5),
    *at("report", "the API goes away once a report is kept", inject=Fault(_go_once_the_report_is_kept), shaky=True,
        minutes=5),
    *at(BUSY, "somebody else writes to the same objects", inject=Fault(_meddle), minutes=3),
    *at("inventory report boot erasure", "the disk under the API is full", inject=Fault(_fill, _empty),
        disk=True, minutes=5, also=_says_so),
    *at("discovery", "the disk under the API is full", inject=Fault(_fill, _empty), disk=True, minutes=5,
        says="Ready=False BootRetry, Event NetworkBootFailed", also=_says_so),
    *at(EACH, "the manager is killed", inject=Fault(_kill), minutes=5),
    *at(BUSY, "the manager is killed again and again", inject=Fault(_kill_again_and_again), minutes=5),
    *at("inventory report boot release", "manager and API are killed", inject=Fault(_kill_all), disk=True, minutes=5),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_fault_of_our_own_is_seen_and_left_behind(row: Row) -> None:
    """It shows as the page says, and nothing worse does; mended, everything comes to rest."""
    check(row, await live(row))
