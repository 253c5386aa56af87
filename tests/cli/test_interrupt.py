"""Ctrl-C before a command handles it."""

import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import os, signal, sys

module = sys.argv[1]
sys.argv[:2] = ["metalctl"]

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
from metal.cli import main
main()
"""


@pytest.mark.parametrize("module", ["click", "metal.cli.main", "metal.cli.run.up", "uvloop", "metal.sim.options"])
def test_ctrl_c_during_the_import_of_a_command_ends_it_with_one_line(module: str, tmp_path: Path) -> None:
    """`metalctl up` imports for half a second: the exit code is 130, and there is no traceback."""
    command = [sys.executable, "-c", _PROGRAM, module, "up", "--data", str(tmp_path / "data")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "Error: interrupted\n")
    assert not (tmp_path / "data").exists()
