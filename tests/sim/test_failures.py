"""docs/failures.md and the tests that inject its faults are one: no row without a test, no test without its row."""

from pathlib import Path

import pytest

from metal.sim.faults import NAMES
from tests.sim import (
    test_failures_bmc,
    test_failures_erasure,
    test_failures_leader,
    test_failures_machine,
    test_failures_ourselves,
    test_failures_services,
)
from tests.sim.failing import ERASED, STEPS, Fault, Row, nothing
from tests.sim.failures import live

PAGE = Path(__file__).parents[2] / "docs" / "failures.md"
PARTIES = {
    "bmc": test_failures_bmc.ROWS, "machine": test_failures_machine.ROWS, "services": test_failures_services.ROWS,
    "erasure": test_failures_erasure.ROWS, "ourselves": test_failures_ourselves.ROWS,
    "leader": test_failures_leader.ROWS,
}  # fmt: skip
"""In the order of the matrix's columns."""
ALL = tuple(row for rows in PARTIES.values() for row in rows)
Said = tuple[str, str, str, str, frozenset[str]]
"""Party, fault, step, wait, words."""


def _cells() -> list[list[str]]:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def _plain(cell: str) -> str:
    return cell.strip("`")


def _on_the_page() -> list[Said]:
    """Every row, once for each of its steps."""
    found = []
    for fault, steps, _, wait, words, _, test in (cells for cells in _cells() if "::" in cells[-1]):
        party = test.removeprefix("sim/test_failures_").partition(".py::")[0]
        said = frozenset(map(_plain, words.split(", "))) - {"nothing"}
        name = _plain(wait).replace("none", "")
        found += [(party, _plain(fault), step, name, said) for step in steps.split(", ")]
    return found


def test_the_page_says_what_is_tested() -> None:
    """Each row's step, wait, conditions, Events and Errors are those that its test waits for; no test is left out."""
    tested = [(party, r.fault, r.step, r.wait, r.words) for party, rows in PARTIES.items() for r in rows]
    page = _on_the_page()
    assert sorted(page, key=str) == sorted(tested, key=str)
    assert len(set(page)) == len(page)


def test_the_matrix_shows_every_row_at_its_step() -> None:
    """For each step and each party: the faults of the rows below, no more and no less."""
    matrix = {cells[0]: cells[1:] for cells in _cells() if cells[0] in STEPS}
    assert tuple(matrix) == STEPS
    for step, cells in matrix.items():
        for (party, rows), cell in zip(PARTIES.items(), cells, strict=True):
            shown = set(map(_plain, cell.split("; "))) - {"–"}
            assert shown == {row.fault for row in rows if row.step == step}, (step, party)


def test_every_fault_of_the_simulator_has_a_row() -> None:
    """Whoever can switch it on can read what comes of it."""
    assert set(NAMES) <= {row.fault for row in ALL}


@pytest.mark.looptime
@pytest.mark.parametrize("step", ["enrolment", "claim", "release"])
async def test_nothing_of_all_that_is_said_where_nothing_fails(step: str) -> None:
    """The words of the page come from the faults: in a calm life there is none of them, no Error and no warning."""
    config = ERASED if step == "release" else {}
    telling = await live(Row("none", step, inject=Fault(nothing), config=config, minutes=5))
    assert not telling.words & {word for row in ALL for word in row.words}
    assert not telling.warnings
    assert not telling.errors
