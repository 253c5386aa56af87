"""Machines enrol while the API between them and the manager fails in every way; all end as if it never had."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

import aiohttp
import pytest

from tests.chain.enrolment import Enrolment
from tests.chain.proxy import Counts, Trouble
from tests.kubeapi.cluster import KubeCluster, running

pytestmark = [pytest.mark.handover, pytest.mark.timeout(600)]
MACHINES = int(os.environ.get("METAL_FAULTS_MACHINES", "200"))
"""Two cores enrol 200 machines four times in 6 to 7 minutes; the gate makes do with fewer."""
WITHIN = 500.0
"""Seconds in which all machines are Available, whatever happens; a busy machine takes several times the usual 60."""
REST = 10.0
"""Seconds over which requests at rest are counted."""
AT_REST = 3.0
"""Requests a second that machines at rest may cost: watches that end by themselves and resyncs, with a margin."""
MOST = 2.0
"""How many times the requests of an undisturbed enrolment a disturbed one may cost."""


@dataclass
class Run:
    """What one enrolment cost."""

    seconds: float
    counts: Counts
    rest: Counts
    power_ons: list[int]
    objects: dict[str, int]

    def row(self, name: str, calm: "Run | None" = None) -> str:
        """One line of the table."""
        times = self.counts.total / (calm or self).counts.total
        return (
            f"{name:28} {self.seconds:7.1f} {self.counts.total:9} {times:6.2f} {self.counts.troubled:8} "
            f"{self.counts.watches_cut:5} {self.rest.total / REST:7.2f} {max(self.power_ons):5}"
        )


HEAD = f"{'':28} {'seconds':>7} {'requests':>9} {'times':>6} {'troubled':>8} {'cut':>5} {'rest/s':>7} {'boots':>5}"


class Stage:
    """A control plane of its own: these tests break it."""

    def __init__(self, cluster: KubeCluster) -> None:
        self.cluster, self.number = cluster, 0
        self.calm: Run | None = None

    def enrol(self, disturb: Callable[[Enrolment], Awaitable[None]], trouble: Trouble) -> Run:
        """One fleet after the other; trouble ends when all is done, as does what `disturb` does."""
        self.number += 1
        return asyncio.run(
            _enrol(Enrolment(self.cluster, self.number, MACHINES, self.cluster.folder), disturb, trouble)
        )


async def _enrol(fleet: Enrolment, disturb: Callable[[Enrolment], Awaitable[None]], trouble: Trouble) -> Run:
    async with fleet.run():
        fleet.proxy.trouble = trouble
        fleet.proxy.count_anew()
        disturbing = asyncio.ensure_future(disturb(fleet))
        begun = time.monotonic()
        try:
            await fleet.announce()
            await fleet.until_available(within=WITHIN)
            await disturbing
        finally:
            disturbing.cancel()
            await asyncio.gather(disturbing, return_exceptions=True)
        seconds, fleet.proxy.trouble = time.monotonic() - begun, Trouble()
        counts = await fleet.settled()
        await asyncio.sleep(REST)
        run = Run(seconds, counts, fleet.proxy.count_anew(), fleet.power_ons(), await fleet.objects_there())
        fleet.check()
    await asyncio.sleep(0.5)  # TLS connections end after they were closed
    return run


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with running() as started:
        yield Stage(started)


@pytest.fixture(scope="module")
def calm(stage: Stage) -> Run:
    """What an enrolment costs that nothing disturbs."""
    return stage.enrol(_nothing, Trouble())


def test_an_undisturbed_enrolment_is_the_measure(calm: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """Each machine is switched on once; at rest the manager asks next to nothing."""
    _tell(capsys, calm.row("undisturbed"))
    assert set(calm.power_ons) == {1}
    assert calm.rest.total / REST <= AT_REST


async def _nothing(_: Enrolment) -> None:
    return


async def _break(fleet: Enrolment) -> None:
    """kube-apiserver dies twice, and each time what watches were at is compacted away."""
    for _ in range(2):
        await asyncio.sleep(6)
        await asyncio.to_thread(fleet.cluster.kill_apiserver)
        await _compact(fleet.cluster.etcd_url)
        await asyncio.to_thread(fleet.cluster.start_apiserver)


async def _compact(etcd: str) -> None:
    """All versions but the newest are forgotten."""
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{etcd}/v3/kv/range", json={"key": "AA=="}) as answer:
            revision = (await answer.json())["header"]["revision"]
        async with session.post(f"{etcd}/v3/kv/compaction", json={"revision": revision, "physical": True}) as answer:
            assert answer.status == 200, await answer.text()


@pytest.mark.parametrize(
    ("name", "disturb", "trouble"),
    [
        ("killed, compacted, watches cut", _break, Trouble(watch_life=5.0)),
        ("20 % 429, 500 or lost", _nothing, Trouble(share=0.2)),
        ("1 s for each request", _nothing, Trouble(delay=1.0)),
    ],
    ids=["killed", "failing", "slow"],
)
def test_an_enrolment_ends_the_same_whatever_the_api_does(
    stage: Stage,
    calm: Run,
    capsys: pytest.CaptureFixture[str],
    name: str,
    disturb: Callable[[Enrolment], Awaitable[None]],
    trouble: Trouble,
) -> None:
    """Every machine is Available, has one object of each kind and was switched on once; requests stay within bounds."""
    run = stage.enrol(disturb, trouble)
    _tell(capsys, calm.row("undisturbed"), run.row(name, calm))
    assert run.objects == calm.objects
    assert set(run.power_ons) == {1}
    assert run.counts.total <= MOST * calm.counts.total
    assert run.rest.total / REST <= AT_REST


def _tell(capsys: pytest.CaptureFixture[str], *rows: str) -> None:
    with capsys.disabled():
        print("", HEAD, *rows, sep="\n")  # noqa: T201 - the figures are what one runs this for
