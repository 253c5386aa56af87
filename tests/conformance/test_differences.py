"""docs/differences.md lists every case in which the two homes differ, and nothing else."""

import ast
import re
from pathlib import Path

from tests.conformance.kubectl.script import DIFFERENCES

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "differences.md"


def marked() -> dict[str, str]:
    """Why each case with the marker `differs` has two answers, by file and test; and each command of kubectl."""
    found = {}
    for path in sorted(HERE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        texts = _constants(tree)
        for node in ast.walk(tree):
            for decorator in getattr(node, "decorator_list", ()):
                if why := _reason(decorator, texts):
                    found[f"{path.relative_to(HERE)}::{getattr(node, 'name', '')}"] = why
    return found | DIFFERENCES


def _constants(tree: ast.Module) -> dict[str, str]:
    """Texts that a module gives a name."""
    return {
        node.targets[0].id: str(node.value.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }


def _reason(decorator: ast.expr, texts: dict[str, str]) -> str:
    if not isinstance(decorator, ast.Call) or not ast.unparse(decorator.func).endswith("mark.differs"):
        return ""
    [why] = decorator.args
    return texts[why.id] if isinstance(why, ast.Name) else str(ast.literal_eval(why))


def listed() -> dict[str, str]:
    """The rows of the page."""
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    return dict(rows)


def test_the_page_lists_what_differs() -> None:
    """Each marked case has a row with its reason, and each row a marked case."""
    assert listed() == marked()


def test_a_reason_is_one_line() -> None:
    """A row of the table holds it."""
    assert all("\n" not in why and "|" not in why for why in marked().values())
