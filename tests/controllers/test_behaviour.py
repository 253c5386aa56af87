"""docs/behaviour.md names a test for each promise: they exist."""

import re
from pathlib import Path

TOP = Path(__file__).parent.parent.parent
_TEST = re.compile(r"\| (\S+\.py)::(\w+) \|")


def test_every_promise_names_a_test_that_exists() -> None:
    """A renamed test does not leave a promise without anybody who keeps it."""
    named = _TEST.findall((TOP / "docs/behaviour.md").read_text())
    missing = [f"{file}::{name}" for file, name in named if f"def {name}(" not in (TOP / "tests" / file).read_text()]
    assert len(named) > 80
    assert missing == []
