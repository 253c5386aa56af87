"""The engine of CEL is imported alone."""

import subprocess
import sys


def imported(program: str) -> list[str]:
    """What a new process prints, as words."""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return run.stdout.split()


def test_the_command_line_of_the_package_is_not_imported() -> None:
    """Importing the rules leaves typer, prompt_toolkit and pygments out of the process."""
    program = "import sys, metal.apiserver.cel.rules; print(*sys.modules)"

    modules = {name.partition(".")[0] for name in imported(program)}

    assert "cel" in modules
    assert modules.isdisjoint({"typer", "prompt_toolkit", "pygments", "rich"})


def test_another_importer_gets_the_command_line() -> None:
    """The empty module that stands in for cel.cli is removed after the import."""
    program = "import sys, metal.apiserver.cel.engine; print('cel.cli' in sys.modules); import cel.cli; cel.cli.app"

    assert imported(program) == ["False"]


def test_the_command_line_may_be_there_already() -> None:
    """A process that imported the whole package before keeps it."""
    program = "import cel, metal.apiserver.cel.engine as engine; print(engine.compile is cel.compile); cel.cli.app"

    assert imported(program) == ["True"]
