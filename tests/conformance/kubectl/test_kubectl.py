"""kubectl cannot tell the embedded API from a cluster: every command of the script leaves the same on both."""

import asyncio
import difflib
import os
import secrets
from pathlib import Path

import pytest

from metal.apiserver.server import EmbeddedAPI
from metal.kube.meta.clock import system_clock
from tests.conformance.kubectl import programs
from tests.conformance.kubectl.runner import Outcome, Player
from tests.conformance.kubectl.script import CORE, DIFFERENCES, SCRIPT, every
from tests.conformance.kubectl.step import Step
from tests.kubeapi.cluster import KubeCluster

pytestmark = [pytest.mark.wire, pytest.mark.needs("kubectl")]

CRDS = Path(__file__).parents[3] / "config" / "crd"
FOUND = programs.found()
LEAST = 60
"""Minimum number of commands that are compared with every kubectl."""
WHOLE = os.environ.get("METAL_KUBECTL") == "all"


@pytest.mark.kube
@pytest.mark.timeout(300)
@pytest.mark.parametrize("version", [programs.DEFAULT, *programs.VERSIONS])
async def test_kubectl_leaves_the_same_on_both(version: str, cluster: KubeCluster, tmp_path: Path) -> None:
    """Exit code, output and complaints of every command are those of a cluster; the whole script or its core."""
    if version not in FOUND:
        pytest.skip(f"there is no kubectl.{version} on this machine")
    script = SCRIPT if WHOLE or version == programs.DEFAULT else CORE
    run = f"r{secrets.token_hex(3)}"
    embedded = EmbeddedAPI(tmp_path / "data", system_clock)
    await embedded.start()
    try:
        await embedded.listen("127.0.0.1", 0)
        ours, theirs = await asyncio.gather(
            _played(script, FOUND[version], embedded.kubeconfig, run, tmp_path / "embedded"),
            _played(script, FOUND[version], cluster.kubeconfig, run, tmp_path / "kube"),
        )
    finally:
        await embedded.stop()

    told = differences(script, theirs, ours)
    assert len(ours) >= LEAST
    assert not told, told


async def _played(script: tuple[Step, ...], program: Path, kubeconfig: Path, run: str, folder: Path) -> list[Outcome]:
    player = Player(program, kubeconfig, run, folder)
    applied, served = await player.play(
        [
            Step(f"apply --server-side --force-conflicts -f {CRDS}"),
            Step(f"wait --for=condition=Established --timeout=30s -f {CRDS}"),
        ]
    )
    assert (applied.code, served.code) == (0, 0), f"{applied}{served}"
    return await player.play(script)


def differences(script: tuple[Step, ...], theirs: list[Outcome], ours: list[Outcome]) -> str:
    """What differs and is not marked as differing, as one text: lines with - are kube-apiserver's."""
    told: list[str] = []
    for step, kube, embedded in zip(every(script), theirs, ours, strict=True):
        same = kube.code == embedded.code if step.differs else kube == embedded
        if not same:
            told += difflib.unified_diff(str(kube).splitlines(), str(embedded).splitlines(), "kube", "embedded", n=2)
    return "\n".join(told)


def test_each_difference_says_why() -> None:
    """A command that must differ says why in one line."""
    assert all(len(why.split()) > 3 and "\n" not in why for why in DIFFERENCES.values())


def test_the_core_is_long_enough() -> None:
    """What is played with every kubectl has as many commands as promised, and a part of the script each."""
    lines = [step.line for step in every(CORE)]

    assert len(lines) >= LEAST
    assert {"explain", "get", "describe", "create", "apply", "diff", "edit", "patch", "label", "annotate"} <= {
        line.split()[0] for line in lines
    }


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
