"""docs/behaviour.md and docs/failures.md name a test for each promise, and no number of the checklist is left out."""

import re

import pytest

from tests import promises

PAGE = promises.TOP / "docs" / "behaviour.md"
CHECKLIST = {
    "Endpoint": {*range(1, 16)},
    "BMC": {*range(16, 63), 68, 69},
    "BMCSecret": {*range(70, 74)},
    "Server": {*range(83, 130)},
    "ServerClaim": {*range(130, 172)},
    "readiness rules and boot configurations": {*range(172, 179)},
    "registry and probe": {*range(179, 186), *range(235, 246)},
    "the discovery's Ignition": {*range(186, 193)},
    "ServerMaintenance": {*range(251, 267)},
}
"""The numbers of the acceptance checklist (section 7.3 of the reference), by kind. Other numbers are other kinds'."""
EDGES = [
    "created → Initial", "Initial → Discovery", "Discovery → Available", "Available → Reserved", "Reserved → Cleanup",
    "Cleanup → Available", "Available → Maintenance", "Maintenance → Available", "Available → Error",
    "Reserved → Error", "Discovery → Error", "Cleanup → Error", "Maintenance → Error", "Error → Maintenance",
    "Error → Available",
]  # fmt: skip
"""The edges of the state diagram that users were promised."""
_NUMBERS = re.compile(r"#(\d+)(?:–#(\d+))?")


def _rows(heading: str = "") -> list[list[str]]:
    """The cells of every row of one table, or of all."""
    text = PAGE.read_text()
    if heading:
        text = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [cells for cells in lines if cells[0] not in ("item", "edge")]


def _told() -> set[int]:
    """The numbers in the first column of all rows."""
    found = [match for cells in _rows() for match in _NUMBERS.findall(cells[0])]
    return {number for first, last in found for number in range(int(first), int(last or first) + 1)}


def test_every_promise_names_a_test_that_exists() -> None:
    """A renamed test does not leave a promise without anybody who keeps it."""
    named = promises.promises()
    assert len(named) > 200
    assert promises.missing(named) == []


@pytest.mark.parametrize("kind", CHECKLIST)
def test_no_number_of_the_checklist_is_left_out(kind: str) -> None:
    """Each has a row: with its test, or with the reason why we do not do it."""
    assert sorted(CHECKLIST[kind] - _told()) == []


def test_no_row_has_a_number_that_the_checklist_does_not_have() -> None:
    """An issue of the Go operator is called one, lest it be taken for a number of the list."""
    assert sorted(_told() - set().union(*CHECKLIST.values())) == []


def test_only_what_we_do_not_do_has_no_test() -> None:
    """Every other row names one; those that name none are few."""
    without = [cells[0] for cells in _rows() if "::" not in cells[-1]]
    assert without == [cells[0] for cells in _rows("What we do not do, and why")]
    assert len(without) <= 3


def test_every_edge_of_the_promised_states_has_its_row() -> None:
    """All fifteen, in the order of the diagram."""
    rows = _rows("The fifteen edges of a server's states")
    assert [cells[0] for cells in rows if "→" in cells[0]] == EDGES
    assert len(EDGES) == 15
