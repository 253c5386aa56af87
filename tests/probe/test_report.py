"""The whole report: its keys are those of the registry, and a failed part does not affect the others."""

import json
from pathlib import Path

import pytest

from metal.probe import report
from metal.probe.listener import Listener
from tests.probe import machines
from tests.probe.machines import FakeMachine

GOLDEN = Path(__file__).with_name("golden-report.json")


@pytest.mark.behaviour(
    "Registry and probe", "The probe's report of a known machine has the keys, types and values of the registry's API."
)
def test_the_report_of_a_known_machine_is_the_known_report(tmp_path: Path) -> None:
    """Keys, types and values, as in the registry's API."""
    chosen = report.collectors(
        machines.server(tmp_path),
        Listener([]),
        0,
        addresses=lambda: {"enp1s0f0": ["10.0.0.7"]},
        driver=machines.SilentDriver(),
        architecture=lambda: "x86_64",
    )

    data = report.gather(chosen, wall=lambda: 1_700_000_000.0)

    assert data == json.loads(GOLDEN.read_text())


@pytest.mark.behaviour(
    "Registry and probe", "A machine that shows nothing still reports, with a sentence for each failed part."
)
def test_a_machine_that_shows_nothing_still_reports(tmp_path: Path) -> None:
    """Every failure is a sentence that names its part; all keys are present."""
    data = report.gather(report.collectors(FakeMachine(tmp_path), Listener([]), 0))

    assert set(data) == set(json.loads(GOLDEN.read_text()))
    assert {sentence.partition(":")[0] for sentence in data["problems"]} == {
        "systemInfo",
        "cpu",
        "networkInterfaces",
        "memory",
    }
    assert data["cpu"] == []


def test_a_collector_may_fail_in_any_way() -> None:
    """An exception without a message is named by its type."""

    def breaks() -> object:
        raise ZeroDivisionError

    data = report.gather({"cpu": (breaks, []), "memory": (lambda: [1], [])})

    assert data["problems"] == ["cpu: ZeroDivisionError"]
    assert (data["cpu"], data["memory"]) == ([], [1])
