"""The local side of a session: the keys, the screen and the size of the terminal."""

import asyncio
import contextlib
import os
import select
import shutil
import signal
import sys
import termios
import tty
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Protocol

_PORTION = 4096


class Local(Protocol):
    """What a session requires of the local terminal."""

    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        ...

    def keys(self) -> AsyncGenerator[bytes, None]:
        """Yield the typed keys until the input ends."""
        ...

    def show(self, data: bytes) -> None:
        """Write output to the screen unchanged."""
        ...


class Terminal:
    """Standard input and output."""

    def __init__(self) -> None:
        self._in, self._out = sys.stdin.fileno(), sys.stdout.fileno()

    def size(self) -> tuple[int, int]:
        """Columns and rows; 80 and 24 without a terminal."""
        found = shutil.get_terminal_size((80, 24))
        return found.columns, found.lines

    async def keys(self) -> AsyncGenerator[bytes, None]:
        """Yield the typed keys. An input that cannot be polled, such as a file, is read at once."""
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        try:
            loop.add_reader(self._in, ready.set)
        except (PermissionError, ValueError):
            while data := os.read(self._in, _PORTION):
                yield data
            return
        try:
            while True:
                await ready.wait()
                ready.clear()
                if not select.select([self._in], [], [], 0)[0]:
                    continue
                data = os.read(self._in, _PORTION)
                if not data:
                    return
                yield data
        finally:
            loop.remove_reader(self._in)

    def show(self, data: bytes) -> None:
        """Write all data."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._out, rest) :]

    @contextlib.contextmanager
    def raw(self, on_resize: Callable[[], None]) -> Iterator[None]:
        """Put the terminal into raw mode, so that Ctrl-C is sent too. No effect without a terminal."""
        if not os.isatty(self._in):
            yield
            return
        loop, before = asyncio.get_running_loop(), termios.tcgetattr(self._in)
        tty.setraw(self._in)
        loop.add_signal_handler(signal.SIGWINCH, on_resize)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGWINCH)
            termios.tcsetattr(self._in, termios.TCSADRAIN, before)
