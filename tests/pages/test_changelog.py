"""The changelog, which merges by union: a merge can double paragraphs or leave lines of two versions of one."""

import re
from itertools import pairwise
from pathlib import Path

_TEXT = (Path(__file__).parents[2] / "CHANGELOG.md").read_text()


def _sections() -> list[str]:
    return re.split(r"^## ", _TEXT, flags=re.MULTILINE)[1:]


def test_each_paragraph_stands_once() -> None:
    """No two paragraphs of a section have the same title."""
    for section in _sections():
        titles = re.findall(r"^- \*\*(.+?)\*\*", section, re.MULTILINE)
        assert sorted(set(titles)) == sorted(titles)


def test_no_line_is_followed_by_another_version_of_it() -> None:
    """Two lines in a row never begin with the same words."""
    lines = [line for line in _TEXT.splitlines() if len(line) > 60 and not line.startswith("|")]
    assert [one for one, other in pairwise(lines) if one[:40] == other[:40]] == []
