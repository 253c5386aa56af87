"""Reads the docstrings that stand under the fields of a class, which Python itself throws away."""

import ast
import inspect
import textwrap
from functools import cache


def class_doc(cls: type) -> str:
    """The class's docstring as one paragraph."""
    return _flat(cls.__doc__ or "")


@cache
def field_docs(cls: type) -> dict[str, str]:
    """Docstring by attribute name, of the attributes that the class body itself annotates."""
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
