"""The compiled engine of the `cel` package, without the command line that the package imports with it.

`import cel` imports `cel.cli`, and with it typer, prompt_toolkit and pygments: about 0.5 s and 33 MB at each start of
a process, for a program that this API never runs. While the package is imported here, an empty module stands in for
`cel.cli`; afterwards it is removed, so that another importer still gets the real one.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_COMMAND_LINE = "cel.cli"


@contextmanager
def _without_command_line() -> Iterator[None]:
    if _COMMAND_LINE in sys.modules:
        yield
        return
    sys.modules[_COMMAND_LINE] = ModuleType(_COMMAND_LINE)
    try:
        yield
    finally:
        del sys.modules[_COMMAND_LINE]


with _without_command_line():
    from cel import Context, OptionalValue, Program, compile
    from cel.stdlib import STDLIB_FUNCTIONS

STANDARD_FUNCTIONS: dict[str, Callable[..., Any]] = dict(STDLIB_FUNCTIONS)
"""Functions of CEL's extension libraries, by name; the engine itself lacks them. The receiver is the first argument."""

__all__ = ["STANDARD_FUNCTIONS", "Context", "OptionalValue", "Program", "compile"]
