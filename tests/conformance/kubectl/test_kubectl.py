"""kubectl cannot tell the embedded API from a cluster: every command of the script leaves the same on both."""

import asyncio
import difflib
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from metal.apiserver.server import EmbeddedAPI
from metal.kube.clock import system_clock
from tests.conformance.kubectl import programs
from tests.conformance.kubectl.runner import Outcome, Player
from tests.conformance.kubectl.script import SCRIPT
from tests.conformance.kubectl.step import Step
from tests.kubeapi.cluster import KubeCluster

pytestmark = [pytest.mark.wire, pytest.mark.needs("kubectl")]

CRDS = Path(__file__).parents[3] / "config" / "crd"
FOUND = programs.found()


def every(steps: tuple[Step, ...]) -> Iterator[Step]:
    """Each step, in the order of the outcomes."""
    for step in steps:
        yield step
        yield from every(step.meanwhile)


DIFFERENCES = [(f"kubectl {step.line}", step.differs) for step in every(SCRIPT) if step.differs]
"""Commands whose output must differ, and why; for docs/differences.md."""


@pytest.mark.kube
@pytest.mark.timeout(300)
@pytest.mark.parametrize("version", programs.chosen(list(FOUND)))
async def test_kubectl_leaves_the_same_on_both(version: str, cluster: KubeCluster, tmp_path: Path) -> None:
    """Exit code, output and complaints of every command are those of a cluster."""
    run = f"r{secrets.token_hex(3)}"
    embedded = EmbeddedAPI(tmp_path / "data", system_clock)
    await embedded.start()
    try:
        await embedded.listen("127.0.0.1", 0)
        ours, theirs = await asyncio.gather(
            _played(FOUND[version], embedded.kubeconfig, run, tmp_path / "embedded"),
            _played(FOUND[version], cluster.kubeconfig, run, tmp_path / "kube"),
        )
    finally:
        await embedded.stop()

    assert not differences(theirs, ours)


async def _played(program: Path, kubeconfig: Path, run: str, folder: Path) -> list[Outcome]:
    player = Player(program, kubeconfig, run, folder)
    applied, served = await player.play(
        [
            Step(f"apply --server-side --force-conflicts -f {CRDS}"),
            Step(f"wait --for=condition=Established --timeout=30s -f {CRDS}"),
        ]
    )
    assert (applied.code, served.code) == (0, 0), f"{applied}{served}"
    return await player.play(SCRIPT)


def differences(theirs: list[Outcome], ours: list[Outcome]) -> str:
    """What differs and is not marked as differing, as one text: lines with - are kube-apiserver's."""
    told: list[str] = []
    for step, kube, embedded in zip(every(SCRIPT), theirs, ours, strict=True):
        same = kube.code == embedded.code if step.differs else kube == embedded
        if not same:
            told += difflib.unified_diff(str(kube).splitlines(), str(embedded).splitlines(), "kube", "embedded", n=2)
    return "\n".join(told)


def test_each_difference_says_why() -> None:
    """A command that must differ says why in one line."""
    assert all(len(why.split()) > 3 and "\n" not in why for _, why in DIFFERENCES)


async def test_outputs_are_compared_in_earnest(tmp_path: Path) -> None:
    """An API that lacks our kinds is told apart: the comparison cannot pass by comparing nothing."""
    bare, full = EmbeddedAPI(tmp_path / "bare", system_clock), EmbeddedAPI(tmp_path / "full", system_clock)
    await asyncio.gather(bare.start(), full.start())
    try:
        await asyncio.gather(bare.listen(port=0), full.listen(port=0))
        program = FOUND[programs.DEFAULT]
        steps = [Step(f"apply --server-side -f {CRDS}"), Step("get servers")]
        with_kinds = await Player(program, full.kubeconfig, "r1", tmp_path / "1").play(steps)
        without = await Player(program, bare.kubeconfig, "r1", tmp_path / "2").play(steps[1:])
    finally:
        await asyncio.gather(bare.stop(), full.stop())

    assert with_kinds[1].code == 0
    assert with_kinds[1:] != without
