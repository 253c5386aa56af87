"""BMCs that do not answer, and what they cost the others."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

import pytest

from metal.bmc.errors import BMCError, BMCUnreachable
from metal.bmc.redfish.silent import CONNECT, CONNECT_HURRIED, SilentBMCs
from metal.kube.controller.controller import Controller, Requeue, Result
from metal.kube.meta.objects import Key
from metal.redfish import Response

pytestmark = pytest.mark.looptime
WORKERS = 8


class Wire:
    """A BMC that answers after 50 ms, or is silent: its connection attempt is given up after 5 s."""

    def __init__(self, *, silent: bool = False) -> None:
        self.silent, self.asked = silent, 0
        self.answers_after = 0.05
        self.given_up_after: Callable[[], float] = lambda: CONNECT

    async def request(
        self, method: str, path: str, *, headers: Mapping[str, str], body: bytes | None = None, timeout: float
    ) -> Response:
        self.asked += 1
        await asyncio.sleep(self.given_up_after() if self.silent else self.answers_after)
        if self.silent:
            raise BMCUnreachable("no connection to 10.0.0.1")
        return Response(200)

    async def aclose(self) -> None: ...


async def _rounds(silent: int, live: int, budget: int = 2) -> tuple[Counter[str], dict[str, Wire]]:
    """How often each BMC was checked in ten minutes; a check every 10 s, by eight workers."""
    wires = {f"bmc-{n}": Wire(silent=n < silent) for n in range(silent + live)}
    gate = SilentBMCs(budget)
    guarded = {name: gate.guard(name, wire) for name, wire in wires.items()}
    done: Counter[str] = Counter()
    rng = random.Random(1)

    async def check(key: Key) -> Result:
        try:
            await guarded[key.name].request("GET", "/", headers={}, timeout=30)
            done[key.name] += 1
        except BMCError:
            pass
        return Requeue(10 * rng.uniform(0.8, 1.2))

    controller = Controller("bmc", check, workers=WORKERS, rng=random.Random(1))
    for name in wires:
        controller.queue.add(Key(name))
    task = asyncio.ensure_future(controller.run())
    await asyncio.sleep(60)  # each silent one has been asked once
    done.clear()
    await asyncio.sleep(600)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return done, wires


@pytest.mark.behaviour("BMC", "BMCs that do not answer do not delay the checks of the others.")
async def test_silent_bmcs_cost_the_others_nothing() -> None:
    """With 50 silent BMCs of 150, the others are checked as often as without them; unguarded it is half as often."""
    alone, _ = await _rounds(0, 100)
    beside, _ = await _rounds(50, 100)
    unguarded, _ = await _rounds(50, 100, budget=1_000)
    assert beside.total() >= 0.98 * alone.total()
    assert unguarded.total() < 0.7 * alone.total()


@pytest.mark.behaviour(
    "BMC", "While many BMCs stop answering at the same time, an attempt to connect takes 2.5 s at most instead of 5 s."
)
async def test_attempts_to_connect_are_short_while_many_bmcs_become_silent() -> None:
    """As many as the budget change nothing; one more within a minute does, until that minute has passed."""
    gate = SilentBMCs(2)
    seconds = []
    for number in range(3):
        seconds.append(gate.connect_timeout("other"))
        gate.failed(f"bmc-{number}", BMCUnreachable("no connection"))
        gate.failed(f"bmc-{number}", BMCUnreachable("no connection"))  # is silent already
        await asyncio.sleep(25)
    seconds.append(gate.connect_timeout("other"))
    gate.failed("bmc-3", BMCUnreachable("no connection"))
    seconds.append(gate.connect_timeout("other"))
    assert gate.connect_timeout("bmc-3") == CONNECT  # the next attempt uses the budget
    await asyncio.sleep(35)
    seconds.append(gate.connect_timeout("other"))
    assert seconds == [CONNECT, CONNECT, CONNECT, CONNECT, CONNECT_HURRIED, CONNECT]


async def test_bmcs_that_die_at_the_same_time_cost_the_others_little() -> None:
    """A tenth of 400 dies at once: the others get 90 % of their checks in that minute; with attempts of 5 s, 76 %."""
    shares = {hurried: await _first_minute(hurried) for hurried in (True, False)}
    assert shares[True] >= 0.9
    assert shares[False] < 0.8


async def _first_minute(hurried: bool) -> float:
    """The checks of living BMCs in the minute in which 40 of 400 die, as a share of those in the minute before."""
    gate, rng, checks = SilentBMCs(1), random.Random(1), 0
    wires = {f"bmc-{n}": Wire() for n in range(400)}
    for name, wire in wires.items():
        wire.answers_after = 0.1
        if hurried:
            wire.given_up_after = partial(gate.connect_timeout, name)
    guarded = {name: gate.guard(name, wire) for name, wire in wires.items()}

    async def check(key: Key) -> Result:
        nonlocal checks
        try:
            await guarded[key.name].request("GET", "/", headers={}, timeout=30)
            checks += not wires[key.name].silent
        except BMCError:
            pass
        return Requeue(60 * rng.uniform(0.8, 1.2))

    controller = Controller("bmc", check, workers=3, rng=random.Random(1))
    for name in wires:
        controller.queue.add(Key(name))
    task = asyncio.ensure_future(controller.run())
    await asyncio.sleep(300)
    for number in range(0, 400, 10):
        wires[f"bmc-{number}"].silent = True
    checks = 0
    await asyncio.sleep(60)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return checks / 360


async def test_each_silent_bmc_gets_its_turn() -> None:
    """Two at a time, five seconds each: in ten minutes every one of 50 is asked about as often as the others."""
    _, wires = await _rounds(50, 0)
    asked = [wire.asked for wire in wires.values()]
    assert min(asked) >= 3
    assert max(asked) <= 8


async def test_a_silent_bmc_that_answers_again_has_no_limit() -> None:
    """Its first answer ends the silence."""
    gate, wire = SilentBMCs(1), Wire(silent=True)
    guarded = gate.guard("bmc-1", wire)
    with pytest.raises(BMCUnreachable):
        await guarded.request("GET", "/", headers={}, timeout=30)
    assert len(gate) == 1
    wire.silent = False
    assert (await guarded.request("GET", "/", headers={}, timeout=30)).status == 200
    assert len(gate) == 0


async def test_a_bmc_that_did_not_answer_another_process_is_silent_from_the_start() -> None:
    """It is asked at once, within the budget; while another one uses the budget, it fails with the former error."""
    gate, first, second = SilentBMCs(1), Wire(silent=True), Wire(silent=True)
    for name in ("bmc-1", "bmc-2"):
        gate.expect(name, BMCUnreachable("no connection before the restart"))
    asking = asyncio.ensure_future(gate.guard("bmc-1", first).request("GET", "/", headers={}, timeout=30))
    await asyncio.sleep(1)
    with pytest.raises(BMCUnreachable, match="before the restart"):
        await gate.guard("bmc-2", second).request("GET", "/", headers={}, timeout=30)
    assert (first.asked, second.asked) == (1, 0)
    await asyncio.gather(asking, return_exceptions=True)


async def test_a_silent_bmc_is_asked_by_one_request_at_a_time() -> None:
    """Another request fails at once with the error of the last one."""
    gate, wire = SilentBMCs(4), Wire(silent=True)
    guarded = gate.guard("bmc-1", wire)
    with pytest.raises(BMCUnreachable):
        await guarded.request("GET", "/", headers={}, timeout=30)
    first = asyncio.ensure_future(guarded.request("GET", "/", headers={}, timeout=30))
    await asyncio.sleep(1)
    before = asyncio.get_running_loop().time()
    with pytest.raises(BMCUnreachable, match="no connection to 10"):
        await guarded.request("GET", "/", headers={}, timeout=30)
    assert asyncio.get_running_loop().time() == before
    assert wire.asked == 2
    await asyncio.gather(first, return_exceptions=True)


async def test_a_request_that_is_cancelled_for_want_of_an_answer_counts_as_silence() -> None:
    """A BMC that accepts the connection and never answers is as silent as one that is gone."""
    gate, wire = SilentBMCs(4), Wire()
    wire.request = lambda *args, **more: asyncio.sleep(1000)  # type: ignore[method-assign, assignment]  # hangs
    guarded = gate.guard("bmc-1", wire)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(30):
            await guarded.request("GET", "/", headers={}, timeout=30)
    assert len(gate) == 1
