"""Runs external tools, such as nvme, hdparm and sg_sanitize, with a deadline."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

QUESTION_SECONDS = 60.0
"""Deadline of a query to a drive; spinning up a disk takes half of it."""
KILL_SECONDS = 5.0
"""Seconds for a killed tool to end, unless the kernel blocks it."""


class ToolFailed(Exception):
    """A tool is missing, refused, or did not end in time."""


@dataclass(frozen=True)
class Answer:
    """How a tool ended."""

    code: int
    out: bytes
    error: str


Run = Callable[[Sequence[str], float], Answer]
"""Runs a command with a deadline in seconds; raises ToolFailed when it cannot be started or does not end."""


def run(command: Sequence[str], seconds: float) -> Answer:
    """Runs a command.

    Raises:
        ToolFailed: there is no such program, or it did not end in time.
    """
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    try:
        process = subprocess.Popen(  # noqa: S603 -- our own words and the kernel's names of devices
            list(command), stdin=nothing, stdout=pipe, stderr=pipe, start_new_session=True
        )
    except OSError as failure:
        raise ToolFailed(f"{command[0]} cannot be started: {failure.strerror or failure}") from failure
    try:
        out, error = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as late:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        # A process that waits for a drive inside the kernel cannot be killed, so do not wait long for its end.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=KILL_SECONDS)
        raise ToolFailed(f"{command[0]} did not end in {seconds:.0f} s") from late
    return Answer(process.returncode, out, error.decode("utf-8", "replace").strip())


def ask(run: Run, *command: str, seconds: float = QUESTION_SECONDS) -> bytes:
    """What a command printed.

    Raises:
        ToolFailed: it could not be run, did not end in time, or failed; the text has its last words.
    """
    answer = run(command, seconds)
    if answer.code != 0:
        words = answer.error or answer.out.decode("utf-8", "replace").strip()
        told = words.splitlines()[-1].strip() if words else "without output"
        raise ToolFailed(f"{command[0]} ended with exit code {answer.code}: {told[:200]}")
    return answer.out
