"""A process with a blocked event loop ends with its stacks on stderr."""

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, time
from metal.cli.run.watchdog import watched

async def main():
    async with watched(0.5):
        {inside}
    time.sleep(1)  # outside the block there is no watchdog

asyncio.run(main())
print("done")
"""


@pytest.mark.parametrize(
    ("inside", "code"), [("time.sleep(30)", 1), ("await asyncio.sleep(1.5)", 0), ("await asyncio.sleep(0)", 0)]
)
def test_a_blocked_event_loop_ends_the_process(inside: str, code: int) -> None:
    """A blocked loop ends the process with code 1 and prints the place; a busy or finished loop does not."""
    program = [sys.executable, "-c", PROGRAM.format(inside=inside)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=20, check=False)
    assert ended.returncode == code
    assert ("in main" in ended.stderr) == bool(code)
    assert ended.stdout == ("" if code else "done\n")
