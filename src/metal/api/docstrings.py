"""Reads the docstrings below the fields of a class, which Python discards."""

import ast
import inspect
import textwrap
from functools import cache


def class_doc(cls: type) -> str:
    """Return the docstring of the class as one paragraph."""
    return _flat(cls.__doc__ or "")


@cache
def field_docs(cls: type) -> dict[str, str]:
    """Return the docstring of each attribute that the class body annotates, by attribute name."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    body = tree.body[0]
    if not isinstance(body, ast.ClassDef):
        raise TypeError(f"{cls!r} is not defined by a class statement")
    return {
        before.target.id: _flat(after.value.value)
        for before, after in zip(body.body, body.body[1:], strict=False)
        if isinstance(before, ast.AnnAssign)
        and isinstance(before.target, ast.Name)
        and isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
        and isinstance(after.value.value, str)
    }


def _flat(text: str) -> str:
    return " ".join(text.split())
