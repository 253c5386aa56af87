"""The API and the manager fail: rows of docs/failures.md."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from metal.api.core import CONFIG_MAP
from metal.kube.client.errors import ApiError
from tests.chain.proxy import Trouble
from tests.chain.shaky import Shaky
from tests.sim.failing import STEPS, FailingPlane
from tests.sim.failures import check, live
from tests.sim.plane import KINDS
from tests.sim.rows import AGAIN, End, Fault, Row, at

pytestmark = [pytest.mark.looptime, pytest.mark.life]
EACH = " ".join(STEPS)
BUSY = "enrolment erasure"
"""The steps after whose beginning the most is written."""


def shaky(world: FailingPlane) -> Shaky:
    """The manager's way to the API."""
    assert world.shaky is not None
    return world.shaky


async def _crash(world: FailingPlane) -> None:
    world.spawn(shaky(world).crash(60.0))
    await asyncio.sleep(0)


def trouble(what: str, **kind: float) -> Fault:
    """The API does this to every request of the manager."""

    async def begin(world: FailingPlane) -> None:
        shaky(world).trouble = Trouble(**kind)

    async def remove(world: FailingPlane) -> None:
        shaky(world).trouble = Trouble()

    return Fault(begin, remove, what=what)


async def _meddle(world: FailingPlane) -> None:
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


async def _is_refused(world: FailingPlane) -> None:
    """Creating a claim fails with "database or disk is full; check free space"; reads succeed."""
    with pytest.raises(ApiError, match=r"database or disk is full; check free space"):
        await world.client.create(KINDS.claim, {"metadata": {"name": "c2", "namespace": "default"}})
    assert len(await world.servers()) == 1


async def _limit_secrets(world: FailingPlane) -> None:
    shaky(world).quota = "secrets"


async def _raise_limit(world: FailingPlane) -> None:
    shaky(world).quota = ""


async def _set_back(world: FailingPlane) -> None:
    world.clock.adjust(-3600)


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


AWAY = Fault(_crash, what="The API is unreachable for a minute; watches are cut and their versions are forgotten.")
CUT = trouble("Every watch is cut after 5 s.", watch_life=5.0)
REFUSES = trouble("30 % of the requests fail, half of these after they were executed.", share=0.3)
SLOW = trouble("Each request takes 2 s.", delay=2.0)
GONE = Fault(
    _go_once_the_report_is_kept, what="The API becomes unreachable after it stored a report, before its token is spent."
)
WRITER = Fault(_meddle, what="Another client writes to every Server five times a second for 30 s.")
FULL = Fault(_fill, _empty, what="The disk of the embedded API is full.")
QUOTA = Fault(
    _limit_secrets, _raise_limit, what="A quota of the API refuses new Secrets.", remedy="Raise the quota.",
)  # fmt: skip
BACK = Fault(_set_back, what="The clock is set back one hour.")
KILLED = Fault(_kill, what="The manager is killed and starts again.")
KILLED_AGAIN = Fault(_kill_again_and_again, what="The manager is killed every 7 s, twelve times.")
ALL_KILLED = Fault(_kill_all, what="`metalctl up` is killed, manager and API, and starts again.")

ROWS = (
    *at(EACH, "API away", inject=AWAY, shaky=True, minutes=5),
    *at(BUSY, "watches are cut", inject=CUT, shaky=True, minutes=3, end=End.COMPLETES),
    *at(BUSY, "API refuses requests", inject=REFUSES, shaky=True, minutes=5, end=End.COMPLETES,
        may_report="InternalError ServiceUnavailable TooManyRequests"),
    *at(BUSY, "API slow", inject=SLOW, shaky=True, minutes=5, end=End.COMPLETES),
    *at("report", "API away after a report", inject=GONE, shaky=True, minutes=5),
    *at(BUSY, "conflicting writes", inject=WRITER, minutes=3),
    *at("inventory report boot erasure", "disk full", inject=FULL, disk=True, minutes=5, also=_is_refused),
    *at("discovery", "disk full", inject=FULL, disk=True, minutes=5, reports=AGAIN, also=_is_refused),
    *at("inventory", "quota for Secrets", inject=QUOTA, shaky=True,
        reports="Reconciled=False Forbidden, Event Forbidden, Reconciled=True Reconciled",
        message="Forbidden, HTTP status 403 … It is repeated until it succeeds"),
    *at("claim boot erasure", "clock set back", inject=BACK, minutes=10, end=End.COMPLETES),
    *at(EACH, "manager killed", inject=KILLED, minutes=5),
    *at(BUSY, "manager killed repeatedly", inject=KILLED_AGAIN, minutes=5),
    *at("inventory report boot release", "manager and API killed", inject=ALL_KILLED, disk=True, minutes=5),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_fault_of_api_or_manager_is_reported_and_ends(row: Row) -> None:
    """Each row reports what it names and nothing worse, and ends as it says."""
    check(row, await live(row))
