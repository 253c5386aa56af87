"""docs/behaviour.md and docs/failures.md name a test for each promise: they exist."""

import re
from pathlib import Path

TOP = Path(__file__).parent.parent.parent
_TEST = re.compile(r"\| (\S+\.py)::(\w+) \|")


def test_every_promise_names_a_test_that_exists() -> None:
    """A renamed test does not leave a promise without anybody who keeps it."""
    pages = (TOP / "docs/behaviour.md", TOP / "docs/failures.md")
    named = [one for page in pages for one in _TEST.findall(page.read_text())]
    missing = [f"{file}::{name}" for file, name in named if f"def {name}(" not in (TOP / "tests" / file).read_text()]
    assert len(named) > 80
    assert missing == []
