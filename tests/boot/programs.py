"""A program in the place of butane."""

import stat
from pathlib import Path

CONVERTS = """cat > /dev/null
echo 'warning at $.x, line 3 col 1: Unused key x' >&2
echo '{"ignition":{"version":"3.4.0"}}'"""
REFUSES = """cat > /dev/null
echo 'error at $.storage.files.0.path, line 5 col 13: path not absolute' >&2
exit 1"""


def program(folder: Path, body: str) -> str:
    """A program called butane that runs these lines of a shell."""
    path = folder / "butane"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)
