"""Patterns of a tenant's choice or text: `pattern` of a schema and `matches` of CEL need linear time.

Each runs in a process of its own, which is ended at a limit: an engine that backtracks would not return within hours,
and holds the interpreter meanwhile.
"""

import subprocess
import sys

import pytest

LIMIT = 60.0
"""Seconds; all patterns together take less than one where the engine is linear."""
PATTERNS = ["^(a+)+$", "^(a|a)*$", "^(a|aa)+b$", "^(.*)*x$", r"^(\w+\s?)*$", "^(a?){40}a{40}$"]
_LENGTH = 50_000

_SCHEMA = """
from metal.apiserver.schema.values import Values

def holds(pattern, text):
    return not Values({"type": "string", "pattern": pattern}).check(text)
"""
_CEL = """
from tests.apiserver.cel.test_rules import run

def holds(pattern, text):
    return not run(f"self.a.matches(r'{pattern}')", {"a": text})
"""
_RULE = """
from tests.apiserver.cel.test_rules import run

def holds(pattern, text):
    return not run("self.a.matches(self.b)", {"a": text, "b": pattern})
"""


@pytest.mark.parametrize("engine", [_SCHEMA, _CEL, _RULE], ids=["schema", "cel", "cel-pattern-of-the-object"])
def test_a_catastrophic_pattern_costs_no_more_than_its_text(engine: str) -> None:
    """A text of 50,000 characters that just fails to match, the worst case of an engine that backtracks."""
    program = f"{engine}\nfor pattern in {PATTERNS!r}: print(holds(pattern, 'a' * {_LENGTH} + '!'))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT)
    assert run.stdout.split() == ["False"] * len(PATTERNS), run.stderr


@pytest.mark.parametrize("engine", [_SCHEMA, _CEL, _RULE], ids=["schema", "cel", "cel-pattern-of-the-object"])
def test_the_patterns_are_matched_and_not_refused(engine: str) -> None:
    """Else the costs above say nothing."""
    program = f"{engine}\nfor text in ('aaa', 'b'): print(holds('^(a+)+$', text))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT)
    assert run.stdout.split() == ["True", "False"], run.stderr
