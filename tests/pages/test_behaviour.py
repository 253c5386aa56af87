"""How docs/behaviour.md is made from the markers of tests, and what it holds."""

from pathlib import Path

import pytest

from tests.pages import __main__ as pages
from tests.pages.behaviour import SECTIONS, BadMarkerError, Edge, edges, entries, page

TESTS = Path(__file__).parents[1]
EDGES = [
    ("", "Initial"), ("Initial", "Discovery"), ("Discovery", "Available"), ("Available", "Reserved"),
    ("Reserved", "Cleanup"), ("Cleanup", "Available"), ("Available", "Maintenance"), ("Maintenance", "Available"),
    ("Available", "Error"), ("Reserved", "Error"), ("Discovery", "Error"), ("Cleanup", "Error"),
    ("Maintenance", "Error"), ("Error", "Maintenance"), ("Error", "Available"), ("Error", "Cleanup"),
]  # fmt: skip
"""The transitions of the state diagram that users were promised, and the one from Error that an erasure takes."""
SUITE = '''
import pytest

@pytest.mark.behaviour("BMC", "It answers.", go="It does not.", issues=(7,))
def test_b(): pass

@pytest.mark.behaviour("Endpoint")
async def test_a():
    """A lease
    is enough."""

class TestMore:
    @pytest.mark.parametrize("n", [1, 2])
    @pytest.mark.behaviour("BMC", "It restarts.")
    def test_c(self, n): pass

def test_d(): pass
'''


def suite(folder: Path, text: str) -> Path:
    """A folder of tests with one module."""
    (folder / "test_suite.py").write_text(text)
    return folder


def test_entries_come_in_the_order_of_sections_and_lines(tmp_path: Path) -> None:
    """A statement is the marker's or the docstring; tests without marker have none."""
    found = entries(suite(tmp_path, SUITE))
    assert [(one.section, one.statement, one.function) for one in found] == [
        ("Endpoint", "A lease is enough.", "test_a"), ("BMC", "It answers.", "test_b"),
        ("BMC", "It restarts.", "test_c"),
    ]  # fmt: skip
    assert (found[1].go, found[1].issues, found[1].file) == ("It does not.", (7,), "test_suite.py")


def test_the_page_names_statement_test_and_difference(tmp_path: Path) -> None:
    """An entry is a line of a list below its section and its file."""
    lines = page(suite(tmp_path, SUITE)).splitlines()
    assert lines[lines.index("## BMC") + 2 :] == [
        "[test_suite.py](../tests/test_suite.py)",
        "- It answers. *Go operator:* It does not. ironcore-dev/metal-operator#7 `test_b`",
        "- It restarts. `test_c`",
    ]


@pytest.mark.parametrize("arguments", ['"Bmc", "It answers."', '"BMC", "no sentence"', '"BMC"'])
def test_a_marker_without_a_section_or_a_sentence_is_refused(tmp_path: Path, arguments: str) -> None:
    """The message names the test."""
    text = f"import pytest\n@pytest.mark.behaviour({arguments})\ndef test_b(): pass\n"
    with pytest.raises(BadMarkerError, match=r"^test_suite\.py::test_b"):
        entries(suite(tmp_path, text))


def test_transitions_are_those_of_the_markers(tmp_path: Path) -> None:
    """Markers of parameters count; a transition that two tests show is named once, with the first one."""
    (tmp_path / "sim").mkdir()
    text = (
        "import pytest\nedge = pytest.mark.edge\n"
        '@edge("A", "B", "x")\n@edge("B", "A", "y")\ndef test_one(): pass\n'
        '@pytest.mark.parametrize("n", [pytest.param(1, marks=edge("B", "C", "z"))])\n@edge("A", "B", "w")\n'
        "def test_two(n): pass\n"
    )
    (tmp_path / "sim" / "test_edges.py").write_text(text)
    assert edges(tmp_path) == [
        Edge("A", "B", "x", "test_one"), Edge("B", "A", "y", "test_one"), Edge("B", "C", "z", "test_two"),
    ]  # fmt: skip


def test_every_section_has_entries_and_every_entry_is_short() -> None:
    """The sentences of this project fit a line, and no test makes the same statement twice."""
    found = entries(TESTS)
    assert {one.section for one in found} == set(SECTIONS)
    assert max(len(one.statement) for one in found) <= 160
    assert len({(one.section, one.statement) for one in found}) == len(found)


def test_every_promised_transition_is_shown() -> None:
    """All transitions of the state diagram have a test."""
    assert {(edge.before, edge.after) for edge in edges(TESTS)} == set(EDGES)


def test_a_stale_page_is_reported_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--check` writes nothing and fails; without it the pages are there."""
    (tmp_path / "docs").mkdir()
    suite(tmp_path, "")
    assert pages.main(["--check"], tmp_path) == 1
    assert "docs/behaviour.md is outdated" in capsys.readouterr().err
    assert pages.main([], tmp_path) == 0
    assert pages.main(["--check"], tmp_path) == 0
