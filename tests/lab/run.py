"""One run of the lab: its directory, its processes, its clock."""

import contextlib
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tests.lab.netns import Namespace

TOP = Path(__file__).resolve().parents[2]
LAB = TOP / ".lab"
IMAGES = TOP / ".cache/images/out"
GENERIC = TOP / ".cache/images/generic"
"""The same images with Debian's kernel for real hardware."""
GRACE = 5.0
"""Seconds a process gets to end by itself."""
T = TypeVar("T")
POLL = 0.2
"""Seconds between two looks at something awaited."""


class LabError(Exception):
    """A part of the lab failed; the message names it and ends with its log."""


class Run:
    """Keeps every log in one directory, starts processes in namespaces, and ends them in reverse order."""

    def __init__(self, name: str) -> None:
        self.folder = LAB / f"{name}-{time.strftime('%H%M%S')}"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self._processes: list[tuple[str, subprocess.Popen[bytes]]] = []
        self._origin = time.monotonic()
        self._diary = (self.folder / "diary.log").open("a")

    def path(self, name: str) -> Path:
        """A file in the run's directory; its parent is created."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def since_start(self) -> float:
        """Seconds since the run began, or since `restart_clock`."""
        return time.monotonic() - self._origin

    def restart_clock(self) -> None:
        """Measure durations from now."""
        self._origin = time.monotonic()

    def note(self, what: str) -> None:
        """Write a line with the time into the run's timeline."""
        self._diary.write(f"{self.since_start():8.1f} s  {what}\n")
        self._diary.flush()

    def start(self, name: str, command: list[str], where: Namespace, **environment: str) -> subprocess.Popen[bytes]:
        """Start a program in a namespace; its output goes to NAME.log."""
        with self.path(f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                where.command(*command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
                start_new_session=True,
            )
        self._processes.append((name, process))
        self.note(f"started {name}")
        return process

    def wait_for(self, what: str, look: Callable[[], T | None], seconds: float) -> T:
        """Looks until something shows.

        Raises:
            LabError: nothing did in time, or a process of the run ended meanwhile.
        """
        deadline = time.monotonic() + seconds
        pause = threading.Event()
        while True:
            found = look()
            if found:
                self.note(f"there is {what}")
                return found
            self.check_processes()
            if time.monotonic() > deadline:
                raise LabError(f"no {what} within {seconds:g} s; logs: {self.folder}")
            pause.wait(POLL)

    def check_processes(self) -> None:
        """Raises LabError when a process of the run has ended."""
        for name, process in self._processes:
            if process.poll() is not None:
                tail = self.path(f"{name}.log").read_text(errors="replace")[-1500:]
                raise LabError(f"{name} ended with {process.returncode}; logs: {self.folder}\n{tail}")

    def stop(self, wanted: str | None = None) -> None:
        """End one process, or all of them in reverse order."""
        for name, process in reversed(list(self._processes)):
            if wanted in (None, name):
                _end(process)
                self._processes.remove((name, process))

    def close(self, *, keep: bool) -> None:
        """End everything; the directory is removed unless it is to be kept."""
        self.stop()
        self._diary.close()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def write_json(self, name: str, value: object) -> Path:
        """Write a value to the logs."""
        path = self.path(name)
        path.write_text(json.dumps(value, indent=2))
        return path


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
